"""A run of subsampled shuffles by the general upper bound."""

from raydp_sim.privacy.bounds.upper import Upper
from raydp_sim.privacy.events import SubsampledShuffle
from raydp_sim.privacy.runs import RdpRun


class RdpSubsampled(RdpRun):
    """Add `upper` over the run and convert at the best whole order.

    Example:
        >>> event = SubsampledShuffle(2.0, 10**6, 1000)
        >>> round(RdpSubsampled().epsilon([(event, 10**5)], 1e-8).epsilon, 4)
        1.0402
    """

    name = "rdp-subsampled"
    status = "proved"
    events = (SubsampledShuffle,)
    source = Upper.source
    bound = Upper()
