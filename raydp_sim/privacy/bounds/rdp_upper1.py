"""A run of shuffles by the general upper bound."""

from raydp_sim.privacy.bounds.upper1 import Upper1
from raydp_sim.privacy.events import Shuffle
from raydp_sim.privacy.runs import RdpRun


class RdpUpper1(RdpRun):
    """Add `upper1` over the run and convert at the best whole order.

    Example:
        >>> round(RdpUpper1().epsilon([(Shuffle(0.5, 10**6), 10**5)], 1e-8).epsilon, 4)
        1.6398
    """

    name = "rdp-upper1"
    status = "proved"
    events = (Shuffle,)
    source = Upper1.source
    bound = Upper1()
