"""A run of shuffles of those who joined by their own coins, by loss distributions."""

from typing import Any

from raydp_sim.privacy.bound import Result, RunBound
from raydp_sim.privacy.composition.coin_rounds import CoinRound
from raydp_sim.privacy.composition.pld import compose_epsilon
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import SelfSampledShuffle
from raydp_sim.privacy.laws import Law, clones, law_of

# Beyond, ratios of densities are too large for lattices, and shuffles hide next to nothing.
_LARGEST = 20.0


class PldCoins(RunBound):
    """Convolve the losses of batches of every number that may have joined, as likely as it is.

    Of the named randomizer where its law is known, else of the clones of any. Replace-one
    neighbours; coin_rounds.py has the theorem.

    Example:
        >>> event = SelfSampledShuffle(1.5, 60_000, 1 / 6, "rbin")
        >>> round(PldCoins().epsilon([(event, 210)], 1e-5).epsilon, 3)
        0.165
    """

    name = "pld-coins"
    events = (SelfSampledShuffle,)
    by_name = True
    source = "coin_rounds.py and law_rounds.py; Zhu, Dong & Wang 2022"
    sharp = True

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return the composed epsilon."""
        rounds = [
            CoinRound(_law(event), event.clients, event.probability, times)
            for event, times in events
        ]
        if max(one.messages.most for one in rounds) > _LARGEST:
            raise NotApplicable(f"{self.name} is computed up to a loss of {_LARGEST:g} per report")
        return Result(compose_epsilon(rounds, delta))


def _law(event: SelfSampledShuffle) -> Law:
    try:
        return law_of(event.randomizer, event.epsilon0, event.alphabet)
    except Unsupported:
        return clones(event.epsilon0)
