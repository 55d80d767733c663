"""Log-space helpers: sums of terms from 1e-300 to e^(1e6) without overflow or cancellation."""

import math
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

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

    It is 0 only for x = -inf.

    Example:
        >>> log1p_exp(-40.0) == math.exp(-40.0)
        True
    """
    if x > 0.0:
        return x + math.log1p(math.exp(-x))
    # What underflows is rounded up.
    return max(math.log1p(math.exp(x)), 5e-324 if x > -math.inf else 0.0)


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
    return scipy.special.gammaln(np.arange(1.0, size + 1.0))


@lru_cache(maxsize=8)
def _log_half_gammas(size: int) -> Array:
    with np.errstate(divide="ignore"):
        return scipy.special.gammaln(np.arange(size) / 2.0)


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


def order_rounding(order: float) -> float:
    """Return what the logarithm of a sum over the orders up to `order` may err by: 5e-14 order.

    The terms of the closed forms are exp(log C(a, j) + log Gamma(j/2) + j step). Each part errs by
    a few 1e-16 of itself, together by 2.2e-16 a (2 log a + 3 |step|), and 2 log a + 3 |step| is
    below 200 for orders to 10^5, epsilon0 to 20, and 10^9 messages. Added by every bound that sums.

    Example:
        >>> order_rounding(2)
        1e-13
    """
    return 5e-14 * order


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


def log_mean_excesses(log_weights: Array, y: Array, orders: Array, side: int = 0) -> Array:
    """Return log sum_i w_i ((1 + y_i)^a - 1 - a y_i) for each order a > 1, y_i > -1.

    Every addend is >= 0, so nothing cancels between them. Small orders share the moments of y; for
    others the linear part cancels within an addend, which errs by 4e-16 (a |y| + (1 + y)^a - 1), of
    which the second part is relative. The mean of the first is added for `side` 1 and taken off for
    -1, and so is 1e-12 of the sum, more than what the series of the small orders leaves out.

    Args:
        log_weights: of which sums below e^-700 times (1 + y)^a <= e^600 may be lost: 1e-40 is added
            for `side` 1.
        y: the ratios minus 1.
        orders: a.
        side: 1 to err upwards, -1 downwards, 0 neither.

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
    huge = orders * float(np.max(logs)) > 600.0
    middle = np.flatnonzero(~small & ~huge)
    for block in np.array_split(middle, max(1, len(middle) * len(y) // _BLOCK)):
        if len(block):
            a = orders[block, None]
            means[block] = (np.expm1(a * logs) - a * y) @ weights
    if side:
        cancelled = np.where(small, 0.0, 4e-16 * orders * float(weights @ np.abs(y)))
        means += side * cancelled + max(side, 0) * 1e-40
    with np.errstate(divide="ignore"):
        found = np.log(np.maximum(means, 0.0))
    for i in np.flatnonzero(huge):
        found[i] = _by_logs(log_weights, y, logs, float(orders[i]))
    return np.asarray(found + side * 1e-12)


_SERIES, _SMALL, _BLOCK = 12, 0.1, 1 << 16


def _by_moments(weights: Array, y: Array, orders: Array) -> Array:
    """Sum the binomial series to its twelfth term: of the second, less than 1e-12 is left.

    From the third on each term is at most |a - j + 1|/j |y| <= max(a |y|, |y|) <= 0.1 of the last.
    """
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
