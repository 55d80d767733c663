"""A run of sampled clients with several messages, by generic amplification."""

from raydp_sim.privacy.bounds.wbk_multi import WbkMulti
from raydp_sim.privacy.events import SubsampledMultiMessage
from raydp_sim.privacy.runs import RdpRun


class RdpWbkMulti(RdpRun):
    """Add `wbk_multi` over the run and convert at the best whole order.

    Example:
        >>> event = SubsampledMultiMessage((1.0, 1.0), 10**6, 1000)
        >>> round(RdpWbkMulti().epsilon([(event, 10**5)], 1e-8).epsilon, 4)
        0.3995
    """

    name = "rdp-wbk-multi"
    events = (SubsampledMultiMessage,)
    source = WbkMulti.source
    bound = WbkMulti()
