"""The readers: actors that fold what they are handed and make releases of it."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.actors.inbox import Inbox, batch_counts, of_release, releasable
from raydp_sim.actors.planning import Planning
from raydp_sim.actors.seeds import opened
from raydp_sim.errors import RunError
from raydp_sim.mechanisms.wires.fixed import add
from raydp_sim.privacy.ledger.store import canonical
from raydp_sim.random import Ids
from raydp_sim.scenario import Scenario, setting_of
from raydp_sim.schedule.batch import Cohorts, cohort_of
from raydp_sim.stream.batches import Counted, Order, Reports, Shuffled, Slotted, Summed
from raydp_sim.stream.shuffle import Gathered, interleave
from raydp_sim.tasks.base import Arrays, Ask, Formed

_STATE, _PUBLIC, _HELD = "state", "public", "held"


def _groups(reader: int) -> tuple[str, str]:
    suffix = f"-{reader}" if reader else ""
    return f"{_STATE}{suffix}", f"{_PUBLIC}{suffix}"


def state_of(reader: int, saved: dict[str, Arrays] | None) -> dict[str, Arrays] | None:
    """Return what a checkpoint has of one reader: it is handed nothing else of it.

    Example:
        >>> state_of(1, {"state": {}, "state-1": {"total": np.zeros(2)}, "schedule": {}})
        {'state': {'total': array([0., 0.])}, 'public': {}}
    """
    if saved is None:
        return None
    state, public = _groups(reader)
    own = {_STATE: saved.get(state, {}), _PUBLIC: saved.get(public, {})}
    # Who sent what the server still holds; nobody else's business.
    return own if reader or _HELD not in saved else {**own, _HELD: saved[_HELD]}


class AggregatorActor:
    """Consumes the shuffled stream chunk by chunk and holds a reader's state.

    It is handed `Shuffled` or `Slotted` chunks and nothing else, and holds no handle to any other
    actor. The first reader leads the run: it says what is asked next.
    """

    def __init__(self, document: dict[str, Any], reader: int = 0) -> None:
        self.scenario = Scenario.model_validate(document)
        self.setting = setting_of(self.scenario)
        self.reader = reader
        self.begin(0, None)

    def begin(self, repetition: int, saved: dict[str, Arrays] | None) -> None:
        """Start a repetition, from a checkpoint if there is one."""
        self.repetition = repetition
        if saved is None:
            setting = opened(self.setting, self.scenario.stream(repetition))
            first = self.scenario.task.init(setting)
            saved = {_STATE: first, _PUBLIC: {}}
        self.task_state, self.public = saved[_STATE], saved[_PUBLIC]
        self.asks: dict[int, Ask] = {}
        self.standing: Ask | None = None
        self.accumulators: dict[int, Any] = {}

    def ask(self, release: int) -> tuple[Ask | None, Arrays]:
        """Say what is asked next, and expect answers to it.

        Returns:
            For the driver, what is public and small, or None if the task ends the run; for the
            clients, the broadcast.
        """
        task = self.scenario.task
        ask = task.ask(self.setting, self.task_state)
        if ask is None:
            return None, {}
        last = release == task.rounds - 1
        ask = replace(ask, accounted=last or not task.adaptive or task.accounts(self.task_state))
        self._expect(release, ask)
        return replace(ask, broadcast={}), ask.broadcast

    def expect(self, release: int, head: Ask, broadcast: Arrays) -> None:
        """Expect answers to an ask of the lead reader's."""
        self._expect(release, replace(head, broadcast=broadcast))

    def _expect(self, release: int, ask: Ask) -> None:
        if self.scenario.task.adaptive:
            self.asks = {release: ask}  # the one before is over, released or withheld
        else:
            self.standing = ask

    def _ask(self, release: int) -> Ask:
        ask = self.standing or self.asks.get(release)
        assert ask is not None, "every release begins with an ask"
        return ask

    def fold(self, release: int, *parts: Shuffled | Slotted | Counted) -> None:
        """Fold one chunk, given as the shufflers' shares of it."""
        listed: list[Any] = []
        for part in parts:
            if isinstance(part, Counted):
                self._fold(release, part)
                continue
            if not isinstance(part, Shuffled | Slotted):
                raise RunError(f"a reader was handed {type(part).__name__}, not Shuffled")
            listed.append(part)
        if listed:
            self._fold(release, interleave(listed))

    def _fold(self, release: int, batch: Any) -> None:
        ask, task = self._ask(release), self.scenario.task
        if release not in self.accumulators:
            self.accumulators[release] = task.zero(self.setting, ask, self.reader)
        before = self.accumulators[release]
        if isinstance(getattr(batch, "payload", None), Summed):
            self.accumulators[release] = reduce(add, batch.payload.parts, before)
            return
        self.accumulators[release] = task.fold(self.setting, ask, self.reader, before, batch)

    def step(
        self,
        release: int,
        reports: int,
        weight: float,
        slots: tuple[int, ...] | None,
        following: int | None,
        *rest: Any,
    ) -> tuple[Ask | None, Arrays, Arrays]:
        """Make the release from what was folded, and say what is asked next.

        Args:
            release: its number.
            reports: in it.
            weight: their mean weight.
            slots: reports per slot.
            following: the release that is asked for next; None: nothing is to be said of it.
            rest: of the batch, still to be folded.

        Returns:
            Of the next ask what `ask` returns; and what is made public, which the driver never
            fetches.
        """
        if rest:
            self.fold(release, *rest)
        stream = self.scenario.stream(self.repetition).at("aggregator", release)
        if self.reader:
            stream = stream.at("reader", self.reader)
        ask, task = self._ask(release), self.scenario.task
        folded = self.accumulators.pop(release, None)
        if folded is None:
            folded = task.zero(self.setting, ask, self.reader)
        formed = Formed(reports, self.scenario.trust_model, weight=weight, slots=slots)
        self.task_state, self.public = task.step(
            self.setting, ask, self.reader, self.task_state, folded, formed, stream
        )
        self.asks.pop(release, None)
        said = (None, {}) if following is None else self.ask(following)
        # A copy, as another process would get: the next step may overwrite what this one made.
        return *said, deepcopy(self.public)

    def steps(
        self,
        releases: Sequence[tuple[int, float]],
        reports: Sequence[int],
        following: int | None,
        *whole: Sequence[Shuffled],
    ) -> tuple[Ask | None, Arrays, list[Arrays]]:
        """Make several releases, one after the other, and say what is asked next.

        Args:
            releases: number and mean weight of each.
            reports: in each; only the ledger returns it, once all are paid for.
            following: as of `step`, of the last.
            whole: the batches, unless they are here already.
        """
        made: list[Arrays] = []
        ask: Ask | None = None
        broadcast: Arrays = {}
        for place, ((release, weight), number) in enumerate(zip(releases, reports, strict=True)):
            after = following if place == len(releases) - 1 else None
            batch = (span[place] for span in whole)
            ask, broadcast, public = self.step(release, number, weight, None, after, *batch)
            made.append(public)
        return ask, broadcast, made

    def withheld(self, release: int, asked: int) -> tuple[None, Arrays]:
        """Hear that a batch was too small to be released, of so many who were handed a slot.

        Returns:
            As `step` does; nothing may be made public.
        """
        ask, task = self._ask(release), self.scenario.task
        self.task_state, public = task.withheld(self.setting, ask, self.task_state, asked)
        self.public = public or self.public
        self.asks.pop(release, None)
        return None, public

    def checkpoint(self) -> dict[str, Arrays]:
        """Return the reader's state and its last release."""
        state, public = _groups(self.reader)
        return {state: self.task_state, public: self.public}


