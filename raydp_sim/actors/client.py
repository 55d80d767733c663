"""The client actor: some clients with their data, their state and their randomizers."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.batches import Everyone, Listed, Reports, Senders
from raydp_sim.mechanisms.base import Counts, Mechanism
from raydp_sim.population.participation.base import Rounds
from raydp_sim.random import ClientStream, Ids
from raydp_sim.scenario import Scenario
from raydp_sim.schedule.batch import Cohort
from raydp_sim.shuffle import draw_buckets
from raydp_sim.tasks.base import Arrays, Ask, Floats, Task

_BLOCK_BYTES = 1 << 22
_COPY_BYTES = 1 << 26  # of the data that one block of clients may hold


@dataclass(frozen=True, eq=False)
class Receipt:
    """What the simulation's analyst learns of a dispatch; no actor of the protocol sees it."""

    reports: int
    clipped: int
    truth: Counts


@dataclass(frozen=True, eq=False)
class _Told:
    """What each of the reporting clients answers: this release's ask, or an older one."""

    release: int
    asks: dict[int, Ask]
    ask: Ask
    stale: NDArray[np.int64] | None

    def staleness(self, block: slice) -> NDArray[np.int64] | None:
        """Return how far behind the asks of some clients are, if that is known."""
        return None if self.stale is None else self.stale[block]

    def answer(
        self, task: Task, block: slice, data: Floats, before: Arrays, stream: ClientStream
    ) -> tuple[Floats, Arrays]:
        """Let a block of clients compute their values, each by the ask that it was given."""
        stale = self.staleness(block)
        behind = np.unique(stale) if stale is not None and self.asks else np.zeros(1, np.int64)
        if len(behind) <= 1:
            version = self.release - int(behind.sum())
            return task.client(self.asks.get(version, self.ask), data, before, stream)
        assert stale is not None
        values: Any = None
        after = {name: np.array(column) for name, column in before.items()}
        for each in behind:
            rows = np.flatnonzero(stale == each)
            mine = {name: column[rows] for name, column in before.items()}
            ask = self.asks[self.release - int(each)]
            part, kept = task.client(ask, data[rows], mine, stream.take(rows))
            if values is None:
                values = np.empty((len(data), part.shape[1]))
            values[rows] = part
            for name, column in kept.items():
                after[name][rows] = column
        return values, after


