"""A run of any events by the least proved divergence at every order."""

from raydp_sim.privacy.caps import best_vector
from raydp_sim.privacy.events import (
    CentralRelease,
    CldpRound,
    GaussianRelease,
    LaplaceRelease,
    LocalReport,
    Release,
    SelfSampledShuffle,
    Shuffle,
    SubsampledGaussian,
    SubsampledShuffle,
)
from raydp_sim.privacy.numerics import Array
from raydp_sim.privacy.runs import RdpRun


class RdpBest(RdpRun):
    """Take each event's least proved divergence at each order, caps included, add and convert.

    Different kinds of event may be mixed. Sampled Gaussian noise is for neighbours that add or
    remove a record: mixed with others, the guarantee is for whoever is a neighbour in both senses.

    Example:
        >>> from raydp_sim.privacy.events import GaussianRelease
        >>> round(RdpBest().epsilon([(GaussianRelease(2.0), 1)], 1e-5).epsilon, 4)
        2.168
    """

    name = "rdp-best"
    source = "the least of the proved bounds, order by order"
    events = (
        Shuffle,
        SubsampledShuffle,
        SelfSampledShuffle,
        CldpRound,
        GaussianRelease,
        SubsampledGaussian,
        LaplaceRelease,
        LocalReport,
        CentralRelease,
    )

    def curve(self, event: Release, orders: Array) -> Array:
        """Return one event's least divergences."""
        return best_vector(event, orders)
