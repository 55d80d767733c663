"""A run of subsampled shuffles by generic amplification without its minima."""

from raydp_sim.privacy.bounds.wbk import WbkNaive
from raydp_sim.privacy.events import SubsampledShuffle
from raydp_sim.privacy.runs import RdpRun


class RdpWbkNaive(RdpRun):
    """Add `wbk_naive` over the run and convert at the best whole order.

    Example:
        >>> event = SubsampledShuffle(2.0, 10**6, 1000)
        >>> round(RdpWbkNaive().epsilon([(event, 10**5)], 1e-8).epsilon, 4)
        2.6558
    """

    name = "rdp-wbk-naive"
    status = "proved"
    events = (SubsampledShuffle,)
    source = WbkNaive.source
    bound = WbkNaive()
