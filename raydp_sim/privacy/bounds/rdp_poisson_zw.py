"""A run of subsampled shuffles by the bound for Poisson sampling: a heuristic."""

from raydp_sim.privacy.bounds.poisson_zw import PoissonZw
from raydp_sim.privacy.events import SubsampledShuffle
from raydp_sim.privacy.runs import RdpRun


class RdpPoissonZw(RdpRun):
    """Add `poisson_zw` over the run and convert at the best whole order.

    Example:
        >>> event = SubsampledShuffle(3.0, 10**6, 1000)
        >>> round(RdpPoissonZw().epsilon([(event, 10**5)], 1e-8).epsilon, 4)
        2.7396
    """

    name = "rdp-poisson-zw"
    status = "heuristic"
    events = (SubsampledShuffle,)
    source = PoissonZw.source
    bound = PoissonZw()
