"""A run of subsampled shuffles by generic amplification of the dominating pair."""

from raydp_sim.privacy.bounds.wbk_clones import WbkClones
from raydp_sim.privacy.events import SubsampledShuffle
from raydp_sim.privacy.runs import RdpRun


class RdpWbkClones(RdpRun):
    """Add `wbk_clones` over the run and convert at the best whole order.

    Example:
        >>> event = SubsampledShuffle(2.0, 10**6, 1000)
        >>> round(RdpWbkClones().epsilon([(event, 10**5)], 1e-8).epsilon, 4)
        0.5336
    """

    name = "rdp-wbk-clones"
    events = (SubsampledShuffle,)
    source = WbkClones.source
    bound = WbkClones()
