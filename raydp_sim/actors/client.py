"""The client actor: some clients with their data, their state and their randomizers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.actors.answers import Answers, Given, Receipt, rank_of
from raydp_sim.actors.keys import Sealing
from raydp_sim.actors.listening import Listens
from raydp_sim.actors.payloads import payloads
from raydp_sim.actors.room import Room
from raydp_sim.actors.seeds import opened, readers_seed
from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Counts
from raydp_sim.mechanisms.leveled import Leveled
from raydp_sim.population.participation.all import All
from raydp_sim.population.participation.base import Rounds
from raydp_sim.random import Ids, Stream
from raydp_sim.scenario import Scenario
from raydp_sim.scenario.bound import setting_of
from raydp_sim.schedule.batch import Cohort, Cohorts, cohort_of
from raydp_sim.stream.batches import Everyone, Listed, Reports, Summed
from raydp_sim.stream.buckets import draw_buckets, in_runs, worth_running
from raydp_sim.stream.sealed import Posted
from raydp_sim.tasks.base import Arrays, Ask, Floats


class ClientActor(Listens):
    """Holds the clients `first` to `last - 1`; with one client in it, it is that client.

    The data are made or memory-mapped here and never leave; only randomized messages do.
    """

    def __init__(
        self, document: dict[str, Any], source: int, epoch: int, first: int, last: int
    ) -> None:
        self.scenario = Scenario.model_validate(document)
        self.setting = setting_of(self.scenario)
        self.source, self.epoch = source, epoch
        self.ids: Ids = np.arange(first, last, dtype=np.uint32)
        self.room = Room()
        levels = self.setting.levels
        self.sealing = None if levels is None else Sealing(levels, Stream(self.scenario.seed))

    def load(self, repetition: int) -> Counts:
        """Make the clients' data for one repetition and return the truth about all of them."""
        scenario = self.scenario
        self.stream = scenario.stream(repetition)
        data = scenario.population.hold(self.ids, self.stream)
        self.members = scenario.population.members(self.ids, self.stream)
        readers = scenario.model_copy(update={"seed": readers_seed(scenario)})
        setting = opened(self.setting, readers.stream(repetition))
        self.answers = Answers(scenario.task, setting, data, self.ids, self.stream)
        self.answers.begin()
        self.own: Arrays = {}
        if self.sealing is not None and self.sealing.levels.promotions:
            # Who is asked for one more key has to know which reports it has sent.
            self.own = {"reported": np.zeros((len(self.ids), scenario.task.rounds), np.bool_)}
        self.whole = scenario.task.truth(self.setting, data)
        return self.whole

    def restore(self, memory: Arrays) -> None:
        """Take these clients' state up from a checkpoint."""
        self.answers.restore(memory)
        self.own = {name: np.array(memory[name]) for name in self.own}

    def influence(self, population: Counts) -> Floats:
        """Return how far each client pulls the estimate; for an adversary who sees all data."""
        return self.scenario.task.influence(self.setting, self.answers.data, population)

    def groups(self) -> tuple[Counts, Counts]:
        """Return how many clients each group has, and the truth about them."""
        task, data, number = self.scenario.task, self.answers.data, self._number_of_groups()
        truths = [task.truth(self.setting, data[self.members == g]) for g in range(number)]
        return self._by_group(slice(None)), np.stack(truths)

    def report(
        self,
        release: int,
        time: float,
        cohorts: Cohorts,
        shufflers: int,
        versions: tuple[int, ...],
        *asks: Any,
    ) -> tuple[Any, ...]:
        """Answer an ask: a receipt for the analyst, then one batch per shuffler; if any.

        Where readers hold keys that take no other way, one batch of keys per reader follows.

        Args:
            release: the release that the reports are for.
            time: when a round's clients were asked.
            cohorts: who reports; None if each client decides for itself.
            shufflers: how many there are.
            versions: of the asks that follow, oldest first; the last is this release's.
            asks: for each version what is public of its ask, then for each its broadcast. None
                where the task has ended the run: nobody is asked, and nothing is answered.
        """
        if asks[0] is None:
            return (None,) * (1 + shufflers)
        known = [
            replace(head, broadcast=broadcast)
            for head, broadcast in zip(asks[: len(versions)], asks[len(versions) :], strict=True)
        ]
        by_version: dict[int, Ask] = dict(zip(versions, known, strict=True))
        cohort = cohort_of(release, cohorts)
        rows, stale = self._reporting(release, time, cohort)
        slots = None
        if cohort is not None and cohort.slots is not None:
            slots = cohort.slots_of(self.ids[rows])
        weigh = self.scenario.participation.weights
        copies = cohort is not None and len(cohort.repeated) > 0
        mechanism = by_version[release].mechanism
        collected = payloads(self.scenario.task, mechanism, copies, self.room)
        made = self.answers.give(release, by_version, rows, stale, slots, weigh, collected)
        one_by_one = copies or shufflers > 1 or slots is not None or self.sealing is not None
        batch = self._batch(release, rows, made, mechanism, one_by_one)
        posted: list[Posted] = []
        if self.sealing is not None:
            batch, posted = self._sealed(self.sealing, rows, made, mechanism, batch)
        if cohort is not None and copies:
            batch = _with_copies(batch, cohort.repeated)
        batches = [batch]
        if shufflers > 1:
            batches = [_part(batch, batch.bucket % shufflers == j) for j in range(shufflers)]
            # All of it goes to one: that a report went to another would set its sender apart.
            batches[0] = replace(batches[0], promotions=batch.promotions)
        reports = len(self.ids[rows])
        most, fewest = (1, 1) if reports else (0, 1 << 32)
        if made.owner is not None:
            sent = np.bincount(made.owner, minlength=reports)
            sent = sent[sent > 0]  # whoever sends nothing is not in the batch
            most, fewest = int(sent.max(initial=0)), int(sent.min(initial=1 << 32))
        truth = self._truth(rows)
        groups = self._by_group(rows) if self._number_of_groups() else None
        receipt = Receipt(reports, fewest, most, made.clipped, truth, made.seen, groups)
        return (receipt, *batches, *posted)

    def reports(
        self,
        places: Sequence[tuple[int, float, tuple[int, ...]]],
        cohorts: Cohorts,
        *asks: Any,
    ) -> tuple[list[Receipt | None] | None, list[Reports | None] | None]:
        """Answer the same ask for several releases: receipts for the analyst, and batches.

        Both are None for a release whose cohort has nobody of these clients.

        Args:
            places: each release, when its clients are asked, and versions as of `report`.
            cohorts: of each, by release.
            asks: as of `report`, the same for all releases.
        """
        if asks[0] is None:
            return None, None
        receipts: list[Receipt | None] = []
        batches: list[Reports | None] = []
        for release, time, versions in places:
            receipt = batch = None
            cohort = cohort_of(release, cohorts)
            if cohort is None or len(cohort.ids[self._ours(cohort)]):
                receipt, batch = self.report(release, time, cohort, 1, versions, *asks)
            receipts.append(receipt)
            batches.append(batch)
        return receipts, batches

    def _ours(self, cohort: Cohort) -> slice:
        """Return which part of a cohort is of these clients; nothing else is their business."""
        ends = (self.ids[0], int(self.ids[-1]) + 1)
        return slice(*np.searchsorted(cohort.ids, ends).tolist())

    def _sealed(
        self, sealing: Sealing, rows: Any, made: Given, mechanism: Any, batch: Reports
    ) -> tuple[Reports, list[Posted]]:
        """Seal the keys of a release and, where a reader is promoted, those of earlier ones."""
        if made.keys is None or made.rid is None or not isinstance(mechanism, Leveled):
            raise InputError("readers have levels, but clients send no keys; send one value each")
        release, ids, place = batch.release, self.ids[rows], self.stream.at("randomize")
        rid = made.rid
        records = sealing.records(release, rid, made.keys, mechanism.key_bits)
        promotions = tuple(
            sealing.promotion(due, mechanism, place, ids, self.own["reported"][rows])
            for due in sealing.levels.due(release)
        )
        for reported in self.own.values():
            reported[rows, release] = True
        source = (release, self.source, self.epoch)
        posted = sealing.posted(source, rid, made.keys, mechanism.key_bits, promotions)
        through = () if sealing.levels.direct else promotions
        return replace(batch, records=records, promotions=through), posted

    def memory(self) -> Arrays:
        """Return the state of these clients, for a checkpoint."""
        return {**self.answers.memory, **self.own}

    def _batch(
        self, release: int, rows: Any, made: Given, mechanism: Any, one_by_one: bool
    ) -> Reports:
        """Put a bucket and a sender to every message, unless all of them can travel in runs."""
        ids, owner, messages = self.ids[rows], made.owner, mechanism.messages_per_report
        sender = ids if owner is None else ids[owner]
        rank = None if owner is None else rank_of(owner)
        values = 1 if rank is None else int(rank.max(initial=0)) + 1
        if values * messages > 1 << 16:
            raise InputError(f"a client sends {values} values of {messages} messages, over 65536")
        place, payload = (release, self.source, self.epoch), made.payload
        if not isinstance(payload, Summed):
            payload = payload.reshape(len(sender) * messages, *payload.shape[2:])
        shuffle, drawn = self.scenario.shuffle, self.stream.at("bucket", release)
        alone = shuffle.output == "counts" and shuffle.shufflers == 1
        shuffled = self.scenario.trust_model.shuffled and not alone
        senders: Any
        if isinstance(rows, slice) and owner is None:
            senders = Everyone(range(int(self.ids[0]), int(self.ids[-1]) + 1), messages)
            logical = messages if mechanism.routing == "per-index" else 1
            if shuffled and not one_by_one and worth_running(senders, payload, logical):
                batch = Reports(*place, senders, np.empty(0, np.uint8), payload)
                return in_runs(batch, drawn, logical)
        else:
            if rank is None:
                rank = np.zeros(len(ids), np.int64)
            sequence = rank[:, None] * messages + np.arange(messages)
            columns = np.repeat(sender, messages), sequence.astype(np.uint16).reshape(-1)
            senders = Listed(*columns)
        if shuffled:
            bucket = self._buckets(drawn, sender, rank, values, messages).reshape(-1)
        else:
            bucket = np.zeros(len(senders) if one_by_one else 0, np.uint8)
        return Reports(*place, senders, bucket, payload)

    def _buckets(
        self,
        place: Stream,
        sender: Ids,
        rank: NDArray[np.int64] | None,
        values: int,
        messages: int,
    ) -> NDArray[np.uint8]:
        """Draw buckets from client, value and message alone, in whatever company they are."""
        if values == 1:
            return draw_buckets(place, sender, messages)
        bucket = np.empty((len(sender), messages), np.uint8)
        for each in range(values):
            of = np.flatnonzero(rank == each)
            own = place if each == 0 else place.at("value", each)
            bucket[of] = draw_buckets(own, sender[of], messages)
        return bucket

    def _reporting(
        self, release: int, time: float, cohort: Cohort | None
    ) -> tuple[Any, NDArray[np.int64] | None]:
        """Return which of this actor's rows take part, and how far behind each one's ask is.

        Rows are a slice if all take part, else their numbers.
        """
        scenario = self.scenario
        if cohort is not None:
            # The cohort was chosen among the available clients.
            own = self._ours(cohort)
            chosen, stale = cohort.ids[own], cohort.staleness[own]
            if len(chosen) == len(self.ids):
                return slice(None), stale
            return chosen - self.ids[0], stale
        policy = scenario.participation
        assert isinstance(policy, Rounds)  # others are planned
        if scenario.population.everyone and type(policy).joins is All.joins:
            return slice(None), None
        there = scenario.population.available(self.ids, time, self.stream)
        joins = policy.joins(self.ids, self.stream.at("participation", release))
        joined = there & joins
        return slice(None) if joined.all() else np.flatnonzero(joined), None

    def _number_of_groups(self) -> int:
        return len(self.scenario.population.groups)

    def _by_group(self, rows: Any) -> Counts:
        return np.bincount(self.members[rows], minlength=self._number_of_groups())

    def _truth(self, rows: Any) -> Counts:
        task, data = self.scenario.task, self.answers.data
        if isinstance(rows, slice):
            return self.whole
        if len(rows) <= len(self.ids) // 2:
            return task.truth(self.setting, data[rows])
        # Exact integers: the few that are absent can be taken away.
        absent = np.ones(len(self.ids), np.bool_)
        absent[rows] = False
        return np.asarray(self.whole - task.truth(self.setting, data[absent]))


def _with_copies(batch: Reports, repeated: Ids) -> Reports:
    """Send some clients' reports a second time; whoever collects them must notice."""
    senders = batch.senders.listed()
    again = np.isin(senders.client, repeated)
    client, sequence = (
        np.concatenate([column, column[again]]) for column in (senders.client, senders.sequence)
    )
    bucket = np.concatenate([batch.bucket, batch.bucket[again]])
    payload = np.concatenate([batch.payload, batch.payload[again]])
    records = batch.records
    if records is not None:
        records = records.take(np.append(np.arange(len(again)), np.flatnonzero(again)))
    copied = replace(batch, bucket=bucket, payload=payload, records=records)
    return replace(copied, senders=Listed(client, sequence))


def _part(batch: Reports, mine: NDArray[np.bool_]) -> Reports:
    senders = batch.senders.listed()
    part = Listed(senders.client[mine], senders.sequence[mine])
    records = None if batch.records is None else batch.records.take(mine)
    share = replace(batch, bucket=batch.bucket[mine], payload=batch.payload[mine])
    return replace(share, senders=part, records=records, promotions=())
