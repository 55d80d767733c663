"""The lower curves converted: what no better bound on divergences could improve on."""

from raydp_sim.privacy.bounds.lower import Lower
from raydp_sim.privacy.runs import RdpRun


class RdpLower(RdpRun):
    """Add `lower` over the run and convert; orders up to 17370, on which the result may depend.

    It is no lower bound on epsilon, since the conversion itself loses.

    Example:
        >>> from raydp_sim.privacy.events import Shuffle
        >>> round(RdpLower().epsilon([(Shuffle(0.5, 10**6), 10**5)], 1e-8).epsilon, 4)
        0.8549
    """

    name = "rdp-lower"
    status = "heuristic"  # only the divergences themselves are bounded from below
    events = Lower.events
    source = Lower.source
    bound = Lower()
    alpha_max = 20_000
    note = "a lower curve converted: a floor for bounds by divergences, not for epsilon"
