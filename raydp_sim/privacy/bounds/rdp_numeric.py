"""A run of shuffles by the evaluated upper bound."""

from raydp_sim.privacy.bounds.numeric import Numeric
from raydp_sim.privacy.events import Shuffle
from raydp_sim.privacy.runs import RdpRun


class RdpNumeric(RdpRun):
    """Add `numeric` over the run and convert at the best whole order.

    Example:
        >>> round(RdpNumeric().epsilon([(Shuffle(0.5, 10**6), 10**5)], 1e-8).epsilon, 4)
        1.1116
    """

    name = "rdp-numeric"
    status = "proved"
    events = (Shuffle,)
    source = Numeric.source
    bound = Numeric()
    quick = True
