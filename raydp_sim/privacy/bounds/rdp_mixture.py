"""A run of shuffles that clients join by their own coins."""

from raydp_sim.privacy.bounds.poisson_mixture import PoissonMixture
from raydp_sim.privacy.events import SelfSampledShuffle
from raydp_sim.privacy.runs import RdpRun


class RdpMixture(RdpRun):
    """Add `poisson_mixture` over the run and convert at the best whole order.

    Example:
        >>> event = SelfSampledShuffle(2.0, 10**6, 0.001)
        >>> round(RdpMixture().epsilon([(event, 10**5)], 1e-8).epsilon, 4)
        1.0394
    """

    name = "rdp-mixture"
    status = "proved"
    events = (SelfSampledShuffle,)
    source = PoissonMixture.source
    bound = PoissonMixture()
