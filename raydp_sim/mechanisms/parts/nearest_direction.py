"""The nearest of random directions and their opposites: how near it is, how often it is sent."""

import math
from functools import lru_cache
from typing import NamedTuple

import scipy

from raydp_sim.mechanisms.parts.categories import allowed, step_up

MOST_TRIED = 256
"""The most codewords that are taken without being asked for."""


class Nearest(NamedTuple):
    """Of random directions and their opposites, the one nearest to a unit vector u.

    Attributes:
        mean: E <V, u>.
        square: E <V, u>^2.
    """

    mean: float
    square: float


@lru_cache(maxsize=64)
def nearest(size: int, directions: int) -> Nearest:
    """Integrate Pr[some |<V, u>| > t] over t: squares of heights follow Beta(1/2, (size - 1)/2).

    Example:
        >>> [round(value, 4) for value in nearest(32, 16)]
        [0.3611, 0.1364]
    """
    if size == 1:
        return Nearest(1.0, 1.0)
    from scipy.integrate import quad  # here: most actors never integrate

    def beyond(angle: float) -> float:
        # t = sin(angle): no singularity at t = 1, which circles have.
        below = float(scipy.special.betainc(0.5, 0.5 * (size - 1), math.sin(angle) ** 2))
        return (1.0 - below**directions) * math.cos(angle)

    # Most of it lies below a few times 1/sqrt(size).
    inner = math.asin(min(1.0, 2.0 / math.sqrt(size)))
    found = []
    for weight in (lambda t: 1.0, lambda t: 2.0 * t):
        spans = ((0.0, inner), (inner, math.pi / 2))
        parts = [
            quad(lambda a, f=weight: f(math.sin(a)) * beyond(a), *span, epsabs=1e-13, limit=200)[0]
            for span in spans
        ]
        found.append(math.fsum(parts))
    return Nearest(*found)


def other_probability(codewords: int, epsilon: float) -> float:
    """Return the probability of each codeword that is not the nearest: a multiple of 2^-53."""
    ratio = math.exp(-allowed(min(epsilon, 700.0)))
    return step_up(ratio / (1.0 + (codewords - 1) * ratio))


@lru_cache(maxsize=256)
def best_codewords(size: int, epsilon: float) -> int:
    """Return the number of codewords whose mean leans most towards the block."""
    tried = [1 << power for power in range(1, MOST_TRIED.bit_length())]

    def lean(codewords: int) -> float:
        kept = 1.0 - codewords * other_probability(codewords, epsilon)
        return kept * nearest(size, codewords // 2).mean

    return max(tried, key=lean)
