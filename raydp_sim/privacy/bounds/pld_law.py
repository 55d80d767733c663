"""A run of shuffles of a known law, sampled or not, by loss distributions of its blanket."""

from typing import Any

from raydp_sim.privacy.bound import Result, RunBound
from raydp_sim.privacy.composition.law_rounds import LawRound
from raydp_sim.privacy.composition.pld import compose_epsilon
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import (
    MultiMessageShuffle,
    Release,
    Shuffle,
    SubsampledMultiMessage,
    SubsampledShuffle,
)
from raydp_sim.privacy.laws import Law, coins, law_of

# Beyond, ratios of densities are too large for lattices, and shuffles hide next to nothing.
LARGEST = 20.0
_BITS = ("rbin", "2rr")


class PldLaw(RunBound):
    """Convolve the losses of the blanket of the randomizer that the events name.

    laws.py has the laws, law_rounds.py the theorem, for samples too. Several messages per client of
    "rbin" or "2rr" are taken as whole reports, of which the multisets per message are a function.
    Every client runs that randomizer; replace-one neighbours.

    Example:
        >>> event = SubsampledShuffle(2.0, 10**6, 1000, "krr", 100)
        >>> round(PldLaw().epsilon([(event, 10**5)], 1e-8).epsilon, 3)
        0.039
    """

    name = "pld-law"
    events = (Shuffle, SubsampledShuffle, MultiMessageShuffle, SubsampledMultiMessage)
    source = "Balle et al. 2019, Lemma 5.3, and law_rounds.py; Zhu, Dong & Wang 2022"
    sharp = True
    by_name = True

    def taken_apart(self, event: Release) -> list[Release]:
        """Return the event as it is: its messages stay together."""
        return [event]

    def refuse_others(self, event: Any) -> None:
        """Raise `Unsupported` unless the law of the event's messages is known."""
        super().refuse_others(event)
        law_of_reports(event)

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return the composed epsilon."""
        rounds = [law_round(law_of_reports(event), event, times) for event, times in events]
        return Result(composed(self.name, rounds, delta))


def law_of_reports(event: Any) -> Law:
    """Return the law of one client's report, all of its messages together."""
    losses = getattr(event, "losses", None)
    if losses is None:
        return law_of(event.randomizer, event.epsilon0, event.alphabet)
    if event.randomizer not in _BITS:
        raise Unsupported(f"the law of whole reports is known of {' and '.join(_BITS)} messages")
    return coins(losses)


def law_round(law: Law, event: Any, times: int) -> LawRound:
    """Return the rounds of an event whose reports have this law."""
    if isinstance(event, Shuffle | MultiMessageShuffle):
        return LawRound(law, event.n, times)
    return LawRound(law, event.sampled, times, event.rate)


def composed(name: str, rounds: list[LawRound], delta: float) -> float:
    """Return epsilon of all rounds; a single one is evaluated directly."""
    if max(one.messages.most for one in rounds) > LARGEST:
        raise NotApplicable(f"{name} is computed up to a loss of {LARGEST:g} per report")
    if len(rounds) == 1 and rounds[0].times == 1:
        return rounds[0].epsilon(delta)
    return compose_epsilon(rounds, delta)
