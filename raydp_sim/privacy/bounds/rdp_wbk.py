"""A run of subsampled shuffles by generic amplification."""

from raydp_sim.privacy.bounds.wbk import Wbk
from raydp_sim.privacy.events import SubsampledShuffle
from raydp_sim.privacy.runs import RdpRun


class RdpWbk(RdpRun):
    """Add `wbk` over the run and convert at the best whole order.

    Example:
        >>> event = SubsampledShuffle(2.0, 10**6, 1000)
        >>> round(RdpWbk().epsilon([(event, 10**5)], 1e-8).epsilon, 4)
        1.0237
    """

    name = "rdp-wbk"
    status = "proved"
    events = (SubsampledShuffle,)
    source = Wbk.source
    bound = Wbk()