class ClientActor:
    """Holds the clients `first` to `last - 1`; with one client in it, it is that client.

    The data are made or memory-mapped here and never leave; only randomized messages do.
    """

    def __init__(
        self, document: dict[str, Any], source: int, epoch: int, first: int, last: int
    ) -> None:
        self.scenario = Scenario.model_validate(document)
        self.mechanism = self.scenario.bound_mechanism
        self.source, self.epoch = source, epoch
        self.ids: Ids = np.arange(first, last, dtype=np.uint32)

    def load(self, repetition: int, remembered: Arrays | None) -> Counts:
        """Make the clients' data for one repetition and return the truth about all of them.

        Args:
            repetition: which one.
            remembered: columns of a checkpoint, one row per client of the whole population.
        """
        scenario, mechanism = self.scenario, self.mechanism
        self.stream = scenario.stream(repetition)
        width = mechanism.domain.width
        self.data = np.empty((len(self.ids), width))
        rows = max(1, _BLOCK_BYTES // (8 * width))
        for start in range(0, len(self.ids), rows):
            ids = self.ids[start : start + rows]
            values = scenario.population.data.values(ids, self.stream.at("data"))
            admitted = mechanism.domain.admit(values, ids, mechanism.on_out_of_range)
            self.data[start : start + rows] = admitted
        self.state = scenario.task.client_init(len(self.ids))
        if remembered is not None:
            self.state = {name: np.array(remembered[name][self.ids]) for name in self.state}
        self.whole = scenario.task.truth(mechanism, self.data)
        return self.whole

    def influence(self, population: Counts) -> Floats:
        """Return how far each client pulls the estimate; for an adversary who sees all data."""
        return self.scenario.task.influence(self.mechanism, self.data, population)

    def report(
        self,
        release: int,
        time: float,
        cohort: Cohort | None,
        shufflers: int,
        versions: tuple[int, ...],
        *asks: Ask,
    ) -> tuple[Any, ...]:
        """Answer an ask: a receipt for the analyst, then one batch per shuffler.

        Args:
            release: the release that the reports are for.
            time: when a round's clients were asked.
            cohort: who reports; None if each client decides for itself.
            shufflers: how many there are.
            versions: of the asks that follow; none if they are all the same.
            asks: what clients were told, by version; the last is this release's.
        """
        rows, stale = self._reporting(release, time, cohort)
        ids, ask = self.ids[rows], asks[-1]
        mechanism = self.scenario.task.mechanism_for(self.mechanism, ask)
        told = _Told(release, dict(zip(versions, asks, strict=False)), ask, stale)
        payload, clipped = self._messages(told, mechanism, rows, ids)
        messages = mechanism.messages_per_report
        if self.scenario.trust == "shuffle":
            bucket = draw_buckets(self.stream.at("bucket", release), ids, messages).reshape(-1)
        else:
            bucket = np.zeros(len(ids) * messages, np.uint8)
        flat = payload.reshape(len(bucket), *payload.shape[2:])
        whole = (release, self.source, self.epoch, self._senders(rows, ids, messages), bucket, flat)
        batches = [Reports(*whole)]
        if cohort is not None and len(cohort.repeated):
            batches = [_with_copies(batches[0], cohort.repeated)]
        bucket = batches[0].bucket
        if shufflers > 1:
            batches = [_part(batches[0], bucket % shufflers == j) for j in range(shufflers)]
        return (Receipt(len(ids), clipped, self._truth(rows)), *batches)

    def _senders(self, rows: Any, ids: Ids, messages: int) -> Senders:
        if isinstance(rows, slice):
            return Everyone(range(int(self.ids[0]), int(self.ids[-1]) + 1), messages)
        sequence = np.arange(messages, dtype=np.uint16)
        return Listed(np.repeat(ids, messages), np.tile(sequence, len(ids)))

    def remembered(self) -> Arrays:
        """Return what these clients remember, for a checkpoint."""
        return self.state

    def _reporting(
        self, release: int, time: float, cohort: Cohort | None
    ) -> tuple[Any, NDArray[np.int64] | None]:
        """Return which of this actor's rows take part, and how far behind each one's ask is.

        Rows are a slice if all take part, else their numbers.
        """
        scenario = self.scenario
        if cohort is not None:
            # The cohort was chosen among the available clients; only ours are our business.
            first, last = np.searchsorted(cohort.ids, (self.ids[0], int(self.ids[-1]) + 1))
            chosen, stale = cohort.ids[first:last], cohort.staleness[first:last]
            if len(chosen) == len(self.ids):
                return slice(None), stale
            return chosen - self.ids[0], stale
        there = scenario.population.available(self.ids, time, self.stream)
        policy = scenario.participation
        assert isinstance(policy, Rounds)  # others are planned
        own = policy.joins(self.ids, self.stream.at("participation", release))
        joined = there & own
        return slice(None) if joined.all() else np.flatnonzero(joined), None

    def _messages(
        self, told: "_Told", mechanism: Mechanism, rows: Any, ids: Ids
    ) -> tuple[NDArray[Any], int]:
        """Randomize block by block, so that a large population needs no second copy of its data.

        A block's reports, not its data, should fit the cache: a mechanism that samples a few of
        many coordinates draws little per client and is slow on few clients.
        """
        width, report_bytes = self.data.shape[1], -(-mechanism.bits // 8)
        size = max(256, min(_COPY_BYTES // (8 * width), _BLOCK_BYTES // max(8, report_bytes)))
        stream = self.stream.at("randomize", told.release).clients(ids)
        # The task's own draws must never be the randomizer's.
        task_stream = self.stream.at("task", told.release).clients(ids)
        parts, clipped = [], 0
        for start in range(0, max(1, len(ids)), size):
            block = slice(start, start + size)
            mine = block if isinstance(rows, slice) else rows[block]
            own = stream.take(block)
            before = {name: column[mine] for name, column in self.state.items()}
            values, after = told.answer(
                self.scenario.task, block, self.data[mine], before, task_stream.take(block)
            )
            weights = self.scenario.participation.weights(told.staleness(block))
            if weights is not None:
                values = values * weights[:, None]
            for name, column in self.state.items():
                column[mine] = after[name]
            sent = mechanism.messages(values, own)
            parts.append(sent.payload)
            clipped += sent.clipped
        return (parts[0] if len(parts) == 1 else np.concatenate(parts)), clipped

    def _truth(self, rows: Any) -> Counts:
        if isinstance(rows, slice):
            return self.whole
        task = self.scenario.task
        if len(rows) <= len(self.ids) // 2:
            return task.truth(self.mechanism, self.data[rows])
        # Exact integers: the few that are absent can be taken away.
        absent = np.ones(len(self.ids), np.bool_)
        absent[rows] = False
        return np.asarray(self.whole - task.truth(self.mechanism, self.data[absent]))


def _with_copies(batch: Reports, repeated: Ids) -> Reports:
    """Send some clients' reports a second time; whoever collects them must notice."""
    senders = batch.senders.listed()
    again = np.isin(senders.client, repeated)
    client, sequence = (
        np.concatenate([column, column[again]]) for column in (senders.client, senders.sequence)
    )
    bucket = np.concatenate([batch.bucket, batch.bucket[again]])
    payload = np.concatenate([batch.payload, batch.payload[again]])
    return replace(batch, senders=Listed(client, sequence), bucket=bucket, payload=payload)


def _part(batch: Reports, mine: NDArray[np.bool_]) -> Reports:
    senders = batch.senders.listed()
    part = Listed(senders.client[mine], senders.sequence[mine])
    return replace(batch, senders=part, bucket=batch.bucket[mine], payload=batch.payload[mine])
