"""A run of rounds that sample clients and then points."""

from raydp_sim.privacy.bounds.cldp import Cldp
from raydp_sim.privacy.events import CldpRound
from raydp_sim.privacy.runs import RdpRun


class RdpCldp(RdpRun):
    """Add `cldp` over the run and convert at the best whole order.

    Example:
        >>> round(RdpCldp().epsilon([(CldpRound(2.0, 10**6, 1, 1000, 1), 10**5)], 1e-8).epsilon, 4)
        1.0402
    """

    name = "rdp-cldp"
    status = "proved"
    events = (CldpRound,)
    source = Cldp.source
    bound = Cldp()
