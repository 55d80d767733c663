"""A symmetric law tilted towards a cap: the constants of PrivUnit and how its caps are sampled.

A draw V of a law that looks the same in every direction lies in the cap {<V, u> >= threshold} with
probability q. Asking for the cap with probability p > q instead multiplies the density by p / q in
the cap and by (1 - p) / (1 - q) outside, whatever the unit vector u: the loss is
log(p / (1 - p)) - log(q / (1 - q)), exactly.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Floats
from raydp_sim.mechanisms.parts.budget import SLACK

Variant = Literal["exact", "gaussian"]

# Beyond this loss e^epsilon and the cap's mass leave the range of doubles: no smaller cap is taken.
_MOST = 600.0
# The highest threshold on the sphere: 1 - threshold^2 keeps its digits.
_TOP = math.sqrt(1.0 - 1e-12)
# A comparison of a 53-bit uniform with p is one of its steps too often true at most; p itself is
# rounded by less than another.
_STEPS = 2.0**-52


@dataclass(frozen=True)
class Cap:
    """A cap and how often it is asked for.

    Attributes:
        variant: "exact", V uniform on the unit sphere, or "gaussian", V standard normal.
        dimension: of V.
        threshold: of <V, u>.
        mass: q, the probability of the cap before the tilt.
        probability: p, the probability of the cap after it.
        mean: E <V, u> after the tilt.
        second: E ||V||^2 after the tilt.
    """

    variant: Variant
    dimension: int
    threshold: float
    mass: float
    probability: float
    mean: float
    second: float

    @property
    def loss(self) -> float:
        """The exact loss: the log-ratio of the densities in the cap and outside."""
        p, q = self.probability, self.mass
        return math.log(p) - math.log1p(-p) - math.log(q) + math.log1p(-q)

    def heights(self, inside: NDArray[np.bool_], uniform: Floats) -> tuple[Floats, Floats]:
        """Draw <V, u> by inversion: within the cap where `inside`, and below it elsewhere.

        Returned with it is sqrt(1 - <V, u>^2), which on the sphere is the length of the rest; it
        has digits of its own near the poles. Of the normal law the rest keeps its length: 1.

        Each side is inverted from its nearer tail, whose probability is known to full precision: a
        53-bit uniform reaches down to q / 2^54, and cuts each side into steps of 2^-53 of its mass.

        Args:
            inside: which side each is on.
            uniform: strictly between 0 and 1.
        """
        q = self.mass
        upper = np.where(inside, q * uniform, q + (1.0 - q) * uniform)
        lower = np.where(inside, 1.0 - upper, (1.0 - q) * (1.0 - uniform))
        size, across = self._from_tail(np.minimum(np.minimum(upper, lower), 0.5))
        return np.where(upper <= lower, size, -size), across

    def _from_tail(self, tail: Floats) -> tuple[Floats, Floats]:
        # The height that has this probability, at most 1/2, above it.
        if self.variant == "gaussian":
            return np.asarray(-scipy.special.ndtri(tail)), np.ones_like(tail)
        if self.dimension == 1:
            return np.ones_like(tail), np.zeros_like(tail)
        # The square of a coordinate of the sphere follows Beta(1/2, (d - 1)/2).
        half = 0.5 * (self.dimension - 1)
        square, rest = (
            scipy.special.betainccinv(0.5, half, 2.0 * tail),
            scipy.special.betaincinv(half, 0.5, 2.0 * tail),
        )
        return np.sqrt(square), np.sqrt(rest)


@lru_cache(maxsize=256)
def best_cap(variant: Variant, dimension: int, epsilon: float) -> Cap:
    """Return the cap whose loss is `epsilon`, rounded down, and whose error is least.

    With f the density of <V, u>, h(g) = E[<V, u>; cap] has the derivative -g f and q has -f, and
    mean = h / (q + 1/(e^epsilon - 1)), so that mean' = mean (mean - g) f / h. On the sphere the
    error 1 / mean^2 - 1 is least where g = mean. For the normal law the error is (d + g mean) /
    mean^2 - 1, and its derivative is 0 where mean = (mean - g)(2 d + g mean).

    In one dimension both are randomized response on {-1, 1}.

    Example:
        >>> cap = best_cap("exact", 300, 4.0)
        >>> round(cap.threshold, 7), round(cap.probability, 6), round(1 / cap.mean**2 - 1, 3)
        (0.0874105, 0.791819, 129.88)
    """
    allowed = min(epsilon, _MOST) - SLACK * max(1.0, min(epsilon, _MOST))
    if dimension == 1:
        p = float(scipy.special.expit(allowed)) - _STEPS
        return Cap("exact", 1, 0.0, 0.5, p, 2.0 * p - 1.0, 1.0)
    law = _normal if variant == "gaussian" else _sphere(dimension)
    rest = 1.0 / math.expm1(allowed)

    def excess(threshold: float) -> float:
        mass, partial = law(threshold)
        if variant == "exact":
            return threshold * (mass + rest) - partial
        mean = partial / (mass + rest)
        return mean - (mean - threshold) * (2.0 * dimension + threshold * mean)

    from scipy.optimize import brentq  # here: most actors never search

    # Above the root of either the threshold exceeds the mean; a normal one would need the loss of
    # threshold^2 / 2 at least.
    top = _TOP if variant == "exact" else 2.0 + math.sqrt(2.0 * allowed)
    threshold = top if excess(top) < 0.0 else float(brentq(excess, 0.0, top, xtol=1e-30))
    mass, partial = law(threshold)
    p = float(scipy.special.expit(allowed + math.log(mass) - math.log1p(-mass))) - _STEPS
    mean = partial * (p - mass) / (mass * (1.0 - mass))
    second = 1.0 if variant == "exact" else dimension + threshold * mean
    return Cap(variant, dimension, threshold, mass, p, mean, second)


def _sphere(dimension: int) -> Callable[[float], tuple[float, float]]:
    """Return the map from a threshold >= 0 to q and E[<V, u>; cap] for the uniform unit vector."""
    half = 0.5 * (dimension - 1)
    scale = -math.log(dimension - 1) - float(scipy.special.betaln(half, 0.5))

    def law(threshold: float) -> tuple[float, float]:
        rest = (1.0 - threshold) * (1.0 + threshold)
        # From whichever of threshold^2 and 1 - threshold^2 is small: the other has lost digits.
        low = threshold < 0.5
        both = (
            scipy.special.betaincc(0.5, half, threshold**2)
            if low
            else scipy.special.betainc(half, 0.5, rest)
        )
        return 0.5 * float(both), math.exp(half * math.log(rest) + scale)

    return law


def _normal(threshold: float) -> tuple[float, float]:
    """Return q and E[<V, u>; cap] for the standard normal vector."""
    return float(scipy.special.ndtr(-threshold)), math.exp(-0.5 * threshold**2) / math.sqrt(
        2.0 * math.pi
    )
