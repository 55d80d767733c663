"""A run of noisy releases of sampled clients' data by their loss distributions."""

import math
from typing import Any

from raydp_sim.privacy.bound import Result, RunBound
from raydp_sim.privacy.composition.pld import compose_epsilon
from raydp_sim.privacy.composition.sampled_noise import SampledNoiseRound
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import SelfSampledGaussianRelease, SubsampledGaussianRelease


class PldSampledNoise(RunBound):
    """Convolve the losses of normal noise on secret samples; neighbours replace data.

    sampled_noise.py has what a round is. For fixed-size samples and for coins, of clients and of
    their points.

    Example:
        >>> event = SubsampledGaussianRelease(1.0, clients=10_000, sampled=100)
        >>> round(PldSampledNoise().epsilon([(event, 100)], 1e-5).epsilon, 2)
        0.77
    """

    name = "pld-sampled-noise"
    events = (SubsampledGaussianRelease, SelfSampledGaussianRelease)
    source = "sampled_noise.py; Balle, Barthe & Gaboardi 2018; Zhu, Dong & Wang 2022"
    sharp = True

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return the composed epsilon."""
        found = compose_epsilon([SampledNoiseRound(event, n) for event, n in events], delta)
        if found == math.inf:
            raise NotApplicable(f"{self.name} finds no epsilon: the noise is too small")
        return Result(found)
