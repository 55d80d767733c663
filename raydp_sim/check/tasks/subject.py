"""A task under check: its small scenario, and its first releases made step by step."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.actors.answers import Answers, Given, rank_of
from raydp_sim.check.finding import NotChecked
from raydp_sim.random import Stream
from raydp_sim.scenario import Scenario, setting_of
from raydp_sim.scenario.accounting import formed_batch
from raydp_sim.stream.batches import BUCKETS, Listed, Reports, Shuffled, Slotted
from raydp_sim.tasks.base import Arrays, Ask, Batch, Formed, Task, Truth

# Releases of a task that are made step by step; runs make all of them.
_MOST = 3

_USUAL: dict[str, Any] = {
    "name": "check",
    "seed": 7,
    "population": {"clients": 41, "data": {"kind": "gaussian", "dimension": 3, "clip": 1.0}},
    "mechanism": {
        "kind": "linf",
        "radius": 1.0,
        "epsilon_local": 2.0,
        "coordinates": 2,
        "levels": 2,
    },
    "placement": {"backend": "inline", "checkpoint_seconds": 0},
}


def documents(kind: str, task: type[Task]) -> list[dict[str, Any]]:
    """Return the scenarios that a task is checked in: one for each of its `examples`.

    Args:
        kind: of the task, or its import path.
        task: its class.

    Example:
        >>> from raydp_sim.tasks.mean import Mean
        >>> [document["task"] for document in documents("mean", Mean)][0]
        {'kind': 'mean', 'rounds': 3}
    """
    made = []
    for example in task.examples:
        own = {"kind": kind, **example.get("task", {})}
        placement = {**example.get("placement", {}), **_USUAL["placement"]}
        made.append({**_USUAL, **example, "task": own, "placement": placement})
    return made


@dataclass(frozen=True, eq=False)
class Messages:
    """The messages of a batch, one row each.

    Attributes:
        payload: what the mechanism sent.
        index: of each row's message within its report.
        client: that sent it.
        slot: of that client; 0 where there are none.
    """

    payload: NDArray[Any]
    index: NDArray[np.int64]
    client: NDArray[np.uint32]
    slot: NDArray[np.int64]

    def take(self, rows: Any) -> "Messages":
        """Return some of them, in this order."""
        return Messages(self.payload[rows], self.index[rows], self.client[rows], self.slot[rows])


@dataclass(frozen=True, eq=False)
class Made:
    """One release, with everything that anyone knew of it.

    Attributes:
        release: its number.
        ask: that was answered.
        messages: of its batch.
        before: the readers' states before it.
        public: what each reader made public.
        after: the readers' states after it.
        formed: what the engine knows of its batch.
        truth: what the simulation's analyst knows.
    """

    release: int
    ask: Ask
    messages: Messages
    before: list[Arrays]
    public: list[Arrays]
    after: list[Arrays]
    formed: Formed
    truth: Truth

    @property
    def head(self) -> Ask:
        """The ask without its broadcast, as the ledger and the analyst have it."""
        return replace(self.ask, broadcast={})


class TaskSubject:
    """A task in a small scenario, and a folder for its runs."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self.scenario, self.folder = scenario, folder
        self.task, self.setting = scenario.task, setting_of(scenario)
        self.name = type(self.task).__name__
        self.ids = np.arange(scenario.population.clients, dtype=np.uint32)
        self.stream = scenario.stream(0)
        self.base: dict[str, Any] | None = None  # the outcome of its run, once it was played

    @cached_property
    def data(self) -> Any:
        """What all clients hold; nobody can write to it."""
        held = self.scenario.population.hold(self.ids, self.stream)
        if isinstance(held, np.ndarray):
            held.flags.writeable = False
        return held

    @cached_property
    def readers(self) -> range:
        """The numbers of the readers."""
        return range(len(self.task.readers(self.setting)))

    @cached_property
    def releases(self) -> list[Made]:
        """The first releases, made in one process; whatever the task raises comes through."""
        return list(self._make())

    @property
    def made(self) -> list[Made]:
        """The first releases, for checks that are about something else than making them."""
        try:
            return self.releases
        except Exception:
            raise NotChecked("no release could be made, see above") from None

    def first(self, count: int) -> Answers:
        """Return the first clients with their data, as an actor of their own."""
        answers = Answers(self.task, self.setting, self.data[:count], self.ids[:count], self.stream)
        answers.begin()
        return answers

    def slots(self, ask: Ask) -> NDArray[np.int64] | None:
        """Return the slots of the clients of a batch, in the order of their ids."""
        if ask.slots is None:
            return None
        return np.repeat(np.arange(len(ask.slots)), ask.slots)

    def wanted(self, ask: Ask) -> int:
        """Return how many clients a batch has, if all that are asked for come."""
        policy, clients = self.scenario.participation, len(self.ids)
        policy = policy if ask.wanted is None else policy.sized(ask.wanted)
        return max(1, min(clients, int(policy.expected(clients, 1.0))))

    def given(self, answers: Answers, release: int, ask: Ask) -> Given:
        """Let the clients answer: those of the lowest ids, as many as are wanted."""
        count = min(len(answers.ids), self.wanted(ask))
        slots = self.slots(ask)
        own = None if slots is None else slots[:count]
        rows = slice(None) if count == len(answers.ids) else np.arange(count)
        return answers.give(release, {release: ask}, rows, None, own, lambda _: None)

    def batch(self, release: int, messages: Messages, ask: Ask) -> Batch:
        """Return messages as readers are handed them, in arrays of their own."""
        if not self.scenario.trust_model.shuffled:
            senders = Listed(messages.client, messages.index.astype(np.uint16))
            bucket = np.zeros(len(messages.client), np.uint8)
            slot = None if ask.slots is None else messages.slot
            return Reports(release, 0, 0, senders, bucket, messages.payload.copy(), slot=slot)
        group = messages.index if ask.slots is None else messages.slot
        order = np.argsort(group, kind="stable")
        groups, lengths = np.unique(group, return_counts=True)
        kind = Shuffled if ask.slots is None else Slotted
        return kind(release, groups * BUCKETS, lengths, messages.payload[order])

    def server(self, release: int, reader: int) -> Stream:
        """Return the stream of a reader's noise."""
        stream = self.stream.at("aggregator", release)
        return stream.at("reader", reader) if reader else stream

    def step(self, made: Made, reader: int, accumulator: Any) -> tuple[Arrays, Arrays]:
        """Let a reader make a release of what it has folded."""
        formed = self.public(made.formed)
        stream, before = self.server(made.release, reader), made.before[reader]
        return self.task.step(self.setting, made.ask, reader, before, accumulator, formed, stream)

    def folded(self, made: Made, reader: int, batches: list[Batch]) -> Any:
        """Let a reader fold some batches, one after another."""
        accumulator = self.task.zero(self.setting, made.ask, reader)
        for batch in batches:
            accumulator = self.task.fold(self.setting, made.ask, reader, accumulator, batch)
        number = self.task.drawn_order(made.release)
        if number is None:
            return accumulator
        places = self.stream.at("order", number).generator().permutation(made.formed.reports)
        return self.task.ordered(accumulator, places)

    def public(self, formed: Formed) -> Formed:
        """Return what readers know of a batch."""
        return Formed(formed.reports, formed.trust, weight=1.0, slots=formed.slots)

    def _make(self) -> Iterator[Made]:
        task, setting = self.task, self.setting
        answers = self.first(len(self.ids))
        states = [task.init(setting) for _ in self.readers]
        population = task.truth(setting, self.data)
        so_far, answered = np.zeros_like(population), None
        for release in range(min(_MOST, task.rounds)):
            ask = task.ask(setting, states[0])
            if ask is None:
                return
            given = self.given(answers, release, ask)
            messages, formed = self._formed(given, ask)
            cohort = task.truth(setting, self.data[: formed.reports])
            so_far = so_far + cohort
            if given.seen is not None:
                answered = given.seen if answered is None else answered + given.seen
            seen = (given.clipped, given.seen, formed.reports, answered)
            truth = Truth(cohort, so_far, population, *seen)
            made = Made(release, ask, messages, states, [], [], formed, truth)
            for reader in self.readers:
                batch = self.batch(release, messages, ask)
                after, public = self.step(made, reader, self.folded(made, reader, [batch]))
                made.after.append(after)
                made.public.append(public)
            states = made.after
            yield made

    def _formed(self, given: Given, ask: Ask) -> tuple[Messages, Formed]:
        """Return the messages of some answers, and what the engine knows of their batch."""
        values, each = given.payload.shape[:2]
        count = self.wanted(ask)
        owner = np.arange(values) if given.owner is None else given.owner
        index = (rank_of(owner) * each)[:, None] + np.arange(each)
        sender, slots = np.repeat(owner, each), self.slots(ask)
        slot = np.zeros(len(sender), np.int64) if slots is None else slots[sender]
        payload = given.payload.reshape(values * each, *given.payload.shape[2:])
        messages = Messages(payload, index.reshape(-1), self.ids[sender], slot)
        sent = np.bincount(owner, minlength=count)
        known = {"values": values, "fewest": int(sent.min()), "most": int(sent.max())}
        formed = formed_batch(self.scenario, self.setting.mechanism, count)
        return messages, replace(formed, **known, slots=ask.slots)
