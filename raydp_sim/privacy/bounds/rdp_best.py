"""A run of any events by the least proved divergence at every order."""

from typing import Any

from raydp_sim.privacy.bound import Result
from raydp_sim.privacy.composition.runs import RdpRun
from raydp_sim.privacy.curves.caps import best_vector, neighbours, refuse_mixed
from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.events import (
    CentralRelease,
    CldpRound,
    EpochRelease,
    GaussianRelease,
    GaussianReport,
    LaplaceRelease,
    LocalReport,
    Release,
    SecretEpochRelease,
    SelfSampledGaussianRelease,
    SelfSampledShuffle,
    Shuffle,
    SubsampledGaussian,
    SubsampledGaussianRelease,
    SubsampledLaplace,
    SubsampledMultiMessage,
    SubsampledShuffle,
)


class RdpBest(RdpRun):
    """Take each event's least proved divergence at each order, caps included, add and convert.

    Different kinds of event may be mixed, unless they compare different neighbours.

    Example:
        >>> from raydp_sim.privacy.events import GaussianRelease
        >>> round(RdpBest().epsilon([(GaussianRelease(2.0), 1)], 1e-5).epsilon, 4)
        2.168
    """

    name = "rdp-best"
    source = "the least of the proved bounds, order by order"
    quick = True
    by_name = True
    events = (
        Shuffle,
        SubsampledShuffle,
        SelfSampledShuffle,
        SubsampledMultiMessage,
        CldpRound,
        GaussianRelease,
        GaussianReport,
        SubsampledGaussian,
        SubsampledGaussianRelease,
        SelfSampledGaussianRelease,
        LaplaceRelease,
        SubsampledLaplace,
        EpochRelease,
        SecretEpochRelease,
        LocalReport,
        CentralRelease,
    )

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return the least epsilon over whole orders."""
        refuse_mixed({neighbours(event) for event, _ in events})
        return super().compute(events, delta)

    def curve(self, event: Release, orders: Array) -> Array:
        """Return one event's least divergences."""
        return best_vector(event, orders)
