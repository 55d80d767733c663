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
    small = np.clip(k, 1.0, 16.0)
    exact = gammaln(small + 1.0) - (small + 0.5) * np.log(small) + small
    large = np.maximum(k, 16.0)
    i = 1.0 / (large * large)
    series = (1 / 12 - i * (1 / 360 - i * (1 / 1260 - i * (1 / 1680 - i / 1188)))) / large
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


def _edges(trials: int, p: float, count: int, relative: float) -> Floats:
    """Return ascending bucket starts from 0: fine around the mean, geometric towards 0."""
    mean, sd = trials * p, math.sqrt(trials * p * (1.0 - p))
    reach = 14.0 * sd + 60.0
    low, high = max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach))
    inner_low = max(low, math.floor(mean - 6.0 * sd))
    inner_high = min(high, math.ceil(mean + 6.0 * sd))
    least = math.floor(relative * mean)
    width = max(1, least, math.ceil((inner_high - inner_low) / (0.75 * count)))
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
    steps = math.ceil(math.log(mean / reach) / math.log(1.02)) + 1
    coarse = np.floor(mean - reach * 1.02 ** np.arange(1, steps + 1))
    return np.unique(np.concatenate([[0.0], coarse[coarse > 0], fine]))


def binomial_buckets(trials: int, p: float, count: int = 20000, relative: float = 0.0) -> Buckets:
    """Bucket Bin(trials, p) so that an average of a non-increasing function errs upwards.

    Every bucket stands at its least element and no mass is dropped: the last bucket reaches to
    `trials`, the first begins at 0. Probabilities too small for differences of the distribution
    function are bounded by a geometric series, which log-concavity of the binomial justifies.

    Args:
        trials: >= 0.
        p: in [0, 1].
        count: most buckets within 14 standard deviations + 60 of the mean, 3/4 of them within 6.
        relative: least bucket width there, as a fraction of the mean.

    Example:
        >>> b = binomial_buckets(10, 0.5)
        >>> round(float(np.exp(b.log_mass) @ b.low), 9)
        5.0
    """
    if trials == 0 or p == 0.0:
        return Buckets(np.zeros(1), np.zeros(1))
    if p == 1.0:
        return Buckets(np.array([float(trials)]), np.zeros(1))
    low = _edges(trials, p, count, relative)
    end = np.append(low[1:], float(trials + 1))  # one past each bucket
    at = np.maximum(low, 1.0)  # Pr[Bin >= k] is the regularised incomplete beta at (k, N - k + 1)
    below = np.where(low > 0, betaincc(at, trials - at + 1.0, p), 0.0)
    above = np.where(low > 0, betainc(at, trials - at + 1.0, p), 1.0)
    up_to = np.append(below[1:], 1.0)
    past = np.append(above[1:], 0.0)
    difference = np.where(end <= trials * p, up_to - below, above - past)
    # The bucket lies on one side of the mode when its mass is this small.
    left = end <= trials * p
    near = np.where(left, end - 1.0, low)
    step = np.where(left, near - 1.0, near + 1.0)
    first = log_binomial(trials, p, near)
    second = log_binomial(trials, p, step)
    gap = np.minimum(second - first, -1e-300)
    width = end - low
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        series = first + np.log(np.expm1(width * gap) / np.expm1(gap))
        direct = np.log(np.maximum(difference, _SMALL))
    geometric = np.where(width == 1.0, first, np.minimum(series, first + np.log(width)))
    return Buckets(low, np.where(difference > _SMALL, direct, geometric))
