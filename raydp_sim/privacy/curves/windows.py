"""Averages over a binomial count: windows, buckets with their masses, and what was cut away."""

import bisect
import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy

from raydp_sim.privacy.curves.binomials import log_binomial, log_tail_above, log_tail_below
from raydp_sim.privacy.curves.numerics import Array, Whole

# Beyond 14 standard deviations and 60 counts less than 1e-40 is left, before the integrand's tilt.
_SD, _EXTRA = 14.0, 60.0


@dataclass(frozen=True)
class Buckets:
    """Counts from `low[i]` to `high[i]` have probability exp(`log_mass[i]`), nothing overlaps.

    `log_below` and `log_above` bound the logs of what lies outside of all buckets, upwards.
    """

    low: Array
    high: Array
    log_mass: Array
    log_below: float
    log_above: float


def window(n: int, p: float) -> tuple[int, int]:
    """Return the first and last count within 14 standard deviations + 60 of the mean n p.

    Example:
        >>> window(10**6, 0.5)
        (492940, 507060)
    """
    mean, reach = n * p, _SD * math.sqrt(n * p * (1.0 - p)) + _EXTRA
    return max(0, math.floor(mean - reach)), min(n, math.ceil(mean + reach))


def log_pmf_range(n: int, p: float, low: int, high: int) -> Array:
    """Return log Pr[Bin(n, p) = k] for k = low, ..., high; p in (0, 1]."""
    counts = np.arange(low, high + 1, dtype=np.float64)
    if p >= 1.0:
        return np.where(counts == n, 0.0, -math.inf)
    return log_binomial(float(n), p, counts)


@lru_cache(maxsize=64)
def central(n: int, p: float, buckets: int | None, relative: float = 0.0) -> Buckets:
    """Split the window into at most about `buckets` pieces; None: one per count.

    Pieces are finest around the mean: at equal steps of a normal law of twice the variance, which
    makes the average width smallest. None is narrower than `relative` of the mean.

    Example:
        >>> pieces = central(10**6, 0.5, 64)
        >>> bool(len(pieces.low) < 120)
        True
        >>> round(float(np.exp(pieces.log_mass).sum()), 9)
        1.0
    """
    low, high = window(n, p)
    size = high - low + 1
    if buckets is None or size <= 2 * buckets:
        starts = np.arange(low, high + 1)
    else:
        spread = math.sqrt(2.0 * n * p * (1.0 - p))
        inner = n * p + spread * scipy.special.ndtri(np.arange(1, buckets) / buckets)
        wings = max(4, buckets // 3)
        outer = (
            np.linspace(low, inner[0], wings, endpoint=False),
            np.linspace(inner[-1], high, wings, endpoint=False)[1:],
        )
        starts = np.unique(np.floor(np.concatenate([outer[0], inner, outer[1]])).astype(np.int64))
        starts = starts[(starts >= low) & (starts <= high)]
        least = max(1, math.floor(relative * n * p))
        starts = np.unique(low + (starts - low) // least * least)
    return _pieces(n, p, starts, high)


@lru_cache(maxsize=64)
def below(n: int, p: float, high: int, exact: bool, least: float = -math.inf) -> Buckets:
    """Split the counts up to `high`, left of a window, into one piece each or geometric ones.

    The mass of a geometric piece is bounded by that of all counts up to its end, which it nearly
    is. What lies above is the window's, so `log_above` is -inf. Below the first piece is nothing,
    or a probability whose log is at most `least`.
    """
    if exact:
        # Counts that are rarer than wanted are what lies below.
        first = bisect.bisect_right(range(high), least, key=lambda k: log_tail_below(k, n, p))
        first = max(0, first - 1)
        return replace(_pieces(n, p, np.arange(first, high + 1), high), log_above=-math.inf)
    starts, rest = [high], log_tail_below(high, n, p)
    while starts[-1] > 0 and rest > least:
        starts.append(min(starts[-1] - 1, math.floor(starts[-1] * 0.93)))
        rest = log_tail_below(starts[-1], n, p)
    low = np.array(starts[::-1], dtype=np.float64)
    ends = np.append(low[1:] - 1, high)
    masses = np.array([log_tail_below(end + 1.0, n, p) for end in ends])
    return Buckets(low, ends, masses, rest, -math.inf)


def _pieces(n: int, p: float, starts: Whole, high: int) -> Buckets:
    low = int(starts[0])
    ends = np.append(starts[1:] - 1, high)
    logs = log_pmf_range(n, p, low, high)
    if len(starts) == len(logs):
        masses = logs
    else:
        cuts = starts - low
        tops = np.maximum.reduceat(logs, cuts)
        shifted = np.exp(logs - np.repeat(tops, np.diff(np.append(cuts, len(logs)))))
        masses = np.log(np.add.reduceat(shifted, cuts)) + tops
    rest = (-math.inf, -math.inf)
    if p < 1.0:
        rest = (log_tail_below(low, n, p), log_tail_above(high, n, p))
    return Buckets(starts.astype(np.float64), ends.astype(np.float64), masses, *rest)
