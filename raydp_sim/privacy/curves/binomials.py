"""Binomial weights that stay accurate for 10^8 trials, and their pessimistic bucketing."""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Below this the incomplete beta functions may have lost digits, or all, to underflow.
_SMALL = 1e-250


@dataclass(frozen=True)
class Buckets:
    """A law on the integers, each bucket standing at its least element.

    Attributes:
        low: least element of each bucket, ascending; float64, exact up to 2^53.
        log_mass: logarithm of (an upper bound on) each bucket's probability.
    """

    low: Floats
    log_mass: Floats


# log k! - log(sqrt(2 pi k) (k/e)^k) for k = 0 (taken as 0), ..., 15, from ratios near 1.
_STIRLING = np.array(
    [0.0]
    + [
        math.log(math.factorial(k) * math.exp(k) / (k**k * math.sqrt(2.0 * math.pi * k)))
        for k in range(1, 16)
    ]
)


def rounding(trials: float) -> float:
    """Return what `log_binomial` and scipy's incomplete beta functions may err by, relatively.

    1e-13 + 1e-14 sqrt(trials). Measured against 60 digits: both stay below half of it up to 10^8
    trials, within 37 standard deviations of the mean (probabilities from 1e-300). Further out the
    logarithm errs by 1e-15 of the distance to the mean and of itself.

    Example:
        >>> round(rounding(10**8), 15)
        1.001e-10
    """
    return 1e-13 + 1e-14 * math.sqrt(trials)


def _stirling_error(k: Floats) -> Floats:
    """Return log k! - log(sqrt(2 pi k) (k/e)^k) for k >= 1; what the series leaves is < 2e-16."""
    large = np.maximum(k, 16.0)
    i = 1.0 / (large * large)
    series: Floats = (1 / 12 - i * (1 / 360 - i * (1 / 1260 - i * (1 / 1680 - i / 1188)))) / large
    if k.size == 0 or float(k.min()) > 15.0:
        return series
    return np.where(k <= 15.0, _STIRLING[np.minimum(k, 15.0).astype(np.int64)], series)


def _deviance(k: Floats, mean: Floats) -> Floats:
    """Return k log(k/mean) + mean - k for k >= 1."""
    # The difference first: added one after the other the terms would round at the mean's last digit
    # (7e-9 at 10^8 trials), not at that of the distance.
    away = k - mean
    return k * np.log1p(away / mean) - away


def log_binomial(trials: float | Floats, p: float, k: Floats) -> Floats:
    """Return log Pr[Bin(trials, p) = k] for 0 < p < 1, to `rounding(trials)`; -inf outside.

    Loader's saddle-point form: differences of log-gammas would lose 1e-8 at 10^7 trials.

    Example:
        >>> round(float(np.exp(log_binomial(4, 0.5, np.array([2.0])))[0]), 12)
        0.375
    """
    count = np.asarray(trials, dtype=np.float64)
    inside = (k > 0) & (k < count)
    # Where k is an end point the body is evaluated at 1 of 2 and replaced below.
    total = np.where(inside, count, 2.0)
    hits = np.where(inside, k, 1.0)
    rest = total - hits
    body = (
        _stirling_error(total) - _stirling_error(hits) - _stirling_error(rest)
        - _deviance(hits, total * p) - _deviance(rest, total * (1.0 - p))
        + 0.5 * np.log(total / (2.0 * math.pi * hits * rest))
    )  # fmt: skip
    if inside.all():
        return np.asarray(body)
    body = np.where(k == 0, count * math.log1p(-p), body)
    body = np.where((k == count) & (count > 0), count * math.log(p), body)
    return np.where((k < 0) | (k > count), -np.inf, body)


def log_binomial_at(trials: float, p: float, k: float) -> float:
    """Return `log_binomial` at one count, 0 <= k <= trials; for arrays of one it would be slow.

    Example:
        >>> round(math.exp(log_binomial_at(4.0, 0.5, 2.0)), 12)
        0.375
    """
    if k <= 0.0 or k >= trials:
        return trials * (math.log1p(-p) if k <= 0.0 else math.log(p))
    rest = trials - k
    away, other = k - trials * p, rest - trials * (1.0 - p)
    body = _stirling_at(trials) - _stirling_at(k) - _stirling_at(rest)
    body -= k * math.log1p(away / (trials * p)) - away
    body -= rest * math.log1p(other / (trials * (1.0 - p))) - other
    return body + 0.5 * math.log(trials / (2.0 * math.pi * k * rest))


