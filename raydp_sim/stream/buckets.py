"""Buckets of messages, and reports that come bucket by bucket already.

A report's bucket is a keyed draw by (release, client, sequence). Where all clients of a range send
whole reports, whoever holds them can put the rows in the order of their groups, (logical shuffler)
* 64 + bucket, before they travel: inside of one they stay in canonical order, (client, sequence).
Then nobody need be told each row's bucket; it can be drawn again.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim import kernels
from raydp_sim.random import Ids, Stream
from raydp_sim.stream.batches import BUCKETS, Everyone, Reports, Runs

_LANES = 10  # buckets (6 bits each) in one 64-bit word
# Rows per group from which on it is shorter to say how many there are than where each one goes.
_LONG = 16


def draw_buckets(stream: Stream, ids: Ids, messages: int) -> NDArray[np.uint8]:
    """Draw the bucket of every message: shape (n, messages), uniform on 0..63.

    A 64-bit word serves ten messages: several clients' if they send few, else several of one
    client's. The word of a client is a function of its id alone, so a dense range of ids, which
    needs a tenth of the words, gets the same buckets as the ids one by one.

    Example:
        >>> draw_buckets(Stream(1), np.arange(3, dtype=np.uint32), 2).shape
        (3, 2)
    """
    key = stream.at("bucket").key()
    if len(ids) and int(ids[-1]) - int(ids[0]) + 1 == len(ids):
        clients = range(int(ids[0]), int(ids[-1]) + 1)
        drawn = kernels.dealt(key, clients, messages, False, np.dtype(np.uint8))
        return drawn.reshape(-1, messages)
    share, words = max(1, _LANES // messages), -(-messages // _LANES)
    lanes = kernels.buckets(key, ids // np.uint32(share), words)
    if share == 1:
        return lanes[:, :messages]
    columns = (ids % np.uint32(share))[:, None] * messages + np.arange(messages)
    return np.take_along_axis(lanes, columns.astype(np.int64), axis=1)


def width_of(logical: int) -> np.dtype[Any]:
    """Return the narrowest type of the groups of so many logical shufflers; it sorts fastest."""
    return np.min_scalar_type(logical * BUCKETS - 1)


def _groups(place: Stream, senders: Everyone, logical: int) -> NDArray[Any]:
    """Return the group of every row; logical shufflers are one, or one per message."""
    key = place.at("bucket").key()
    return kernels.dealt(key, senders.clients, senders.messages, logical > 1, width_of(logical))


def worth_running(senders: Everyone, payload: Any, logical: int) -> bool:
    """Say whether rows are short, and many enough, to travel group by group."""
    if not isinstance(payload, np.ndarray) or payload.ndim > 1:
        return False
    short = payload.dtype.kind == "u" and payload.dtype.itemsize < 8
    return short and len(senders) >= _LONG * BUCKETS * logical


def in_runs(batch: Reports, place: Stream, logical: int) -> Reports:
    """Put the rows of a range of clients group by group.

    Args:
        batch: whole reports, whose buckets are not drawn yet.
        place: where they are drawn.
        logical: logical shufflers.
    """
    assert isinstance(batch.senders, Everyone)
    groups = _groups(place, batch.senders, logical)
    payload, sizes = kernels.group(groups, logical * BUCKETS, batch.payload)
    return replace(batch, payload=payload, runs=Runs(sizes, place))


def listed(batch: Reports) -> Reports:
    """Put rows that come group by group back in canonical order, with the bucket of each."""
    if batch.runs is None:
        return batch
    assert isinstance(batch.senders, Everyone)
    logical = len(batch.runs.sizes) // BUCKETS
    groups = _groups(batch.runs.place, batch.senders, logical)
    payload = np.empty_like(batch.payload)
    payload[kernels.group(groups, len(batch.runs.sizes)).items] = batch.payload
    bucket = (groups % BUCKETS).astype(np.uint8)
    return replace(batch, bucket=bucket, payload=payload, runs=None)
