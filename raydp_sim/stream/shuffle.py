"""The shuffle: 64 virtual buckets, always, so that any number of shufflers gives one permutation.

A report's bucket is a keyed draw by (release, client, sequence). Inside a bucket the canonical
order (client, sequence) is permuted with a stream keyed by (release, logical shuffler, bucket). The
buckets in order are then a uniformly random permutation of the whole batch (Rao 1961, Sandelius
1962).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from raydp_sim import kernels
from raydp_sim.kernels.types import Grouped
from raydp_sim.random import Stream
from raydp_sim.stream.batches import (
    BUCKETS,
    Counted,
    Everyone,
    Listed,
    Recorded,
    Reports,
    Senders,
    Shuffled,
    Slotted,
    Summed,
)
from raydp_sim.stream.buckets import listed, width_of
from raydp_sim.stream.sealed import Promotion, Records, joined_promotions, joined_records

_CHUNK_BYTES = 1 << 22
_LARGE_GROUP = 512

Out = TypeVar("Out", bound=Shuffled | Slotted)


@dataclass(frozen=True, eq=False)
class Gathered:
    """One release's messages in canonical order, each once; or group by group, with the sizes."""

    senders: Senders
    bucket: NDArray[np.uint8]
    payload: Any  # an array, or Summed
    duplicates: int = 0
    records: Records | None = None
    promotions: tuple[Promotion, ...] = ()
    sizes: NDArray[np.int64] | None = None


def gather(batches: Iterable[Reports]) -> Gathered:
    """Put batches in canonical order and count every (client, sequence) once.

    Batches of disjoint, increasing ranges of clients need no sorting; one check sees to that.
    A batch without rows still tells their form: all of a small release may have gone to others.
    """
    known, again = list(batches), 0
    if any(isinstance(batch.payload, Summed) for batch in known):
        # Of a sum nothing can be taken back: a placement's counts once, as a whole.
        once = {batch.source: batch for batch in known}
        again = sum(len(b.senders) for b in known) - sum(len(b.senders) for b in once.values())
        known = list(once.values())
    beside: dict[str, Any] = {"records": None, "promotions": _promotions(known)}
    parts = sorted((b for b in known if len(b.senders)), key=lambda b: b.senders.first())
    if not parts:
        empty = np.empty(0, np.uint32)
        nobody = Listed(empty, empty.astype(np.uint16))
        # Nothing, but of the form that others have: it is put together with theirs.
        payload = known[0].payload if known else empty
        beside["records"] = known[0].records if known else None
        return Gathered(nobody, empty.astype(np.uint8), payload, **beside)
    everyone = _adjacent([part.senders for part in parts])
    sizes = [part.runs.sizes for part in parts if part.runs is not None]
    if everyone is not None and len(sizes) == len(parts) and len({len(s) for s in sizes}) == 1:
        each = np.stack(sizes)
        payload = kernels.merge([part.payload for part in parts], each)
        sum_of_all = each.sum(axis=0)
        return Gathered(everyone, parts[0].bucket, payload, again, sizes=sum_of_all, **beside)
    parts = [listed(part) for part in parts]
    bucket = _joined([part.bucket for part in parts])
    payload = _joined([part.payload for part in parts])
    beside["records"] = records = _joined_records(parts)
    if everyone is not None:
        return Gathered(everyone, bucket, payload, again, **beside)
    columns = [part.senders.listed() for part in parts]
    client = _joined([senders.client for senders in columns])
    sequence = _joined([senders.sequence for senders in columns])
    rises = client[1:] > client[:-1]
    if not rises.all():
        rises |= (client[1:] == client[:-1]) & (sequence[1:] > sequence[:-1])
    if rises.all():
        return Gathered(Listed(client, sequence), bucket, payload, again, **beside)
    order = np.lexsort((sequence, client))
    client, sequence = client[order], sequence[order]
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (client[1:] != client[:-1]) | (sequence[1:] != sequence[:-1])
    order, senders = order[fresh], Listed(client[fresh], sequence[fresh])
    beside["records"] = None if records is None else records.take(order)
    bucket = bucket[order] if len(bucket) else bucket
    return Gathered(senders, bucket, payload[order], int((~fresh).sum()), **beside)


def _joined_records(parts: list[Reports]) -> Records | None:
    found = [part.records for part in parts if part.records is not None]
    return joined_records(found) if found else None


