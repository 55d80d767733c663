"""A run by composing the closed form of the clones bound."""

from raydp_sim.privacy.amplification import fmt_closed
from raydp_sim.privacy.runs import ComposedRun


class FmtClosedKov(ComposedRun):
    """Compose the closed form of the clones bound, after sampling, over the rounds.

    Half of delta goes to the composition. Where the bound is silent a round is (epsilon0, 0).

    Example:
        >>> from raydp_sim.privacy.events import SubsampledShuffle
        >>> event = SubsampledShuffle(2.0, 10**6, 1000)
        >>> round(FmtClosedKov().epsilon([(event, 10**5)], 1e-8).epsilon, 3)
        14.48
    """

    name = "fmt_closed+kov"
    source = "Feldman et al. 2021, Theorem 3.1; Kairouz, Oh & Viswanath 2015, Theorem 3.5"

    def amplify(self, epsilon0: float, messages: int, delta: float) -> float:
        """Return epsilon of one shuffle."""
        return fmt_closed(epsilon0, messages, delta)
