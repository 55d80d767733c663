"""A run by composing the numerical clones bound."""

from raydp_sim.privacy.clones import clones_epsilon
from raydp_sim.privacy.runs import ComposedRun


class FmtNumericKov(ComposedRun):
    """Compose the numerical clones bound, after sampling, over the rounds.

    Half of delta goes to the composition. Where the bound is silent a round is (epsilon0, 0).

    Example:
        >>> from raydp_sim.privacy.events import SubsampledShuffle
        >>> event = SubsampledShuffle(2.0, 10**6, 1000)
        >>> round(FmtNumericKov().epsilon([(event, 10**5)], 1e-8).epsilon, 3)
        2.53
    """

    name = "fmt_numeric+kov"
    source = "Feldman et al. 2021, dominating pair; Kairouz, Oh & Viswanath 2015, Theorem 3.5"

    def amplify(self, epsilon0: float, messages: int, delta: float) -> float:
        """Return epsilon of one shuffle."""
        return clones_epsilon(epsilon0, messages, delta)
