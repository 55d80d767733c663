"""Log-space helpers: sums of terms from 1e-300 to e^(1e6) without overflow or cancellation."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


def log_sum(terms: Array, axis: int | None = None) -> Array:
    """Return log sum exp of the terms; -inf for none.

    Example:
        >>> round(float(log_sum(np.array([-1000.0, -1000.0]))), 6)
        -999.306853
    """
    if terms.size == 0:
        return np.asarray(-math.inf)
    top = np.max(terms, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    total = np.sum(np.exp(terms - top), axis=axis)
    with np.errstate(divide="ignore"):
        out: Array = np.log(total) + np.squeeze(top, axis=axis)
    return out


def log_add(*terms: float) -> float:
    """Return the log of the sum of a few exponentials.

    Example:
        >>> round(log_add(0.0, 0.0, -math.inf), 6)
        0.693147
    """
    top = max(terms)
    if math.isinf(top):
        return top
    return top + math.log(math.fsum(math.exp(term - top) for term in terms))


def log1p_exp(x: float) -> float:
    """Return log(1 + e^x): the divergence whose bracket is 1 plus e^x, exact for tiny e^x.

    Example:
        >>> log1p_exp(-40.0) == math.exp(-40.0)
        True
    """
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))


def log_expm1(x: float) -> float:
    """Return log(e^x - 1) for x >= 0; -inf at 0.

    Example:
        >>> log_expm1(800.0)
        800.0
    """
    if x <= 0.0:
        return -math.inf
    return x + math.log1p(-math.exp(-x)) if x > 30.0 else math.log(math.expm1(x))


def log1m_exp(x: float) -> float:
    """Return log(1 - e^x) for x < 0.

    Example:
        >>> round(log1m_exp(-1e-10), 6)
        -23.025851
    """
    return math.log(-math.expm1(x)) if x > -0.6931471805599453 else math.log1p(-math.exp(x))


@lru_cache(maxsize=8)
def _log_factorials(size: int) -> Array:
    return gammaln(np.arange(1.0, size + 1.0))


@lru_cache(maxsize=8)
def _log_half_gammas(size: int) -> Array:
    with np.errstate(divide="ignore"):
        return gammaln(np.arange(size) / 2.0)


def _table_size(order: int) -> int:
    return max(2048, 1 << (order + 1).bit_length())


def log_binomials(order: int) -> Array:
    """Return log C(order, i) for i = 0, ..., order.

    Example:
        >>> np.exp(log_binomials(4)).round(9).tolist()
        [1.0, 4.0, 6.0, 4.0, 1.0]
    """
    table = _log_factorials(_table_size(order))[: order + 1]
    logs: Array = table[-1] - table - table[::-1]
    return logs


def log_half_gammas(order: int) -> Array:
    """Return log Gamma(i/2) for i = 0, ..., order; the first is +inf.

    Example:
        >>> round(float(log_half_gammas(3)[1]), 6)
        0.572365
    """
    return _log_half_gammas(_table_size(order))[: order + 1]


def log_excess(y: float, order: float) -> float:
    """Return log((1 + y)^order - 1 - order y) for y > -1, order > 1: a convex power's excess.

    Example:
        >>> round(math.exp(log_excess(0.5, 3)), 9)
        0.875
    """
    if y == 0.0:
        return -math.inf
    if abs(order * y) < _SMALL:
        return math.log(0.5 * order * (order - 1.0) * y * y * _series(y, order))
    power = order * math.log1p(y)
    if power > 30.0:
        return power + math.log1p(-(1.0 + order * y) * math.exp(-power))
    return math.log(math.expm1(power) - order * y)


def _series(y: float, order: float) -> float:
    """Return the excess's series over its first term; less than 1e-15 is left at order y = 0.1."""
    tail = 1.0
    for j in range(_SERIES, 2, -1):
        tail = 1.0 + tail * y * ((order - j + 1) / j)
    return tail


