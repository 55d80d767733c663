"""A run of a trusted aggregator's noisy releases by their loss distributions."""

import math
from collections.abc import Callable
from typing import Any

from raydp_sim.privacy.bound import Result, RunBound
from raydp_sim.privacy.composition.noise import LaplaceNoise, NoiseRound, NormalNoise
from raydp_sim.privacy.composition.pld import compose_epsilon
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import (
    GaussianRelease,
    GaussianReport,
    LaplaceRelease,
    SubsampledGaussian,
    SubsampledLaplace,
)


class PldNoise(RunBound):
    """Convolve the losses of normal and Laplace noise, Poisson samples in both directions.

    Releases of all data may be mixed with those of Poisson samples, whose neighbours add or remove
    a record; the sensitivity of the others is then meant for these neighbours too. Normal noise on
    all data, however often, is one release of less noise, which is exact. noise.py has the pairs.

    Example:
        >>> event = SubsampledGaussian(1.0, rate=0.01)
        >>> round(PldNoise().epsilon([(event, 100)], 1e-5).epsilon, 3)
        0.719
    """

    name = "pld-noise"
    events = (
        GaussianRelease,
        GaussianReport,
        SubsampledGaussian,
        LaplaceRelease,
        SubsampledLaplace,
    )
    source = "Balle & Wang 2018, Theorem 8; Zhu, Dong & Wang 2022"
    sharp = True

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return the composed epsilon."""
        weight, rounds = 0.0, list[NoiseRound]()
        for event, times in events:
            if _is_normal(event):
                weight += times / event.noise_multiplier**2
            else:
                rounds.append(_ROUNDS[type(event)](event, times))
        if weight > 0.0:
            # Normal losses add up to a normal loss, of the squares' sum.
            rounds.append(NoiseRound(NormalNoise((1.0 - 1e-12) / math.sqrt(weight))))
        found = compose_epsilon(rounds, delta)
        if found == math.inf:
            raise NotApplicable(f"{self.name} finds no epsilon: the noise is too small")
        return Result(found)


def _is_normal(event: Any) -> bool:
    kind = type(event)
    return kind in (GaussianRelease, GaussianReport) or (
        kind is SubsampledGaussian and event.rate == 1.0
    )


_ROUNDS: dict[type, Callable[[Any, int], NoiseRound]] = {
    SubsampledGaussian: lambda e, times: NoiseRound(NormalNoise(e.noise_multiplier), times, e.rate),
    LaplaceRelease: lambda e, times: NoiseRound(LaplaceNoise(e.epsilon), times),
    SubsampledLaplace: lambda e, times: NoiseRound(LaplaceNoise(e.epsilon), times, e.rate),
}
