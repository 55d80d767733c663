"""Rounds of a trusted aggregator's normal noise on the data of a secret sample of clients.

Neighbours replace one client's data, or one of its points. H is the profile of the noise alone, two
normal laws one sensitivity apart; it is symmetric, so all that follows holds in both directions.

Clients. k of N are drawn, uniformly and without replacement, and the victim is among them with
chance g = k/N. At e' = log(1 + g (e^e - 1)) >= 0 the round's divergence is at most g H(e): the
argument of pld.py about sampling, in which a batch is released with noise instead of shuffled. It
uses that a batch with the victim and the same batch with another client in its place are
neighbours. It is reached where all others hold what is farthest from the victim's.

Points. If one of the R points of each drawn client is used, the same holds at g = k/(N R): given
that the victim, a point, is not used, either its client is drawn with another point, or another
client is in its place. If s > 1 of them are, another client in its place changes s points, so only
the sampling among a client's own points amplifies: given that the client is drawn, the divergence
at log(1 + (s/R) (e^e - 1)) is at most (s/R) H(e); given that it is not, it is 0; and divergences
are jointly convex, so it is k/N of that in all.

Coins. K, the number of those who joined, is seen and does not depend on the data, so the divergence
is the mean over K of those given K, where those who joined are a uniform sample (coin_rounds.py).
All profiles rise with k, so numbers are put together at their largest.
"""

import math
from dataclasses import dataclass

import numpy as np

from raydp_sim.privacy.composition.coin_rounds import numbers
from raydp_sim.privacy.composition.losses import LossLaw, connect
from raydp_sim.privacy.composition.noise import knotted
from raydp_sim.privacy.curves.binomials import Floats
from raydp_sim.privacy.curves.gaussian import gaussian_deltas
from raydp_sim.privacy.events import SelfSampledGaussianRelease, SubsampledGaussianRelease

_UP, _DOWN = 1.0 + 1e-13, 1.0 - 1e-13
# Of numbers of those who joined: the profile of each is cheap.
_GROUPS = 256

Sampled = SubsampledGaussianRelease | SelfSampledGaussianRelease


@dataclass(frozen=True)
class SampledNoiseRound:
    """Releases with normal noise of those who were sampled.

    Attributes:
        event: one release.
        times: releases, >= 1.

    Example:
        >>> half = SampledNoiseRound(SubsampledGaussianRelease(1.0, 10, 5))
        >>> half.profile(np.array([0.0, 1.0]), 1e-12).round(6).tolist()
        [0.191462, 0.028868]
    """

    event: Sampled
    times: int = 1

    @property
    def most(self) -> float:
        """No loss is the largest."""
        return math.inf

    def profile(self, epsilons: Floats, floor: float) -> Floats:
        """Return upper bounds on the divergence at epsilons >= 0.

        Args:
            epsilons: ascending.
            floor: chance of numbers of clients that may be left out, and count in full.
        """
        event = self.event
        if isinstance(event, SubsampledGaussianRelease):
            return self._of(epsilons, event.sampled)
        groups, left = numbers(event.clients, event.probability, 0.1 * floor, _GROUPS)
        found = sum((w * self._of(epsilons, b) for _, b, w in groups), np.zeros(len(epsilons)))
        return np.minimum(found * _UP + left, 1.0)

    def _of(self, epsilons: Floats, sampled: int) -> Floats:
        """Return the profile of so many clients."""
        event = self.event
        used = event.sampled_points / event.points
        chance = min(1.0, sampled / event.clients * used * _UP)
        rate = chance if event.sampled_points == 1 else used
        base = np.log1p(np.expm1(np.minimum(epsilons, 650.0)) / rate) * _DOWN
        return np.asarray(chance * _UP * gaussian_deltas(base, event.noise_multiplier))

    def law(self, floor: float) -> LossLaw:
        """Return a law whose profile is at least one release's; below `floor` infinite.

        Example:
            >>> event = SelfSampledGaussianRelease(1.0, 1000, 0.1)
            >>> SampledNoiseRound(event).law(1e-9).infinite < 1e-8
            True
        """
        knots, values = knotted(lambda epsilons: self.profile(epsilons, floor), self.most, floor)
        return connect(knots, np.minimum.accumulate(values))