def _stirling_at(k: float) -> float:
    if k <= 15.0:
        return float(_STIRLING[int(k)])
    i = 1.0 / (k * k)
    return (1 / 12 - i * (1 / 360 - i * (1 / 1260 - i * (1 / 1680 - i / 1188)))) / k


def bernstein(trials: float, p: float, level: float) -> float:
    """Return a distance from the mean that Bin(trials, p) exceeds with probability <= e^-level.

    On either side, by Bernstein's inequality: t^2/(2 (variance + t/3)) >= level.

    Example:
        >>> round(bernstein(100, 0.5, 5.0), 3)
        17.566
    """
    third = level / 3.0
    return third + math.sqrt(third * third + 2.0 * level * trials * p * (1.0 - p))


def log_tail_below(k: float, trials: float, p: float) -> float:
    """Return an upper bound on log Pr[Bin(trials, p) < k] for k up to the mean; -inf if k <= 0.

    Ratios of neighbouring probabilities fall (log-concavity), so below k - 1 the probabilities are
    at most geometric with the ratio found there; rounding is added. It says nothing (0) from the
    mode on.

    Example:
        >>> bool(log_tail_below(2.0, 10.0, 0.5) >= math.log(11 / 1024))
        True
    """
    return _log_tail(k - 1.0, trials, p)


def log_tail_above(k: float, trials: float, p: float) -> float:
    """Return an upper bound on log Pr[Bin(trials, p) > k] for k from the mean up; -inf if k >= n.

    Example:
        >>> bool(log_tail_above(8.0, 10.0, 0.5) >= math.log(11 / 1024))
        True
    """
    return _log_tail(trials - k - 1.0, trials, 1.0 - p)


def _log_tail(last: float, trials: float, p: float) -> float:
    if last < 0.0:
        return -math.inf
    ratio = last / (trials - last + 1.0) * (1.0 - p) / p  # of the next probability to the last one
    if ratio >= 1.0 - 1e-9:
        return 0.0
    here = log_binomial_at(trials, p, last)
    error = rounding(trials) + 1e-15 * (abs(here) + abs(last - trials * p))
    return min(0.0, here + error - math.log1p(-ratio * (1.0 + 1e-14)))


def bucket_starts(
    trials: int, p: float, count: int, relative: float = 0.0, growth: float = 1.02
) -> Floats:
    """Return ascending bucket starts from 0: fine around the mean, geometric towards 0.

    Example:
        >>> bucket_starts(3, 0.5, 100).tolist()
        [0.0, 1.0, 2.0, 3.0]
    """
    mean, sd = trials * p, math.sqrt(trials * p * (1.0 - p))
    reach = 14.0 * sd + 60.0
    low, high = max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach))
    reach_inner = 6.0 * sd if high - low > count else reach
    inner_low = max(low, math.floor(mean - reach_inner))
    inner_high = min(high, math.ceil(mean + reach_inner))
    least = math.floor(relative * mean)
    share = 0.75 if high - low > count else 1.0
    width = max(1, least, math.ceil((inner_high - inner_low) / (share * count)))
    outer = max(1, least, math.ceil((high - low) / (0.25 * count)))
    fine = np.concatenate(
        [
            np.arange(low, inner_low, outer, dtype=np.float64),
            np.arange(inner_low, inner_high, width, dtype=np.float64),
            np.arange(inner_high, high + 1, outer, dtype=np.float64),
        ]
    )
    if low == 0:
        return fine
    steps = math.ceil(math.log(mean / reach) / math.log(growth)) + 1
    coarse = np.floor(mean - reach * growth ** np.arange(1, steps + 1))
    return np.unique(np.concatenate([[0.0], coarse[coarse > 0], fine]))