def log_mean_excesses(log_weights: Array, y: Array, orders: Array) -> Array:
    """Return log sum_i w_i ((1 + y_i)^a - 1 - a y_i) for each order a, y_i > -1.

    Every addend is >= 0, so nothing cancels between them. Small orders share the moments of y.

    Example:
        >>> half = np.log([0.5, 0.5])
        >>> found = log_mean_excesses(half, np.array([-0.5, 0.5]), np.array([2.0, 4.0]))
        >>> np.exp(found).round(9).tolist()
        [0.25, 1.5625]
    """
    logs, weights = np.log1p(y), np.exp(log_weights)
    means = np.zeros(len(orders))
    small = orders * float(np.max(np.abs(y))) < _SMALL
    if np.any(small):
        means[small] = _by_moments(weights, y, orders[small])
    huge = orders * float(logs[-1]) > 600.0
    middle = np.flatnonzero(~small & ~huge)
    for block in np.array_split(middle, max(1, len(middle) * len(y) // _BLOCK)):
        if len(block):
            a = orders[block, None]
            means[block] = (np.exp(a * logs) - (1.0 + a * y)) @ weights
    with np.errstate(divide="ignore"):
        found = np.log(np.maximum(means, 0.0))
    for i in np.flatnonzero(huge):
        found[i] = _by_logs(log_weights, y, logs, float(orders[i]))
    return found


_SERIES, _SMALL, _BLOCK = 12, 0.1, 1 << 16


def _by_moments(weights: Array, y: Array, orders: Array) -> Array:
    coefficient, power = orders.copy(), weights * y
    total = np.zeros(len(orders))
    for j in range(2, _SERIES + 1):
        coefficient = coefficient * (orders - j + 1) / j
        power = power * y
        total += coefficient * float(power.sum())
    return total


def _by_logs(log_weights: Array, y: Array, logs: Array, order: float) -> float:
    power = order * logs
    top = float(np.max(log_weights + power))
    ones = np.exp(log_weights - top)
    low = ones * (np.expm1(np.minimum(power, 30.0)) - order * y)
    high = np.exp(log_weights + power - top) - ones * (1.0 + order * y)
    return math.log(float(np.sum(np.where(power > 30.0, high, low)))) + top


# log k! - log(sqrt(2 pi k) (k/e)^k) for k = 0, ..., 15; beyond, the series is exact to rounding.
_STIRLING = np.array(
    [0.0]
    + [
        math.log(math.factorial(k)) - 0.5 * math.log(2 * math.pi * k) - k * math.log(k) + k
        for k in range(1, 16)
    ]
)


def _stirling_error(k: Array) -> Array:
    big = np.maximum(k, 15.0)
    square = big * big
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680) / square) / square) / square) / big
    small: Array = _STIRLING[np.minimum(k, 15.0).astype(np.int64)]
    return np.where(k > 15.0, series, small)


def _deviance(x: Array, mean: Array) -> Array:
    """Return x log(x/mean) + mean - x, exact to rounding near the mean (Loader 2000)."""
    t = (x - mean) / mean
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = x * np.log1p(t) - (x - mean)
    out: Array = np.where(x > 0.0, inside, mean)
    return out


def log_binomial_pmf(k: Array, n: float | Array, p: float) -> Array:
    """Return log Pr[Bin(n, p) = k] with a relative error of the probability near 1e-11.

    Loader 2000, "Fast and accurate computation of binomial probabilities": a difference of
    log-gammas would lose 1e-9 at n = 1e6. For 0 < p < 1.

    Example:
        >>> round(math.exp(float(log_binomial_pmf(np.array(2.0), 4.0, 0.5))), 12)
        0.375
    """
    k = np.asarray(k, dtype=np.float64)
    n = np.asarray(n, dtype=np.float64)
    rest = n - k
    inner = (k > 0.0) & (rest > 0.0)
    safe = np.where(inner, k * rest, 1.0)
    size = np.maximum(n, 1.0)
    edge = np.where(k > 0.0, n * math.log(p), n * math.log1p(-p))
    body = (
        _stirling_error(n)
        - _stirling_error(np.maximum(k, 1.0))
        - _stirling_error(np.maximum(rest, 1.0))
        - _deviance(k, size * p)
        - _deviance(rest, size * (1.0 - p))
        + 0.5 * np.log(size / (2.0 * math.pi * safe))
    )
    out: Array = np.where(inner, body, edge)
    return out


def log_tail_below(k: float, n: float, p: float) -> float:
    """Return an upper bound on log Pr[Bin(n, p) < k] for k up to the mean; -inf if k <= 0.

    Below the mode the probabilities fall at least geometrically, at the ratio seen at k - 1.

    Example:
        >>> bool(log_tail_below(2.0, 10.0, 0.5) >= math.log(11 / 1024))
        True
    """
    return _log_tail(k - 1.0, n, p)


def log_tail_above(k: float, n: float, p: float) -> float:
    """Return an upper bound on log Pr[Bin(n, p) > k] for k from the mean up; -inf if k >= n.

    Example:
        >>> bool(log_tail_above(8.0, 10.0, 0.5) >= math.log(11 / 1024))
        True
    """
    return _log_tail(n - k - 1.0, n, 1.0 - p)


def _log_tail(last: float, n: float, p: float) -> float:
    if last < 0.0:
        return -math.inf
    ratio = last / (n - last + 1.0) * (1.0 - p) / p  # of the next probability to the last one
    here = float(log_binomial_pmf(np.asarray(last), n, p))
    return 0.0 if ratio >= 1.0 else min(0.0, here - math.log1p(-ratio))
