"""A run of shuffles of a named randomizer by the loss distributions of its own pairs."""

from typing import Any

from raydp_sim.privacy.composition.pld_runs import PldRun, refuse_unnamed
from raydp_sim.privacy.curves.variation import variation_epsilon


class PldVariation(PldRun):
    """Convolve the losses of the variation-ratio pair of the randomizer that the events name.

    For "2rr", "krr" and "hadamard" with their alphabet, "rbin" and "laplace". Every client runs
    that randomizer; replace-one neighbours. variation.py and blanket.py have the proofs.

    Example:
        >>> from raydp_sim.privacy.events import SubsampledShuffle
        >>> event = SubsampledShuffle(2.0, 10**6, 1000, "krr", 100)
        >>> round(PldVariation().epsilon([(event, 10**5)], 1e-8).epsilon, 3)
        0.04
    """

    name = "pld-variation"
    source = "variation ratio (blanket.py); Zhu, Dong & Wang 2022"
    by_name = True

    def refuse_others(self, event: Any) -> None:
        """Raise `Unsupported` unless the event names a randomizer whose pair is known."""
        super().refuse_others(event)
        refuse_unnamed(self.name, event)

    def randomizer(self, event: Any) -> tuple[str | None, int | None]:
        """Return what the event names."""
        return event.randomizer, getattr(event, "alphabet", None)

    def shuffle(self, event: Any, messages: int, delta: float) -> float:
        """Return epsilon of one shuffle."""
        name, alphabet = self.randomizer(event)
        return variation_epsilon(name, event.epsilon0, messages, delta, alphabet)
