"""The analysts: readers of the public stream who hold keys of their own, and nobody else's."""

from dataclasses import replace
from typing import Any

import numpy as np

from raydp_sim.actors.aggregator import AggregatorActor
from raydp_sim.actors.shuffler import ShufflerActor
from raydp_sim.errors import InputError, RunError
from raydp_sim.mechanisms.wires.key_columns import aligned
from raydp_sim.random import Ids
from raydp_sim.schedule.batch import Cohorts, cohort_of
from raydp_sim.stream.batches import Opened, Promoted, Recorded
from raydp_sim.stream.sealed import Posted, Promotion, Records, Sealed
from raydp_sim.stream.shuffle import interleave
from raydp_sim.tasks.base import Arrays, Ask


class AnalystActor(AggregatorActor):
    """Reads the public stream at one level: it opens its own column of keys, and can no other.

    It holds the secret of one lock. Keys come with the shuffled reports, in their order, or
    straight from clients (`collect`) and are put to the reports by the records' ids.
    """

    def __init__(self, document: dict[str, Any], reader: int, secret: str) -> None:
        self._secret = secret
        super().__init__(document, reader)

    def begin(self, repetition: int, saved: dict[str, Arrays] | None) -> None:
        """Start a repetition with no keys."""
        super().begin(repetition, saved)
        self._epochs: dict[int, int] = {}
        self._posted: dict[int, dict[int, Posted]] = {}
        self._chunks: dict[int, list[Recorded]] = {}

    def admit(self, source: int, epoch: int) -> None:
        """Accept from now on only keys of this epoch or a later one from a placement."""
        self._epochs[source] = max(epoch, self._epochs.get(source, 0))

    def collect(self, *parts: Posted) -> list[bool]:
        """Take keys in that come straight from clients; say of each part whether it was.

        Drawn again by a respawned placement, they are the same as before.
        """
        living = [part.epoch >= self._epochs.get(part.source, 0) for part in parts]
        for part, lives in zip(parts, living, strict=True):
            if lives:
                self._posted.setdefault(part.release, {})[part.source] = part
        return living

    def discard(self, release: int) -> None:
        """Drop the keys of a batch that is not released."""
        self._posted.pop(release, None)

    def fold(self, release: int, *parts: Any) -> None:
        """Fold one chunk: open its keys, or keep it until keys that come alone are put to it.

        Args:
            release: its number.
            parts: each shuffler's share of the reports, then each one's share of the sealed keys.
        """
        public = [part for part in parts if isinstance(part, Recorded)]
        sealed = [part for part in parts if isinstance(part, Sealed)]
        if len(public) + len(sealed) < len(parts):
            raise RunError("an analyst was handed something else than reports and its sealed keys")
        if not sealed:
            self._chunks.setdefault(release, []).append(interleave(public))
            return
        shares = zip(public, sealed, strict=True)
        chunk = interleave([replace(p, records=Records(p.records.rid, (s,))) for p, s in shares])
        key = chunk.records.sealed[0].open(self._secret)
        self._fold(release, Opened(release, chunk.records.rid, chunk.payload, key))

    def promote(self, release: int, *parts: Promotion | None) -> None:
        """Fold one more key for reports of earlier releases; None where nobody sent any."""
        for part in (part for part in parts if part is not None):
            key = part.key.open(self._secret)
            self._fold(release, Promoted(part.of, part.rid, key))

    def step(
        self,
        release: int,
        reports: int,
        weight: float,
        slots: tuple[int, ...] | None,
        following: int | None,
        *rest: Any,
    ) -> tuple[Ask | None, Arrays, Arrays]:
        """Make the release; keys that came straight from clients are put to the reports first."""
        if rest:
            self.fold(release, *rest)
        if release in self._posted:
            self._join(release)
        return super().step(release, reports, weight, slots, following)

    def _join(self, release: int) -> None:
        posted = [part for _, part in sorted(self._posted.pop(release).items())]
        self.promote(release, *(part.promotion for part in posted))
        chunks = self._chunks.pop(release, [])
        if not chunks:
            return
        rid = np.concatenate([chunk.records.rid for chunk in chunks])
        payload = np.concatenate([chunk.payload for chunk in chunks])
        named = np.concatenate([part.rid for part in posted])
        keys = np.concatenate([part.key.open(self._secret) for part in posted])
        try:
            key = aligned(rid, named, keys)
        except InputError as error:
            # Clients of our own sent these: nothing that a user gave can be mended.
            raise RunError(f"release {release}: {error}", resumable=False) from None
        self._fold(release, Opened(release, rid, payload, key))


class BoardActor(ShufflerActor):
    """Collects public reports where nobody is trusted, and shows them to every reader.

    Whoever looks at it knows who sent what: nothing that it does to the order counts for privacy,
    and reports that come too late to be used are charged as well.
    """

    def close(
        self, release: int, head: Ask, cohorts: Cohorts
    ) -> tuple[dict[str, Any], Ids | range]:
        """Close a batch; see `ShufflerActor.close`."""
        cohort = cohort_of(release, cohorts)
        counts, senders = super().close(release, head, cohort)
        if cohort is not None and len(cohort.unused):
            senders = np.union1d(senders, cohort.unused).astype(np.uint32)
        return counts, senders
