"""Shuffles of reports with normal noise: by their blanket, or by what a report alone guarantees.

Two profiles hold for every two neighbours, in both directions, and the lesser counts at each loss:

* that of the blanket (law_rounds.py with the law of normal_laws.py), sample and all;
* that of the victim's report alone, N(x, I) against N(x', I) at a distance of at most 2a (Balle &
  Wang 2018, Theorem 8). Shuffling is a post-processing of it and of reports that are independent
  of it. For a secret uniform sample it is amplified as pld.py says.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raydp_sim.privacy.composition.direct import spaced
from raydp_sim.privacy.composition.law_rounds import KNOTS, LOOKS, LawRound, least_within
from raydp_sim.privacy.composition.losses import LossLaw, connect, convex
from raydp_sim.privacy.curves.binomials import Floats
from raydp_sim.privacy.curves.gaussian import gaussian_deltas
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.normal_laws import normal

_UP, _DOWN = 1.0 + 1e-13, 1.0 - 1e-13
# Losses up to which profiles are looked at: e^loss over a sampling rate stays a double.
_FURTHEST = 600.0
# Share of delta that may be charged in full, for reports that no blanket covers.
_SHARE = 2e-3


@dataclass(frozen=True)
class NormalRound:
    """Rounds that shuffle n vectors of an l2 ball, each with normal noise.

    Attributes:
        multiplier: the noise's standard deviation over the ball's diameter.
        dimension: of the vectors.
        n: reports per round, >= 1.
        times: rounds, >= 1.
        rate: n/N in (0, 1]; below 1 the n clients are secret and uniform.
        tail: how much of a report is charged in full, in (0, 1); see `tail_for`.

    Example:
        >>> NormalRound(2.0, 1, 10_000).epsilon(1e-8) < 0.05
        True
    """

    multiplier: float
    dimension: int
    n: int
    times: int = 1
    rate: float = 1.0
    tail: float = 1e-11

    @property
    def most(self) -> float:
        """No loss is the largest."""
        return math.inf

    @cached_property
    def _hidden(self) -> LawRound | None:
        """The rounds by their blanket; None where it hides nothing."""
        if self.n == 1 and self.rate == 1.0:
            return None
        try:
            law = normal(0.5 / self.multiplier, self.dimension, self.tail)
        except NotApplicable:
            return None
        return LawRound(law, self.n, self.times, self.rate)

    def _alone(self, epsilons: Floats) -> Floats:
        """Return the profile of one report, sampled but not shuffled."""
        far = np.minimum(epsilons, 650.0)
        base = far if self.rate == 1.0 else np.log1p(np.expm1(far) / self.rate) * _DOWN
        return np.asarray(self.rate * _UP * gaussian_deltas(base, self.multiplier))

    def profile(self, epsilons: Floats) -> Floats:
        """Return upper bounds on the divergence at epsilons >= 0.

        Example:
            >>> NormalRound(1.0, 1, 1).profile(np.array([0.0, 1.0])).round(6).tolist()
            [0.382925, 0.126937]
        """
        alone = self._alone(epsilons)
        return alone if self._hidden is None else np.minimum(alone, self._hidden.profile(epsilons))

    def law(self, floor: float) -> LossLaw:
        """Return a law of losses whose profile is at least the round's; below `floor` infinite.

        Example:
            >>> NormalRound(1.0, 1, 1000).law(1e-9).infinite < 1e-9
            True
        """
        most = min(self.reach(floor), _FURTHEST)
        if self._hidden is not None:
            # What no blanket covers counts as infinite, though the report alone might say less.
            floor = max(floor, 1.05 * self.rate * self._hidden.messages.beyond)
            most = min(most, self._hidden.most)
        knots = spaced(self.profile, most, floor, KNOTS, LOOKS)
        values = self.profile(np.append(0.0, knots))
        return connect(knots, convex(knots, values))

    def epsilon(self, delta: float) -> float:
        """Return an epsilon at which one round needs at most delta, within 1e-7 of the least.

        It is inf where so little noise needs a larger one than is looked at.

        Example:
            >>> NormalRound(0.02, 1, 10).epsilon(1e-6)
            inf
        """
        reach = self.reach(delta)
        return reach if math.isinf(reach) else least_within(self.profile, reach, delta)

    def reach(self, delta: float) -> float:
        """Return a loss at which a report alone needs at most delta, of few; inf if none is."""
        most = 1e-6
        while self._alone(np.array([most]))[0] > delta:
            most *= 1.2
            if most > _FURTHEST:
                return math.inf
        return most


def tail_for(delta: float, rounds: int) -> float:
    """Return how much of each report may be charged in full if all rounds are to have delta.

    A power of two, so that runs of nearly one length share their laws.

    Example:
        >>> 0.0005 < tail_for(1e-6, 1000) / 1e-9 <= 0.002
        True
    """
    return 2.0 ** math.floor(math.log2(max(_SHARE * delta / rounds, 1e-300)))
