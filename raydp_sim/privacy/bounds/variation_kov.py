"""A run by composing the bound on a named randomizer."""

from typing import Any

from raydp_sim.privacy.bound import Result
from raydp_sim.privacy.composition.pld_runs import refuse_unnamed
from raydp_sim.privacy.composition.runs import ComposedRun, composed
from raydp_sim.privacy.curves.variation import variation_epsilon
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import Shuffle, SubsampledShuffle


class VariationKov(ComposedRun):
    """Compose the variation-ratio bound, after sampling, over the rounds of one randomizer.

    Half of delta goes to the composition. Randomizers as for `pld-variation`.

    Example:
        >>> event = SubsampledShuffle(2.0, 10**6, 1000, "krr", 100)
        >>> round(VariationKov().epsilon([(event, 10**5)], 1e-8).epsilon, 2)
        0.31
    """

    name = "variation+kov"
    events = (Shuffle, SubsampledShuffle)
    source = "variation ratio (blanket.py); Kairouz, Oh & Viswanath 2015, Theorem 3.5"
    by_name = True

    def refuse_others(self, event: Any) -> None:
        """Raise `Unsupported` unless the event names a randomizer whose pair is known."""
        super().refuse_others(event)
        refuse_unnamed(self.name, event)

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return the composed epsilon."""
        names = {(event.randomizer, event.alphabet) for event, _ in events}
        if len(names) > 1:
            raise NotApplicable("variation+kov takes rounds of one randomizer; use pld-variation")
        name, alphabet = names.pop()

        def amplify(epsilon0: float, messages: int, delta: float) -> float:
            return variation_epsilon(name, epsilon0, messages, delta, alphabet)

        return composed(events, delta, amplify, self.kind, self.split)
