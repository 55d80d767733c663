"""A run of shuffles by the loss distributions of the clone pairs."""

from typing import Any

from raydp_sim.privacy.composition.pld_runs import PldRun
from raydp_sim.privacy.curves.clones import clones_epsilon


class PldClones(PldRun):
    """Convolve the privacy losses of the pair that dominates every epsilon0-LDP shuffle.

    Any randomizer, replace-one neighbours.

    Example:
        >>> from raydp_sim.privacy.events import SubsampledShuffle
        >>> event = SubsampledShuffle(2.0, 10**6, 1000)
        >>> round(PldClones().epsilon([(event, 10**5)], 1e-8).epsilon, 3)
        0.208
    """

    name = "pld-clones"
    source = "Feldman et al. 2021, Theorem 3.1; Zhu, Dong & Wang 2022"

    def randomizer(self, event: Any) -> tuple[str | None, int | None]:
        """Return nothing: the pair holds for every randomizer."""
        return None, None

    def shuffle(self, event: Any, messages: int, delta: float) -> float:
        """Return epsilon of one shuffle."""
        return clones_epsilon(event.epsilon0, messages, delta)
