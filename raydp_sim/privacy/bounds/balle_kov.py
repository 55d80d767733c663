"""A run by composing the privacy blanket's bound."""

from raydp_sim.privacy.amplification import balle
from raydp_sim.privacy.runs import ComposedRun


class BalleKov(ComposedRun):
    """Compose the privacy blanket's bound, after sampling, over the rounds.

    Half of delta goes to the composition. Where the bound is silent a round is (epsilon0, 0).

    Example:
        >>> from raydp_sim.privacy.events import SubsampledShuffle
        >>> event = SubsampledShuffle(1.0, 10**6, 1000)
        >>> round(BalleKov().epsilon([(event, 10**5)], 1e-8).epsilon, 3)
        0.711
    """

    name = "balle+kov"
    source = "Balle et al. 2019; Kairouz, Oh & Viswanath 2015, Theorem 3.5"

    def amplify(self, epsilon0: float, messages: int, delta: float) -> float:
        """Return epsilon of one shuffle."""
        return balle(epsilon0, messages, delta)