class ServerActor(AggregatorActor):
    """The lead reader without a shuffler: it collects the reports and knows who sent them."""

    def begin(self, repetition: int, saved: dict[str, Arrays] | None) -> None:
        """Start a repetition with an empty inbox."""
        super().begin(repetition, saved)
        self.inbox = Inbox()
        held = (saved or {}).get(_HELD)
        self.senders: Ids | range | None = None if held is None else canonical(held["senders"])
        self.closed: dict[int, tuple[Gathered, NDArray[np.int64] | None]] = {}
        self.planning = Planning(self.scenario, repetition)

    def admit(self, source: int, epoch: int) -> None:
        """See `Inbox.admit`."""
        self.inbox.admit(source, epoch)

    def collect(self, *batches: Reports) -> list[bool]:
        """See `Inbox.collect`."""
        return [self.inbox.collect(batch) for batch in batches]

    def take(self, release: int, *given: Reports | Sequence[Reports | None]) -> list[bool]:
        """See `ShufflerActor.take`."""
        return self.collect(*(of_release(release, each) for each in given))

    def plan(self, saved: Arrays | None, absent: Any) -> None:
        """See `Planning.start`."""
        self.planning.start(saved, absent)

    def choose(self, *arguments: Any) -> tuple[Any, Any]:
        """See `Planning.choose`."""
        return self.planning.choose(*arguments)

    def choose_all(self, *arguments: Any) -> tuple[Any, Any]:
        """See `Planning.choose_all`."""
        return self.planning.choose_all(*arguments)

    def scheduled(self, finished: int) -> Arrays:
        """See `Planning.saved`."""
        return self.planning.saved(finished)

    def close(
        self, release: int, head: Ask, cohorts: Cohorts
    ) -> tuple[dict[str, Any], Ids | range]:
        """Close a batch; see `ShufflerActor.close`. It is folded in one piece.

        Nobody drops a report unseen here: if the server is not trusted, those that are not used
        are paid for as well.
        """
        if head.held:
            if self.senders is None:
                raise RunError(f"release {release} is of what was sent before, and nothing was")
            nothing = {"messages": 0, "duplicates": 0, "bytes": 0}
            return {"reports": len(self.senders), **nothing}, self.senders
        batch, cohort = self.inbox.close(release), cohort_of(release, cohorts)
        counts, slots = batch_counts(batch, head, cohort)
        self.closed[release] = batch, slots
        senders = batch.senders.participants()
        if self.scenario.trust_model.pays_unused and cohort is not None:
            senders = np.union1d(senders, cohort.unused).astype(np.uint32)
        return counts, senders

    def gather(
        self,
        releases: Sequence[int],
        head: Ask,
        cohorts: Cohorts,
        *spans: Sequence[Reports | None],
    ) -> tuple[Any, dict[int, Ids | range], None]:
        """Collect all of some releases and close them; see `ShufflerActor.gather`.

        The batches stay here.
        """
        if not self.inbox.collect_all(spans):
            return None, {}, None
        closed = [self.close(release, head, cohorts) for release in releases]
        counts = [each for each, _ in closed]
        participants = {r: who for r, (_, who) in zip(releases, closed, strict=True)}
        enough = all(releasable(self.scenario, head, each) for each in counts)
        return (counts, enough), participants, None

    def handed(self, release: int) -> Reports:
        """Return a closed batch for another reader; called only once the release is paid for."""
        batch, slots = self.closed[release]
        return Reports(release, 0, 0, batch.senders, batch.bucket, batch.payload, slot=slots)

    def step(self, release: int, *arguments: Any) -> tuple[Ask | None, Arrays, Arrays]:
        """Fold the closed batch and make the release; called only once it is paid for."""
        if release in self.closed:
            self._fold(release, self.handed(release))
            self.senders = self.closed.pop(release)[0].senders.participants()
        return super().step(release, *arguments)

    def fold(self, release: int, *parts: Any) -> None:
        """Fold an order of the shuffler's: nothing else reaches a server by this way."""
        for part in parts:
            if not isinstance(part, Order):
                raise RunError(f"a server was handed {type(part).__name__}, not Order")
            ask, task = self._ask(release), self.scenario.task
            before = self.accumulators.get(release)
            if before is None:
                before = task.zero(self.setting, ask, self.reader)
            self.accumulators[release] = task.ordered(before, part.places)

    def checkpoint(self) -> dict[str, Arrays]:
        """Return the state, and who sent what it holds if later releases are made of that."""
        saved = super().checkpoint()
        if self.senders is not None and self.scenario.task.keeps_records:
            saved[_HELD] = {"senders": np.asarray(self.senders, np.uint32)}
        return saved

    def discard(self, release: int) -> None:
        """Drop a batch that is too small to be used."""
        self.closed.pop(release, None)


class FollowerActor(AggregatorActor):
    """A further reader without a shuffler: it is handed the reports that the server collected."""

    def fold(self, release: int, *parts: Any) -> None:
        """Fold a closed batch."""
        for part in parts:
            self._fold(release, part)