def binomial_buckets(
    trials: int, p: float, count: int = 20000, relative: float = 0.0, growth: float = 1.02
) -> Buckets:
    """Bucket Bin(trials, p) so that an average of a non-increasing function errs upwards.

    Every bucket stands at its least element and no mass is dropped: the last bucket reaches to
    `trials`, the first begins at 0. `log_between` has what is charged for rounding.

    Args:
        trials: >= 0.
        p: in [0, 1].
        count: most buckets within 14 standard deviations + 60 of the mean, 3/4 of them within 6.
        relative: least bucket width there, as a fraction of the mean.
        growth: of the distance from the mean, from one bucket to the next below that.

    Example:
        >>> b = binomial_buckets(10, 0.5)
        >>> round(float(np.exp(b.log_mass) @ b.low), 9)
        5.0
    """
    if trials == 0 or p == 0.0:
        return Buckets(np.zeros(1), np.zeros(1))
    if p == 1.0:
        return Buckets(np.array([float(trials)]), np.zeros(1))
    low = bucket_starts(trials, p, count, relative, growth)
    return Buckets(low, log_between(trials, p, low, np.append(low[1:], float(trials + 1))))


def log_between(trials: int, p: float, low: Floats, end: Floats) -> Floats:
    """Return log Pr[low <= Bin(trials, p) < end] for adjacent intervals, 0 < p < 1, rounded up.

    Probabilities are differences of the distribution function, of whichever tail is smaller. Each
    end errs by r = `rounding(trials)` of that tail F. In an average of v over the intervals the
    errors telescope (Abel): they are at most r sum_i F_i |v_i - v_(i+1)|, for monotone v at most
    r times the average's part on v's larger side plus r v/2 at the mean, together less than 2 r of
    the average. 4 r is added. Probabilities below 1e-250 are bounded by a geometric series instead
    (ratios of neighbouring probabilities fall), starting at the end nearer to the mode.

    Intervals may reach beyond 0..trials. They are narrow against the mean or beyond it, so that one
    whose probability is tiny lies on one side of the mode.

    Example:
        >>> round(float(np.exp(log_between(4, 0.5, np.array([1.0]), np.array([3.0])))[0]), 12)
        0.625
    """
    left = end <= trials * p
    difference = np.where(
        left,
        _below(trials, p, end) - _below(trials, p, low),
        _from(trials, p, low) - _from(trials, p, end),
    )
    # Towards the mode first: the others follow at least geometrically.
    last = np.minimum(end - 1.0, trials)
    start = np.maximum(low, 0.0)
    near = np.where(left, last, start)
    first = log_binomial(trials, p, near)
    second = log_binomial(trials, p, np.where(left, near - 1.0, near + 1.0))
    width = last - start + 1.0
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        gap = np.minimum(second - first, -1e-300)
        series = first + np.log(np.expm1(width * gap) / np.expm1(gap))
        direct = np.log(np.maximum(difference, _SMALL))
        most = first + np.log(np.maximum(width, 0.0))
    tiny = np.where(width <= 1.0, most, np.fmin(series, most))
    # Far out the logarithm errs in proportion.
    far = np.where(difference > _SMALL, 0.0, 1e-15 * np.abs(np.maximum(tiny, -1e300)))
    return np.where(difference > _SMALL, direct, tiny) + far + 4.0 * rounding(trials)


def _from(trials: int, p: float, k: Floats) -> Floats:
    """Return Pr[Bin(trials, p) >= k], the regularised incomplete beta at (k, trials - k + 1)."""
    at = np.clip(k, 1.0, float(trials))
    value = scipy.special.betainc(at, trials - at + 1.0, p)
    return np.where(k <= 0, 1.0, np.where(k > trials, 0.0, value))


def _below(trials: int, p: float, k: Floats) -> Floats:
    """Return Pr[Bin(trials, p) < k]."""
    at = np.clip(k, 1.0, float(trials))
    value = scipy.special.betaincc(at, trials - at + 1.0, p)
    return np.where(k <= 0, 0.0, np.where(k > trials, 1.0, value))