def _promotions(parts: list[Reports]) -> tuple[Promotion, ...]:
    """Put what is sealed for each reader together."""
    found: dict[int, list[Promotion]] = {}
    for part in parts:
        for promotion in part.promotions:
            found.setdefault(promotion.reader, []).append(promotion)
    return tuple(joined_promotions(found[reader]) for reader in sorted(found))


def _joined(columns: list[Any]) -> Any:
    if len(columns) > 1 and isinstance(columns[0], Summed):
        sums = tuple(part for column in columns for part in column.parts)
        return Summed(sums, sum(map(len, columns)))
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def _adjacent(parts: list[Senders]) -> Everyone | None:
    """Return whole ranges that follow one another as a single one, the usual case of a round."""
    ranges = [part.clients for part in parts if isinstance(part, Everyone)]
    messages = {part.messages for part in parts if isinstance(part, Everyone)}
    follow = all(a.stop == b.start for a, b in pairwise(ranges))
    if len(ranges) < len(parts) or len(messages) > 1 or not follow:
        return None
    return Everyone(range(ranges[0].start, ranges[-1].stop), messages.pop())


@dataclass(frozen=True, eq=False)
class Permuted:
    """A closed batch in the order in which it comes out, group by group.

    Rows are put in that order chunk by chunk, as they are handed out: long ones would take as much
    memory again, all of it fresh.

    Attributes:
        order: which row of the payload comes when; None if the rows are in order.
    """

    release: int
    groups: NDArray[np.int64]
    lengths: NDArray[np.int64]
    payload: NDArray[Any]
    order: NDArray[np.int64] | None = None
    slotted: bool = False
    records: Records | None = None
    promotions: tuple[Promotion, ...] = ()

    def chunk(self, first: int, last: int) -> Shuffled | Slotted:
        """Return the groups `first` to `last - 1` of the stream."""
        begin, end = np.searchsorted(self.groups, (first, last))
        lengths = self.lengths[begin:end]
        start = int(self.lengths[:begin].sum())
        cut = slice(start, start + int(lengths.sum()))
        rows = self.payload[cut if self.order is None else self.order[cut]]
        place = (self.release, self.groups[begin:end], lengths, rows)
        if self.records is not None:
            return Recorded(*place, self.records.take(cut))
        return Slotted(*place) if self.slotted else Shuffled(*place)


