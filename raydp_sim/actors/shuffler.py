"""The shuffler actor: collects, deduplicates, permutes, strips identity."""

from dataclasses import replace
from typing import Any

from raydp_sim.actors.inbox import Inbox, all_accepted, batch_counts, chunks, releasable
from raydp_sim.actors.planning import Planning
from raydp_sim.random import Ids
from raydp_sim.scenario import Scenario
from raydp_sim.schedule.batch import Cohort
from raydp_sim.stream.batches import Order, Recorded, Reports, Shuffled, Slotted
from raydp_sim.stream.sealed import Promotion, Records, Sealed
from raydp_sim.stream.shuffle import Permuted, permute
from raydp_sim.tasks.base import Arrays, Ask


class ShufflerActor:
    """Serves every k-th bucket if there are k shufflers; the first one also plans batches."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.scenario = Scenario.model_validate(document)
        self.begin(0)

    def begin(self, repetition: int) -> None:
        """Forget everything and start a repetition."""
        self.repetition = repetition
        self.inbox = Inbox()
        self.closed: dict[int, Permuted] = {}
        self.planning = Planning(self.scenario, repetition)

    def admit(self, source: int, epoch: int) -> None:
        """See `Inbox.admit`."""
        self.inbox.admit(source, epoch)

    def collect(self, *batches: Reports) -> list[bool]:
        """See `Inbox.collect`."""
        return [self.inbox.collect(batch) for batch in batches]

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
        """Close and permute a batch.

        Returns:
            The number of reports (counted by their first message), of messages, of duplicates
            dropped, of bytes to come and of reports per slot; and, for the ledger alone, who took
            part.
        """
        batch, mechanism = self.inbox.close(release), head.mechanism
        counts, slots = batch_counts(batch, head, cohort)
        stream = self.scenario.stream(self.repetition).at("permute", release)
        messages, routing = mechanism.messages_per_report, mechanism.routing
        self.closed[release] = permute(release, batch, messages, routing, stream, slots)
        return counts, batch.senders.participants()

    def gather(
        self, release: int, head: Ask, cohort: Cohort | None, *batches: Reports
    ) -> tuple[tuple[dict[str, Any], bool], Ids | range, Shuffled | Slotted | None]:
        """Collect all of a release and close it, in one call.

        Returns:
            The counts that `close` returns, and whether the whole batch comes along; who took
            part; and that batch, if it is enough for a release and goes in one chunk. It is
            for a call that also waits for the ledger, and goes nowhere before.
        """
        all_accepted(self.collect(*batches))
        counts, participants = self.close(release, head, cohort)
        cut = chunks(head, counts["bytes"])
        if len(cut) > 1 or not releasable(self.scenario, head, counts):
            return (counts, False), participants, None
        return (counts, True), participants, self.chunk(release, *cut[0], True)

    def chunk(self, release: int, first: int, last: int, final: bool) -> Shuffled | Slotted:
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
        found = self.closed[release].promotions
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
