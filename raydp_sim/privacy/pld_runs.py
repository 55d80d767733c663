"""Whole runs by privacy-loss distributions: what the bounds on named and any randomizers share."""

from typing import Any

from raydp_sim.privacy.bounds.base import Result, RunBound
from raydp_sim.privacy.composition import subsample
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import Shuffle, SubsampledShuffle
from raydp_sim.privacy.pld import compose_epsilon, shuffle_round
from raydp_sim.privacy.runs import SHAPES
from raydp_sim.privacy.variation import BLANKETS, blanket_of

# Beyond, the tilt of a pair, tanh(epsilon0/2), has no digits left.
_LARGEST = 27.0


class PldRun(RunBound):
    """Convolve the losses of the rounds' dominating pairs; a single release is evaluated directly.

    Rounds may differ in size, local loss and sampling rate. The time grows with the logarithm of
    their number at most. pld.py has the theorem, losses.py how it errs upwards.
    """

    events = (Shuffle, SubsampledShuffle)

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return the composed epsilon."""
        largest = max(event.epsilon0 for event, _ in events)
        if largest > _LARGEST:
            raise NotApplicable(f"{self.name} is computed up to epsilon0 {_LARGEST:g}")
        if len(events) == 1 and events[0][1] == 1:
            return Result(self._single(events[0][0], delta))
        rounds = []
        for event, times in events:
            messages = SHAPES[type(event)](event)[0]
            clients = getattr(event, "clients", None)
            name, alphabet = self.randomizer(event)
            rounds.append(shuffle_round(event.epsilon0, messages, times, name, alphabet, clients))
        return Result(compose_epsilon(rounds, delta))

    def _single(self, event: Any, delta: float) -> float:
        # One sampled round needs rate times the delta of its shuffle, at log(1 + rate (e^e - 1)).
        messages, rate, _ = SHAPES[type(event)](event)
        if delta >= rate:
            return 0.0
        return subsample(self.shuffle(event, messages, delta / rate), 0.0, rate)[0]

    def randomizer(self, event: Any) -> tuple[str | None, int | None]:
        """Return the name and alphabet by which the pair is chosen; None: any randomizer."""
        raise NotImplementedError

    def shuffle(self, event: Any, messages: int, delta: float) -> float:
        """Return epsilon of one shuffle of that many messages."""
        raise NotImplementedError


def refuse_unnamed(bound: str, event: Any) -> None:
    """Refuse an event without a randomizer that variation.py knows, or with a wrong alphabet."""
    if event.randomizer not in BLANKETS:
        named = "names no randomizer" if event.randomizer is None else f"is of {event.randomizer}"
        raise Unsupported(f"{bound} is proved for {', '.join(BLANKETS)} only; the event {named}")
    try:
        blanket_of(event.randomizer, event.epsilon0, event.alphabet)
    except ValueError as fault:
        raise NotApplicable(str(fault)) from None