def cuts(groups: int, payload_bytes: int) -> list[int]:
    """Return where to cut the stream into chunks: by size alone, the same for any shufflers.

    Example:
        >>> cuts(64, 9 << 20)
        [0, 21, 42, 64]
    """
    chunks = min(groups, max(1, -(-payload_bytes // _CHUNK_BYTES)))
    return [groups * chunk // chunks for chunk in range(chunks + 1)]


def interleave(parts: Sequence[Out]) -> Out:
    """Put several shufflers' shares of the same groups in order.

    A shuffler that nobody reported to has an empty share of no known form.
    """
    parts = [part for part in parts if len(part.payload)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    groups = np.concatenate([part.groups for part in parts])
    lengths = np.concatenate([part.lengths for part in parts])
    payload = np.concatenate([part.payload for part in parts])
    order = np.argsort(groups)
    starts = np.cumsum(lengths) - lengths
    rows = [np.arange(starts[i], starts[i] + lengths[i]) for i in order] if recorded(parts) else []
    runs = [payload[starts[i] : starts[i] + lengths[i]] for i in order]
    joined = np.concatenate(runs) if runs else payload
    place = (parts[0].release, groups[order], lengths[order], joined)
    if rows:
        records = joined_records([part.records for part in parts if isinstance(part, Recorded)])
        return type(parts[0])(*place, records.take(np.concatenate(rows)))  # type: ignore[call-arg]
    return type(parts[0])(*place)


def recorded(parts: Sequence[Shuffled | Slotted]) -> bool:
    """Say whether chunks have records beside their rows."""
    return all(isinstance(part, Recorded) for part in parts)


def permute(
    release: int,
    batch: Gathered,
    messages: int,
    routing: str,
    stream: Stream,
    slots: NDArray[np.int64] | None = None,
) -> Permuted:
    """Permute a closed batch within its (logical shuffler, bucket) groups.

    Args:
        release: number of the release.
        batch: the messages; of one shuffler's buckets, or of all.
        messages: messages per report.
        routing: `per-index` has one logical shuffler per message index; `single` one for all.
        stream: keyed by the release.
        slots: of every row, where clients were assigned slots: each has a logical shuffler.
    """
    logical = messages if routing == "per-index" else 1
    if slots is not None:
        logical = int(slots.max(initial=0)) + 1
    # Symbols shorter than their numbers are moved themselves; other rows only once, at the end.
    row_bytes = batch.payload.dtype.itemsize * math.prod(batch.payload.shape[1:])
    short = batch.payload.ndim == 1 and batch.payload.dtype.kind == "u" and row_bytes < 8
    short &= batch.records is None  # which are moved along
    if batch.sizes is not None:
        grouped = Grouped(batch.payload, batch.sizes)
    else:
        key = _groups_of(batch, messages, logical, slots)
        grouped = kernels.group(key, logical * BUCKETS, batch.payload if short else None)
    groups = np.flatnonzero(grouped.sizes)
    lengths = grouped.sizes[groups]
    starts = np.cumsum(lengths) - lengths
    moved = grouped.items
    # A group's size is the same for any placement, so this choice is too.
    large = lengths >= _LARGE_GROUP
    if not large.all():
        _permute_small(moved, groups[~large], starts[~large], lengths[~large], logical, stream)
    kernels.shuffle(moved, starts[large], lengths[large], stream.starts("group", groups[large]))
    payload, order = (moved, None) if short else (batch.payload, moved)
    records = None if batch.records is None else batch.records.take(moved)
    promotions = tuple(
        each.take(stream.at("promotion", each.reader).generator().permutation(len(each)))
        for each in batch.promotions
    )
    slotted = slots is not None
    return Permuted(release, groups, lengths, payload, order, slotted, records, promotions)


def _groups_of(
    batch: Gathered, messages: int, logical: int, slots: NDArray[np.int64] | None
) -> NDArray[Any]:
    """Return the group of every row: (logical shuffler) * 64 + bucket."""
    if logical == 1:
        return batch.bucket
    if slots is None and isinstance(batch.senders, Everyone):
        first = np.arange(0, logical * BUCKETS, BUCKETS, dtype=width_of(logical))
        return np.asarray(batch.bucket.reshape(-1, logical) + first).reshape(-1)
    sequence = batch.senders.listed().sequence if slots is None else slots
    if slots is None and int(sequence.max(initial=0)) >= messages:
        sequence = sequence % messages  # a client with several values
    key = sequence.astype(width_of(logical))
    key *= key.dtype.type(BUCKETS)
    key += batch.bucket
    return key


def count(
    release: int,
    batch: Gathered,
    messages: int,
    routing: str,
    fold: Callable[[NDArray[Any], NDArray[Any]], NDArray[np.int64]],
) -> Counted:
    """Count the messages of a closed batch instead of permuting them.

    Args:
        release: number of the release.
        batch: the messages; of one shuffler's buckets, or of all.
        messages: messages per report.
        routing: `per-index` has one logical shuffler per message index; `single` one for all.
        fold: counts messages, given the logical shuffler of each and what it is.
    """
    index: NDArray[Any] = np.broadcast_to(np.int64(0), len(batch.payload))
    if messages > 1 and routing == "per-index":
        if isinstance(batch.senders, Everyone):
            index = np.tile(np.arange(messages), len(batch.payload) // messages)
        else:
            index = batch.senders.listed().sequence % messages
    counts = (fold(index, batch.payload),) if len(batch.payload) else ()
    return Counted(release, Summed(counts, len(batch.payload)))


def _permute_small(
    moved: NDArray[Any],
    groups: NDArray[np.int64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    logical: int,
    stream: Stream,
) -> None:
    """Permute all small groups at once by sorting keyed random words inside each group.

    The group's number takes the upper bits of the sort key and at least 42 random bits the lower,
    so two rows of a group of at most 512 tie with probability below 2^-24; they then keep their
    order.
    """
    group = np.repeat(groups, lengths)
    position = np.arange(len(group)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rows = np.repeat(starts, lengths) + position
    high, low = stream.at("small").pairs(group, position)
    room = 64 - (logical * BUCKETS - 1).bit_length()
    word = (high.astype(np.uint64) << np.uint64(32)) | low
    key = (group.astype(np.uint64) << np.uint64(room)) | (word >> np.uint64(64 - room))
    moved[rows] = moved[rows[np.argsort(key, kind="stable")]]
