"""A run of shuffled reports with Gaussian noise, by loss distributions of their blanket."""

import math
from typing import Any

from raydp_sim.privacy.bound import Result, RunBound
from raydp_sim.privacy.composition.normal_rounds import NormalRound, tail_for
from raydp_sim.privacy.composition.pld import compose_epsilon
from raydp_sim.privacy.curves.gaussian import gaussian_epsilon
from raydp_sim.privacy.events import GaussianShuffle, SubsampledGaussianShuffle


class PldGaussian(RunBound):
    """Convolve the losses of the blanket of normal noise, or of the reports alone if that is less.

    normal_laws.py has the law, normal_rounds.py what a round is. The reports alone, neither
    shuffled nor sampled, are one release of less noise: normal losses add up to a normal loss.

    Example:
        >>> event = GaussianShuffle(2.0, 10_000)
        >>> one, many = (PldGaussian().epsilon([(event, t)], 1e-8).epsilon for t in (1, 100))
        >>> round(one, 3), round(many, 2)
        (0.027, 0.3)
    """

    name = "pld-gaussian"
    events = (GaussianShuffle, SubsampledGaussianShuffle)
    source = "Balle et al. 2019, Lemma 5.3, and normal_laws.py; Zhu, Dong & Wang 2022"
    sharp = True

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return the composed epsilon."""
        weight = math.fsum(times / event.noise_multiplier**2 for event, times in events)
        alone = gaussian_epsilon(delta, (1.0 - 1e-12) / math.sqrt(weight))
        tail = tail_for(delta, sum(times for _, times in events))
        rounds = [_round(event, times, tail) for event, times in events]
        one, found = len(rounds) == 1 and rounds[0].times == 1, math.inf
        # Where one round by itself is beyond what is looked at, so are they all together.
        if all(math.isfinite(part.reach(delta)) for part in rounds):
            found = rounds[0].epsilon(delta) if one else compose_epsilon(rounds, delta)
        if found < alone:
            return Result(found)
        return Result(alone, note="shuffling gains nothing: by the reports' own guarantees")


def _round(event: Any, times: int, tail: float) -> NormalRound:
    if isinstance(event, GaussianShuffle):
        return NormalRound(event.noise_multiplier, event.dimension, event.n, times, tail=tail)
    return NormalRound(
        event.noise_multiplier, event.dimension, event.sampled, times, event.rate, tail
    )
