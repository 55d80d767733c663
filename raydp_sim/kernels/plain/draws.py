"""What messages are made of: sampled numbers, tossed bits, buckets and eight coins at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.kernels.plain.threefry import encrypt, uniforms, words
from raydp_sim.kernels.types import (
    CoinTables,
    Counts,
    Floats,
    Floats32,
    Ids,
    Key,
    Octets,
    Thrown,
)

_LANES = 10  # buckets (6 bits each) in one 64-bit word
_BUCKETS = 64
_UNDECIDED = 256
# Messages tossed at a time, so that the arrays of one step stay in cache.
_CACHED = 1 << 16
# Bytes drawn at a time, so that the arrays of one step stay in cache.
_BYTES = 1 << 17


def sample(key: Key, ids: Ids, high: Floats) -> Counts:
    """Draw a whole number below each of `high` for every client, shape (n, len(high))."""
    u = uniforms(key, ids, len(high))
    u *= high
    return u.astype(np.int64)


def toss(
    key: Key,
    ids: Ids,
    offset: Counts | None,
    chance: Floats,
    flip: Floats,
    gap: Floats,
    kind: np.dtype[Any],
) -> NDArray[Any]:
    """Return messages 2 offset + bit, the bit 1 with probability flip + gap * chance.

    Args:
        key: of the uniforms.
        ids: of the clients, one row each.
        offset: of every message, (n, messages); None for zeros.
        chance: of every message.
        flip: of every column.
        gap: of every column.
        kind: unsigned, of the messages.
    """
    out = np.empty((len(ids), len(flip)), kind)
    for rows in _pieces(len(ids), len(flip)):
        bits = chance[rows] * gap
        bits += flip
        shown = uniforms(key, ids[rows], len(flip)) < bits
        if offset is None:
            out[rows] = shown
        else:
            sent = offset[rows] + offset[rows]
            sent += shown
            out[rows] = sent
    return out


def picked(
    index: Key,
    key: Key,
    ids: Ids,
    values: Floats | Floats32,
    starts: Counts,
    high: Floats,
    shift: float,
    scale: float,
    flip: Floats,
    gap: Floats,
    kind: np.dtype[Any],
) -> NDArray[Any]:
    """Return messages about one sampled coordinate of each block, as `toss` does.

    A value v of the coordinate, cut to [-shift, shift], is taken for 1 with chance
    (v + shift) * scale, cut to [0, 1].

    Args:
        index: key of the offsets.
        key: of the uniforms.
        ids: of the clients, one row each.
        values: of the clients, (n, dimension), doubles or single floats.
        starts: first coordinate of every block.
        high: offsets that are drawn in every block.
        shift: >= 0, added to values.
        scale: of their sums.
        flip: of every block.
        gap: of every block.
        kind: unsigned, of the messages.

    Raises:
        ValueError: where a block reaches past the values.
    """
    if len(values) and ((starts < 0) | (high < 1.0) | (starts + high > values.shape[1])).any():
        raise ValueError(f"a block reaches past {values.shape[1]} coordinates")
    out, flat = np.empty((len(ids), len(high)), kind), values.reshape(-1)
    for rows in _pieces(len(ids), len(high)):
        offset = sample(index, ids[rows], high)
        begin = np.arange(rows.start, rows.start + len(offset))[:, None] * values.shape[1]
        z = flat.take(offset + (starts + begin)).astype(np.float64, copy=False)
        np.clip(z, -shift, shift, out=z)
        z += shift
        z *= scale
        np.clip(z, 0.0, 1.0, out=z)
        out[rows] = toss(key, ids[rows], offset, z, flip, gap, kind)
    return out


def _pieces(rows: int, draws: int) -> Iterator[slice]:
    """Cut rows, so that the arrays of one step stay in cache."""
    step = max(1, _CACHED // max(1, draws))
    for first in range(0, rows, step):
        yield slice(first, first + step)


def buckets(key: Key, ids: Ids, draws: int) -> Octets:
    """Draw ten buckets, uniform on 0..63, from every word: shape (n, 10 draws)."""
    high, low = words(key, ids, draws)
    out = np.empty((*high.shape, _LANES), np.uint8)
    for lane in range(_LANES):
        half, shift = (high, 26 - 6 * lane) if lane < 5 else (low, 26 - 6 * (lane - 5))
        out[..., lane] = (half >> np.uint32(shift)) & np.uint32(_BUCKETS - 1)
    return out.reshape(len(high), draws * _LANES)


def dealt(
    key: Key, clients: range, messages: int, apart: bool, kind: np.dtype[Any]
) -> NDArray[Any]:
    """Return the bucket of every message of a range of clients, flat, client by client.

    A word serves ten messages: several clients' if they send few, else several of one client's. The
    word of a client is a function of its id alone.

    Args:
        key: of the words.
        clients: a range of ids.
        messages: of each.
        apart: whether every message of a report has 64 numbers of its own, the next ones.
        kind: unsigned, of the numbers.
    """
    share, draws = max(1, _LANES // messages), -(-messages // _LANES)
    first, last = clients.start // share, -(-clients.stop // share)
    lanes = buckets(key, np.arange(first, last, dtype=np.uint32), draws)
    rows = lanes[:, : share * messages].reshape(-1, messages)
    start = clients.start - first * share
    found = rows[start : start + len(clients)].astype(kind)
    if apart:
        found += np.arange(messages, dtype=kind) * kind.type(_BUCKETS)
    return found.reshape(-1)


def coins(key: Key, more: Key, ids: Ids, octets: int, tables: CoinTables) -> Thrown:
    """Return `octets` bytes of eight coins for every client; see `mechanisms.parts.eight_coins`.

    Args:
        key: of the 16 bits that nearly always decide.
        more: of 48 further ones.
        ids: of the clients, one row each.
        octets: bytes of a row.
        tables: that decide.
    """
    out = np.empty((len(ids), octets), np.uint8)
    step = max(1, _BYTES // max(1, octets))
    ties: list[tuple[int, int]] = []
    for first in range(0, len(out), step):
        some = ids[first : first + step]
        block, open_ = _coins(key, more, some, octets, tables)
        out[first : first + step] = block
        ties += [(first * octets + position, number) for position, number in open_]
    position = np.array([each for each, _ in ties], np.int64)
    return Thrown(out, position, np.array([number for _, number in ties], np.uint64))


def _coins(
    key: Key, more: Key, ids: Ids, octets: int, tables: CoinTables
) -> tuple[NDArray[Any], list[tuple[int, int]]]:
    drawn = words(key, ids, -(-octets // 4))
    halves = [half.astype("<u4", copy=False).view("<u2") for half in drawn]
    cells = np.hstack(halves)[:, :octets].reshape(-1)
    found: NDArray[np.uint16] = tables.cells[cells]
    at = np.flatnonzero(found == _UNDECIDED)
    if not at.size:
        return found.reshape(-1, octets), []
    row, column = np.divmod(at, octets)
    high, low = encrypt(more, ids[row], column.astype(np.uint32))
    rest = high.astype(np.uint64) << np.uint64(16) | low >> np.uint32(16)
    number = cells[at].astype(np.uint64) << np.uint64(48) | rest
    byte = np.searchsorted(tables.ends, number, side="right")
    # Equal to the upper bits of an end: lower bits decide on which side of it.
    ties = np.flatnonzero((byte > 0) & (tables.ends[byte - 1] == number))
    found[at] = byte
    return found.reshape(-1, octets), [(int(at[tie]), int(number[tie])) for tie in ties]


def mark(rows: Octets, bit: Counts) -> None:
    """Flip bit `bit[i]` of row i in place, the first bit of a byte being its highest.

    Raises:
        ValueError: where a row has no such bit.
    """
    octets = rows.shape[1]
    if not ((bit >= 0) & (bit < 8 * octets)).all():
        raise ValueError(f"a row has {8 * octets} bits")
    place = np.arange(len(rows)) * octets + (bit >> 3)
    rows.reshape(-1)[place] ^= (128 >> (bit & 7)).astype(np.uint8)
