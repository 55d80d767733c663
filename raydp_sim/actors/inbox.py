"""What every collector does: take batches in, refuse zombies, close a release once."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim import engine
from raydp_sim.scenario import Scenario
from raydp_sim.scenario.accounting import least_batch
from raydp_sim.schedule.batch import Cohort
from raydp_sim.stream.batches import BUCKETS, Reports
from raydp_sim.stream.shuffle import Gathered, cuts, gather
from raydp_sim.tasks.base import Ask


class Inbox:
    """Batches by release, until each release is closed.

    A batch counts once however often it arrives: a stale epoch or a closed release is refused at
    the door, and `gather` drops rows that repeat a (release, client, sequence).
    """

    def __init__(self) -> None:
        self._epochs: dict[int, int] = {}
        self._open: dict[int, list[Reports]] = {}
        self._closed: set[int] = set()

    def admit(self, source: int, epoch: int) -> None:
        """Accept from now on only batches of this epoch or a later one from a placement."""
        self._epochs[source] = max(epoch, self._epochs.get(source, 0))

    def collect(self, batch: Reports) -> bool:
        """Take a batch in; return False if it was refused."""
        if self._refused(batch):
            return False
        self._open.setdefault(batch.release, []).append(batch)
        return True

    def _refused(self, batch: Reports) -> bool:
        stale = batch.epoch < self._epochs.get(batch.source, 0)
        return stale or batch.release in self._closed

    def collect_all(self, spans: Sequence[Sequence[Reports | None]]) -> bool:
        """Take the batches of several placements and releases in; or none, if one is refused.

        Args:
            spans: of each placement, its batches; None where it has nobody in a release.
        """
        batches = [batch for span in spans for batch in span if batch is not None]
        if any(self._refused(batch) for batch in batches):
            return False
        return all([self.collect(batch) for batch in batches])

    def close(self, release: int) -> Gathered:
        """Let nothing more in and return what there is, in canonical order."""
        self._closed.add(release)
        return gather(self._open.pop(release, []))


def of_release(release: int, given: Reports | Sequence[Reports | None]) -> Reports:
    """Return the batch of one release out of a placement's span of them, or alone."""
    if isinstance(given, Reports):
        return given
    return next(batch for batch in given if batch is not None and batch.release == release)


def releasable(scenario: Scenario, head: Ask, counts: dict[str, Any]) -> bool:
    """Say whether a closed batch is enough for a release; the engine decides by the same rule."""
    return engine.enough(counts["reports"], least_batch(scenario, head))


def chunks(head: Ask, size: int) -> list[tuple[int, int]]:
    """Return in which groups a shuffled batch of so many bytes goes: first, last (exclusive)."""
    logical = 1
    if head.slots is not None:
        logical = len(head.slots)
    elif head.mechanism.routing == "per-index":
        logical = head.mechanism.messages_per_report
    return list(pairwise(cuts(logical * BUCKETS, size)))


def batch_counts(
    batch: Gathered, head: Ask, cohort: Cohort | None
) -> tuple[dict[str, Any], NDArray[np.int64] | None]:
    """Return what the driver observes of a closed batch, which names no client; and all slots.

    Args:
        batch: as it was closed.
        head: what is public of the ask.
        cohort: who was asked, with the slot of each.
    """
    counts: dict[str, Any] = {
        "reports": batch.senders.reports(),
        "messages": len(batch.payload),
        "duplicates": batch.duplicates,
        "bytes": batch.payload.nbytes,
    }
    if head.slots is None or cohort is None or cohort.slots is None:
        return counts, None
    senders = batch.senders.listed()
    slots = cohort.slots_of(senders.client)
    first = slots[senders.sequence == 0]
    counts["slots"] = np.bincount(first, minlength=len(head.slots)).tolist()
    return counts, slots
