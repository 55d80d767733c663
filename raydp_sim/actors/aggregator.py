"""The readers: actors that fold what they are handed and make releases of it."""

from dataclasses import replace
from typing import Any

import numpy as np

from raydp_sim.actors.inbox import Inbox, batch_counts
from raydp_sim.actors.planning import Planning
from raydp_sim.actors.seeds import opened
from raydp_sim.errors import RunError
from raydp_sim.random import Ids
from raydp_sim.scenario import Scenario, setting_of
from raydp_sim.schedule.batch import Cohort
from raydp_sim.stream.batches import Reports, Shuffled, Slotted
from raydp_sim.stream.shuffle import Gathered, interleave
from raydp_sim.tasks.base import Arrays, Ask, Formed

_STATE, _PUBLIC = "state", "public"


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
    return {_STATE: saved.get(state, {}), _PUBLIC: saved.get(public, {})}


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
        ask = self.scenario.task.ask(self.setting, self.task_state)
        if ask is None:
            return None, {}
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

    def fold(self, release: int, *parts: Shuffled | Slotted) -> None:
        """Fold one chunk, given as the shufflers' shares of it."""
        for part in parts:
            if not isinstance(part, Shuffled | Slotted):
                raise RunError(f"a reader was handed {type(part).__name__}, not Shuffled")
        self._fold(release, interleave(parts))

    def _fold(self, release: int, batch: Any) -> None:
        ask, task = self._ask(release), self.scenario.task
        if release not in self.accumulators:
            self.accumulators[release] = task.zero(self.setting, ask, self.reader)
        before = self.accumulators[release]
        self.accumulators[release] = task.fold(self.setting, ask, self.reader, before, batch)

    def step(
        self, release: int, reports: int, weight: float, slots: tuple[int, ...] | None = None
    ) -> tuple[None, Arrays]:
        """Make the release from what was folded.

        Returns:
            Nothing, for the driver to wait for; and what is made public, which it never fetches.

        Args:
            release: its number.
            reports: in it.
            weight: their mean weight.
            slots: reports per slot.
        """
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
        return None, self.public

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
        self.closed: dict[int, Gathered] = {}
        self.planning = Planning(self.scenario, repetition)

    def admit(self, source: int, epoch: int) -> None:
        """See `Inbox.admit`."""
        self.inbox.admit(source, epoch)

    def collect(self, batch: Reports) -> bool:
        """See `Inbox.collect`."""
        return self.inbox.collect(batch)

    def plan(self, saved: Arrays | None, absent: Any) -> None:
        """See `Planning.start`."""
        self.planning.start(saved, absent)

    def choose(self, *arguments: Any) -> tuple[Any, Any]:
        """See `Planning.choose`."""
        return self.planning.choose(*arguments)

    def scheduled(self, finished: int) -> Arrays:
        """See `Planning.saved`."""
        return self.planning.saved(finished)

    def close(
        self, release: int, head: Ask, cohort: Cohort | None
    ) -> tuple[dict[str, Any], Ids | range]:
        """Close a batch; see `ShufflerActor.close`. It is folded in one piece.

        Nobody drops a report unseen here: if the server is not trusted, those that are not used
        are paid for as well.
        """
        self.closed[release] = batch = self.inbox.close(release)
        senders = batch.senders.participants()
        if self.scenario.trust_model.pays_unused and cohort is not None:
            senders = np.union1d(senders, cohort.unused).astype(np.uint32)
        return batch_counts(batch), senders

    def handed(self, release: int) -> Reports:
        """Return a closed batch for another reader; called only once the release is paid for."""
        batch = self.closed[release]
        return Reports(release, 0, 0, batch.senders, batch.bucket, batch.payload)

    def fold_reports(self, release: int) -> None:
        """Fold a closed batch; called only once the release is paid for."""
        reports = self.handed(release)
        del self.closed[release]
        self._fold(release, reports)

    def discard(self, release: int) -> None:
        """Drop a batch that is too small to be used."""
        self.closed.pop(release, None)


class AnalystActor(AggregatorActor):
    """A further reader without a shuffler: it is handed the reports that the server collected."""

    def fold(self, release: int, *parts: Any) -> None:
        """Fold a closed batch."""
        for part in parts:
            self._fold(release, part)
