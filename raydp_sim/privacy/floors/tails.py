"""Binomial tails and probabilities up to 10^12 trials, for the floors.

Written apart from those that the upper bounds use, so that no mistake is shared.
"""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TINY = 1e-300
"""What stands for a probability that may have underflowed."""


def tails(m: Floats, trials: float, x: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """Return Pr[Bin(trials, x) >= m] and its complement, 1 <= m <= trials; `rest` is 1 - x.

    The rarer of the two is computed from the rarer of x and rest, and taken from 1, so both keep
    their digits. Where x and rest are bounds of opposite senses, so are the tails.

    Example:
        >>> above, below = tails(np.array([3.0]), 4.0, np.array([0.5]), np.array([0.5]))
        >>> float(above[0]), float(below[0])
        (0.3125, 0.6875)
    """
    seldom, above = x <= 0.5, m > trials * x
    a = np.where(seldom, m, trials - m + 1.0)
    z = np.minimum(np.where(seldom, x, rest), 1.0)
    direct = seldom == above  # the regularised beta function is then the rarer tail itself
    tail = np.empty(len(m))
    tail[direct] = scipy.special.betainc(a[direct], trials + 1.0 - a[direct], z[direct])
    tail[~direct] = scipy.special.betaincc(a[~direct], trials + 1.0 - a[~direct], z[~direct])
    return np.where(above, tail, 1.0 - tail), np.where(above, 1.0 - tail, tail)


def binomial(k: Floats, trials: float, x: Floats) -> Floats:
    """Return Pr[Bin(trials, x) = k]: Stirling's formula with its error, and deviances.

    Loader 2000, "Fast and accurate computation of binomial probabilities".

    Example:
        >>> round(float(binomial(np.array([2.0]), 4.0, np.array([0.5]))[0]), 12)
        0.375
    """
    rest = trials - k
    x = np.clip(x, TINY, 1.0 - 1e-16)
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = (
            _stirling(np.asarray(trials, dtype=np.float64))
            - _stirling(k)
            - _stirling(rest)
            - _deviance(k, trials * x)
            - _deviance(rest, trials * (1.0 - x))
            + 0.5 * np.log(trials / (2.0 * math.pi * k * rest))
        )
    edge = np.where(k > 0.0, trials * np.log(x), trials * np.log1p(-x))
    return np.asarray(np.exp(np.where((k > 0.0) & (rest > 0.0), inner, edge)))


def _stirling(k: Floats) -> Floats:
    """Return log k! - log(sqrt(2 pi k) (k/e)^k)."""
    big = np.maximum(k, 16.0)
    i = 1.0 / (big * big)
    series = (1 / 12 - i * (1 / 360 - i * (1 / 1260 - i * (1 / 1680 - i / 1188)))) / big
    low = np.clip(k, 1.0, 16.0)
    exact = (
        scipy.special.gammaln(low + 1.0)
        - (low + 0.5) * np.log(low)
        + low
        - 0.5 * math.log(2.0 * math.pi)
    )
    return np.where(k > 16.0, series, exact)


def _deviance(k: Floats, mean: Floats) -> Floats:
    """Return k log(k/mean) + mean - k without loss near the mean."""
    apart = k - mean
    return np.asarray(np.where(k > 0.0, k * np.log1p(apart / mean) - apart, mean))
