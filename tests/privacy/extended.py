"""Oracles in extended precision: binomial sums over every count, none left out."""

import math

import mpmath
import numpy as np

mpmath.mp.dps = 40
Long = np.longdouble


def log_pmf(n: int, p: float) -> np.ndarray:
    """Return log Pr[Bin(n, p) = k] for all k, to 1e-18 n, from exact ratios of neighbours."""
    k = np.arange(n, dtype=Long)
    steps = np.log((Long(n) - k) / (k + 1) * (Long(p) / (1 - Long(p))))
    first = _long(n * mpmath.log1p(-mpmath.mpf(p)))
    return first + np.concatenate([[Long(0)], np.cumsum(steps)])


def _long(x: mpmath.mpf) -> np.longdouble:
    high = float(x)
    return Long(high) + Long(float(x - mpmath.mpf(high)))


def log_total(logs: np.ndarray) -> np.longdouble:
    """Return the logarithm of a sum of exponentials."""
    top = logs.max()
    return top + np.log(np.exp(logs - top).sum())


def log_mean_excess(logs: np.ndarray, exponent: np.ndarray, bend: np.ndarray) -> float:
    """Return log sum w (e^exponent - 1 - exponent + bend), whose addends are not negative.

    `bend` is the exponent without its linear part.
    """
    top = max(Long(0), (logs + exponent).max())
    capped = np.minimum(exponent, Long(40))
    plain = np.exp(logs - top) * (beyond_linear(capped) + bend)
    large = np.exp(logs + exponent - top) - np.exp(logs - top) * (1 + exponent - bend)
    return float(np.log(np.where(exponent > 40, large, plain).sum()) + top)


def beyond_linear(x: np.ndarray) -> np.ndarray:
    """Return e^x - 1 - x, by its series where that cancels."""
    small = np.where(np.abs(x) < 1e-2, x, Long(0))
    terms = [Long(1) / math.factorial(j) for j in range(2, 12)]
    series = small * small * np.polyval(np.array(terms[::-1]), small)
    return np.where(np.abs(x) < 1e-2, series, np.expm1(x) - x)


def log_bend(y: np.ndarray) -> np.ndarray:
    """Return log(1 + y) - y, by its series where that cancels."""
    small = np.where(np.abs(y) < 1e-2, y, Long(0))
    terms = [Long((-1) ** (j + 1)) / j for j in range(2, 12)]
    series = small * small * np.polyval(np.array(terms[::-1]), small)
    return np.where(np.abs(y) < 1e-2, series, np.log1p(y) - y)


def special_excess(m: int, epsilon0: float, order: float, rate: float = 1.0) -> float:
    """Return log(E (1 + rate X)^order - 1) of the special pair over all counts."""
    e, a = Long(epsilon0), Long(order)
    p = 1 / (np.exp(e) + 1)
    y = Long(rate) * 2 * np.sinh(e) / m * (np.arange(m + 1, dtype=Long) - m * p)
    return log_mean_excess(log_pmf_long(m, p), a * np.log1p(y), a * log_bend(y))


def log_pmf_long(n: int, p: np.longdouble) -> np.ndarray:
    """As `log_pmf`, for a probability in extended precision."""
    k = np.arange(n, dtype=Long)
    steps = np.log((Long(n) - k) / (k + 1) * (p / (1 - p)))
    return Long(n) * np.log1p(-p) + np.concatenate([[Long(0)], np.cumsum(steps)])


def clone_excess(m: int, epsilon0: float, order: float) -> float:
    """Return log(E_Q (P/Q)^order - 1) of the clone pair over all counts."""
    h = np.tanh(Long(epsilon0) / 2)
    u = h * (2 * np.arange(m + 1, dtype=Long) - m) / m
    a = Long(order)
    exponent = a * np.log1p(u) - (a - 1) * np.log1p(-u)
    return log_mean_excess(log_pmf(m, 0.5), exponent, a * log_bend(u) - (a - 1) * log_bend(-u))


def divergence(log_excess: float, order: float) -> float:
    """Return log(1 + e^x)/(order - 1)."""
    x = log_excess
    return (x if x > 40 else math.log1p(math.exp(x))) / (order - 1.0)


def average_rdp(excess, epsilon0: float, n: int, order: float) -> float:
    """Return log E_j[moment of j + 1 messages]/(order - 1) over all j ~ Bin(n - 1, e^-epsilon0)."""
    weights = log_pmf_long(n - 1, np.exp(-Long(epsilon0))) if n > 1 else np.zeros(1, Long)
    worth = np.flatnonzero(weights + Long((order - 1.0) * epsilon0) > -120.0)
    logs = [weights[j] + Long(excess(int(j) + 1, epsilon0, order)) for j in worth]
    return divergence(float(log_total(np.array(logs))), order)
