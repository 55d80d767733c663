"""Loss laws of a trusted aggregator's releases with noise, all data used or a Poisson sample of it.

Without sampling a release is a symmetric pair: two normal laws one sensitivity apart, or two
Laplace laws, with the profile H of `Noise`. It holds for whichever neighbours the sensitivity is
meant for.

Poisson sampling, neighbours that ADD OR REMOVE one record, each of which is used with probability
q. With c = e^epsilon, N0 the law without the record and N1 with it, the pair of removing it is
P = (1 - q) N0 + q N1 against N0, and that of adding it the exchanged one; each dominates its
direction (Zhu, Dong & Wang 2022, "Optimal accounting of differential privacy via characteristic
function", Poisson sampling). Where c >= 1 their profiles follow from H, because (N1, N0) is
symmetric:

    (P - c N0)_+ = (q N1 - (c - 1 + q) N0)_+,  so q H(log(1 + (c - 1)/q)),
    (N0 - c P)_+ = ((1 - c (1 - q)) N0 - c q N1)_+,  so q (1 - x) H(log(c/(1 - x))),

x = (c - 1)(1 - q)/q, and 0 where x >= 1. The two differ, so both are composed (losses.py). Nothing
here is proved for a replaced record of a Poisson sample.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from raydp_sim.privacy.composition.direct import spaced
from raydp_sim.privacy.composition.losses import LossLaw, Profile, connect, connect_side, join
from raydp_sim.privacy.curves.binomials import Floats
from raydp_sim.privacy.curves.gaussian import gaussian_deltas

# Knots of a law: its profile is cheap, and many rounds make use of every one.
_KNOTS = 400
_UP, _DOWN = 1.0 + 1e-14, 1.0 - 1e-14


class Noise(Protocol):
    """A symmetric pair of laws of noise, one sensitivity apart."""

    @property
    def most(self) -> float:
        """The largest loss; inf where there is none."""
        ...

    def profile(self, epsilons: Floats) -> Floats:
        """Return upper bounds on the hockey-stick divergence at epsilons >= 0."""
        ...


@dataclass(frozen=True)
class NormalNoise:
    """Normal noise of so many sensitivities' standard deviation (Balle & Wang 2018, Theorem 8).

    Example:
        >>> NormalNoise(1.0).profile(np.array([0.0, 1.0])).round(6).tolist()
        [0.382925, 0.126937]
    """

    multiplier: float

    @property
    def most(self) -> float:
        """No loss is the largest."""
        return math.inf

    def profile(self, epsilons: Floats) -> Floats:
        """Return the divergence, rounded up."""
        return gaussian_deltas(epsilons, self.multiplier)


@dataclass(frozen=True)
class LaplaceNoise:
    """Laplace noise of scale sensitivity/epsilon: H(e) = 1 - e^((e - epsilon)/2) up to epsilon.

    Example:
        >>> LaplaceNoise(1.0).profile(np.array([0.0, 0.5, 1.0])).round(6).tolist()
        [0.393469, 0.221199, 0.0]
    """

    epsilon: float

    @property
    def most(self) -> float:
        """The pure loss."""
        return self.epsilon

    def profile(self, epsilons: Floats) -> Floats:
        """Return the divergence, rounded up."""
        return np.abs(np.expm1(0.5 * np.minimum(epsilons - self.epsilon, 0.0))) * _UP


@dataclass(frozen=True)
class NoiseRound:
    """Releases with the same noise: how often, and the Poisson rate before each of them.

    Attributes:
        noise: of one release.
        times: releases, >= 1.
        rate: in (0, 1]; below 1 neighbours add or remove a record.

    Example:
        >>> from raydp_sim.privacy.composition.pld import compose_epsilon
        >>> round(compose_epsilon([NoiseRound(NormalNoise(1.0), 100, 0.01)], 1e-5), 2)
        0.72
    """

    noise: Noise
    times: int = 1
    rate: float = 1.0

    @property
    def most(self) -> float:
        """Largest loss of one release, rounded up: that of removing a record."""
        most = self.noise.most
        if self.rate == 1.0 or most == math.inf:
            return most
        return math.log1p(self.rate * math.expm1(most)) * _UP

    def removed(self, epsilons: Floats) -> Floats:
        """Return the profile of removing a record (see the module), epsilons >= 0."""
        if self.rate == 1.0:
            return self.noise.profile(epsilons)
        far = np.minimum(epsilons, 650.0)
        base = np.log1p(np.expm1(far) / self.rate) * _DOWN
        return self.rate * _UP * self.noise.profile(base)

    def added(self, epsilons: Floats) -> Floats:
        """Return the profile of adding a record, epsilons >= 0."""
        q = self.rate
        # x rounded down makes the factor larger and the loss smaller.
        x = np.expm1(np.minimum(epsilons, 650.0)) * ((1.0 - q) / q) * _DOWN
        inside = x < 1.0
        x = np.where(inside, x, 0.0)
        base = np.maximum(epsilons - np.log1p(-x), 0.0) * _DOWN
        return np.where(inside, q * (1.0 - x) * _UP * self.noise.profile(base), 0.0)

    def law(self, floor: float) -> LossLaw:
        """Return a law whose profiles are at least one release's; below `floor` infinite.

        Example:
            >>> law = NoiseRound(NormalNoise(1.0), rate=0.01).law(1e-12)
            >>> bool(law.profile(np.array([0.1]))[0] >= law.swapped().profile(np.array([0.1]))[0])
            True
        """
        front = knotted(self.removed, self.most, floor)
        if self.rate == 1.0:
            return connect(*front)
        most = -math.log1p(-self.rate) * _UP
        return join(connect_side(*front), connect_side(*knotted(self.added, most, floor)))


def knotted(profile: Profile, most: float, floor: float) -> tuple[Floats, Floats]:
    """Return knots of a profile up to where it is next to nothing, and its values at 0 and there.

    Args:
        profile: upper bounds at epsilons >= 0.
        most: the largest loss; inf where there is none.
        floor: below which losses count as infinite.
    """
    if most == math.inf:
        most = 1.0
        # What is left beyond counts as infinite, so it need not be below the floor.
        while most < 500.0 and profile(np.array([most]))[0] > floor:
            most *= 1.5
    knots = spaced(profile, most, floor, _KNOTS)
    return knots, profile(np.append(0.0, knots))
