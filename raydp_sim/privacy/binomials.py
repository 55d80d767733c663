"""Binomial weights that stay accurate for 10^7 trials, and their pessimistic bucketing."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincc, gammaln

Floats = NDArray[np.float64]

# Below this a difference of distribution functions may have lost its digits to underflow.
_SMALL = 1e-280


@dataclass(frozen=True)
class Buckets:
    """A law on the integers, each bucket standing at its least element.

    Attributes:
        low: least element of each bucket, ascending; float64, exact up to 2^53.
        log_mass: logarithm of (an upper bound on) each bucket's probability.
    """

    low: Floats
    log_mass: Floats


def _stirling_error(k: Floats) -> Floats:
    """Return log k! - log(sqrt(2 pi k) (k/e)^k) for k >= 1."""
    large = np.maximum(k, 16.0)
    i = 1.0 / (large * large)
    series: Floats = (1 / 12 - i * (1 / 360 - i * (1 / 1260 - i * (1 / 1680 - i / 1188)))) / large
    if k.size == 0 or float(k.min()) > 16.0:
        return series
    small = np.clip(k, 1.0, 16.0)
    exact = gammaln(small + 1.0) - (small + 0.5) * np.log(small) + small
    return np.where(k <= 16.0, exact - 0.5 * math.log(2.0 * math.pi), series)


def _deviance(k: Floats, mean: Floats) -> Floats:
    """Return k log(k/mean) + mean - k for k >= 1."""
    return k * np.log1p((k - mean) / mean) + mean - k


def log_binomial(trials: float | Floats, p: float, k: Floats) -> Floats:
    """Return log Pr[Bin(trials, p) = k] for 0 < p < 1, to 1e-10 up to 10^8 trials.

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
    body = np.where(k == 0, count * math.log1p(-p), body)
    body = np.where((k == count) & (count > 0), count * math.log(p), body)
    return np.where((k < 0) | (k > count), -np.inf, body)


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
    `trials`, the first begins at 0. Probabilities too small for differences of the distribution
    function are bounded by a geometric series, which log-concavity of the binomial justifies.

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
    """Return (an upper bound on) log Pr[low <= Bin(trials, p) < end] for intervals, 0 < p < 1.

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
    return np.where(difference > _SMALL, direct, tiny)


def _from(trials: int, p: float, k: Floats) -> Floats:
    """Return Pr[Bin(trials, p) >= k], the regularised incomplete beta at (k, trials - k + 1)."""
    at = np.clip(k, 1.0, float(trials))
    value = betainc(at, trials - at + 1.0, p)
    return np.where(k <= 0, 1.0, np.where(k > trials, 0.0, value))


def _below(trials: int, p: float, k: Floats) -> Floats:
    """Return Pr[Bin(trials, p) < k]."""
    at = np.clip(k, 1.0, float(trials))
    value = betaincc(at, trials - at + 1.0, p)
    return np.where(k <= 0, 0.0, np.where(k > trials, 1.0, value))
