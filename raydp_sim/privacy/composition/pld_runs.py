"""Whole runs by privacy-loss distributions: what the bounds on named and any randomizers share."""

from dataclasses import replace
from typing import Any

from raydp_sim.privacy.bound import Result, RunBound
from raydp_sim.privacy.composition.messages import report_round
from raydp_sim.privacy.composition.pld import Round, compose_epsilon, shuffle_round
from raydp_sim.privacy.composition.runs import SHAPES
from raydp_sim.privacy.curves.sampling import subsample
from raydp_sim.privacy.curves.variation import BLANKETS, blanket_of, is_known
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import (
    CldpRound,
    Shuffle,
    SubsampledMultiMessage,
    SubsampledShuffle,
)

# Beyond, the tilt of a pair, tanh(epsilon0/2), has no digits left.
_LARGEST = 27.0


class PldRun(RunBound):
    """Convolve the losses of the rounds' dominating pairs; a single shuffle is evaluated directly.

    Rounds may differ in size, local loss, messages and sampling rate. The time grows with the
    logarithm of their number at most. pld.py has the theorem, messages.py that of several messages
    per client, losses.py how it errs upwards.
    """

    events = (Shuffle, SubsampledShuffle, SubsampledMultiMessage, CldpRound)
    sharp = True

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return the composed epsilon."""
        largest = max(_loss(event) for event, _ in events)
        if largest > _LARGEST:
            raise NotApplicable(f"{self.name} is computed up to epsilon0 {_LARGEST:g}")
        first, once = events[0]
        if len(events) == 1 and once == 1 and type(first) in SHAPES:
            return Result(self._single(first, delta))
        rounds = [self._round(event, times) for event, times in events]
        return Result(compose_epsilon(rounds, delta))

    def _round(self, event: Any, times: int) -> Round:
        clients, drawn = getattr(event, "clients", None), 1.0
        if isinstance(event, CldpRound):
            clients = event.clients * event.points
            if event.sampled_points > 1:
                # Only its own points hide a point; who is drawn decides whether anything is seen.
                clients = event.sampled_clients * event.points
                drawn = event.sampled_clients / event.clients
        name, alphabet = self.randomizer(event)
        if type(event) not in SHAPES:
            return report_round(event.losses, event.sampled, times, name, clients)
        messages = SHAPES[type(event)](event)[0]
        found = shuffle_round(event.epsilon0, messages, times, name, alphabet, clients)
        return found if drawn == 1.0 else replace(found, drawn=drawn)

    def _single(self, event: Any, delta: float) -> float:
        # One sampled round needs `chance` times the delta of its shuffle, at log(1 + rate (e^e-1)).
        messages, rate, chance = SHAPES[type(event)](event)
        if delta >= chance:
            return 0.0
        return subsample(self.shuffle(event, messages, delta / chance), 0.0, rate)[0]

    def randomizer(self, event: Any) -> tuple[str | None, int | None]:
        """Return the name and alphabet by which the pair is chosen; None: any randomizer."""
        raise NotImplementedError

    def shuffle(self, event: Any, messages: int, delta: float) -> float:
        """Return epsilon of one shuffle of that many messages."""
        raise NotImplementedError


def _loss(event: Any) -> float:
    """Return the loss of the message that loses most."""
    several = getattr(event, "losses", None)
    return float(event.epsilon0 if several is None else max(several))


def refuse_unnamed(bound: str, event: Any) -> None:
    """Refuse an event without a randomizer that variation.py knows, or with a wrong alphabet."""
    if not is_known(event.randomizer):
        named = "names no randomizer" if event.randomizer is None else f"is of {event.randomizer}"
        raise Unsupported(f"{bound} is proved for {', '.join(BLANKETS)} only; the event {named}")
    try:
        blanket_of(event.randomizer, _loss(event), getattr(event, "alphabet", None))
    except ValueError as fault:
        raise NotApplicable(str(fault)) from None
