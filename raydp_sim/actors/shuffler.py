"""The shuffler actor: collects, deduplicates, permutes, strips identity."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from raydp_sim.actors.inbox import Inbox, batch_counts, chunks, of_release, releasable
from raydp_sim.actors.planning import Planning
from raydp_sim.random import Ids
from raydp_sim.scenario import Scenario
from raydp_sim.schedule.batch import Cohorts, cohort_of
from raydp_sim.stream.batches import Counted, Order, Recorded, Reports, Shuffled, Slotted
from raydp_sim.stream.sealed import Promotion, Records, Sealed
from raydp_sim.stream.shuffle import Permuted, count, permute
from raydp_sim.tasks.base import Arrays, Ask

Out = Shuffled | Slotted | Counted


class ShufflerActor:
    """Serves every k-th bucket if there are k shufflers; the first one also plans batches."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.scenario = Scenario.model_validate(document)
        self.begin(0)

    def begin(self, repetition: int) -> None:
        """Forget everything and start a repetition."""
        self.repetition = repetition
        self.inbox = Inbox()
        self.closed: dict[int, Permuted | Counted] = {}
        self.planning = Planning(self.scenario, repetition)

    def admit(self, source: int, epoch: int) -> None:
        """See `Inbox.admit`."""
        self.inbox.admit(source, epoch)

    def collect(self, *batches: Reports) -> list[bool]:
        """See `Inbox.collect`."""
        return [self.inbox.collect(batch) for batch in batches]

    def take(self, release: int, *given: Reports | Sequence[Reports | None]) -> list[bool]:
        """Collect what placements have of one release, each in a span or alone."""
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
        """Close a batch, and permute or count it.

        Returns:
            The number of reports (counted by their first message), of messages, of duplicates
            dropped, of bytes to come and of reports per slot; and, for the ledger alone, who took
            part.
        """
        batch, mechanism = self.inbox.close(release), head.mechanism
        counts, slots = batch_counts(batch, head, cohort_of(release, cohorts))
        stream = self.scenario.stream(self.repetition).at("permute", release)
        messages, routing = mechanism.messages_per_report, mechanism.routing
        if self.scenario.shuffle.output == "counts":
            fold = partial(mechanism.fold, mechanism.zero())
            self.closed[release] = count(release, batch, messages, routing, fold)
            return {**counts, "bytes": 0}, batch.senders.participants()
        self.closed[release] = permute(release, batch, messages, routing, stream, slots)
        return counts, batch.senders.participants()

    def gather(
        self,
        releases: Sequence[int],
        head: Ask,
        cohorts: Cohorts,
        *spans: Sequence[Reports | None],
    ) -> tuple[Any, dict[int, Ids | range], list[Out] | None]:
        """Collect all of some releases and close them, in one call.

        Returns:
            For each release the counts that `close` returns, and whether the whole batches come
            along, or None if a batch is of an actor that has been replaced; who took part; and the
            batches, if all are enough for a release and go in one chunk. They are for a call that
            also waits for the ledger, and go nowhere before.
        """
        if not self.inbox.collect_all(spans):
            return None, {}, None
        closed = [self.close(release, head, cohorts) for release in releases]
        counts = [each for each, _ in closed]
        participants = {r: who for r, (_, who) in zip(releases, closed, strict=True)}
        cuts = [chunks(head, each["bytes"]) for each in counts]
        small = any(not releasable(self.scenario, head, each) for each in counts)
        if small or any(len(cut) > 1 for cut in cuts):
            return (counts, False), participants, None
        whole = [self.chunk(r, *cut[0], True) for r, cut in zip(releases, cuts, strict=True)]
        return (counts, True), participants, whole

    def chunk(self, release: int, first: int, last: int, final: bool) -> Out:
        """Hand out some groups of a closed batch: no reader sees them before they are paid for."""
        chunk = self.closed[release].chunk(first, last)
        if final:
            del self.closed[release]
        return chunk

    def apart(
        self, release: int, first: int, last: int, final: bool
    ) -> tuple[Shuffled | Slotted | Sealed, ...]:
        """Hand out a chunk as `chunk` does, for all readers, and each one's sealed keys apart."""
        chunk = self.chunk(release, first, last, final)
        assert isinstance(chunk, Recorded)  # only where readers hold keys
        return replace(chunk, records=Records(chunk.records.rid)), *chunk.records.sealed

    def promotion(self, release: int, reader: int) -> Promotion | None:
        """Hand out what is sealed for a reader that is promoted; None if nobody sent anything."""
        closed = self.closed[release]
        found = closed.promotions if isinstance(closed, Permuted) else ()
        return next((each for each in found if each.reader == reader), None)

    def order(self, release: int, number: int, reports: int) -> Order:
        """Draw the order in which a trusted reader is to take its records.

        Uniform, from a stream of its own; whoever is not handed it knows nothing of it.

        Args:
            release: that it is for.
            number: of the order; releases with the same one have the same order.
            reports: how many records there are.
        """
        place = self.scenario.stream(self.repetition).at("order", number)
        return Order(release, place.generator().permutation(reports))

    def discard(self, release: int) -> None:
        """Drop a batch that is too small to be released."""
        self.closed.pop(release, None)
