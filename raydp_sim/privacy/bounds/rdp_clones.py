"""A run of shuffles by the pair that dominates each of them."""

from raydp_sim.privacy.bounds.clones import Clones
from raydp_sim.privacy.events import Shuffle
from raydp_sim.privacy.runs import RdpRun


class RdpClones(RdpRun):
    """Add `clones` over the run and convert at the best whole order.

    Example:
        >>> round(RdpClones().epsilon([(Shuffle(0.5, 10**6), 10**5)], 1e-8).epsilon, 3)
        1.076
    """

    name = "rdp-clones"
    events = (Shuffle,)
    source = Clones.source
    bound = Clones()
    quick = True
