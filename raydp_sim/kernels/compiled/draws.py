"""Random words, numbers and bits of clients, in C."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.kernels import _compiled, plain
from raydp_sim.kernels.compiled.checked import SHORT, need
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

_NOTHING = b""
_MOST_SAMPLED = 2.0**31


def encrypt(key: Key, first: Ids, second: Ids) -> tuple[Ids, Ids]:
    """Draw 64 bits for every pair of counters; see `plain.encrypt`."""
    x0 = need("first", first, np.uint32, (len(first),)).copy()
    x1 = need("second", second, np.uint32, x0.shape).copy()
    _compiled.encrypt(*key, x0, x1)
    return x0, x1


def words(key: Key, ids: Ids, draws: int) -> tuple[Ids, Ids]:
    """Draw 64 bits for every client and draw; see `plain.words`."""
    ids = need("ids", ids, np.uint32, (len(ids),))
    high, low = (np.empty((len(ids), draws), np.uint32) for _ in range(2))
    _compiled.words(*key, ids, draws, high, low)
    return high, low


def uniforms(key: Key, ids: Ids, draws: int) -> Floats:
    """Draw uniforms; see `plain.uniforms`."""
    ids = need("ids", ids, np.uint32, (len(ids),))
    out = np.empty((len(ids), draws))
    _compiled.uniforms(*key, ids, draws, out)
    return out


def normals(key: Key, ids: Ids, draws: int) -> Floats:
    """Draw normals, a generator per client; see `plain.normals`."""
    ids = need("ids", ids, np.uint32, (len(ids),))
    out = np.empty((len(ids), draws))
    _compiled.normals(*key, ids, draws, out)
    return out


def sample(key: Key, ids: Ids, high: Floats) -> Counts:
    """Draw whole numbers; see `plain.sample`."""
    ids = need("ids", ids, np.uint32, (len(ids),))
    high = need("high", high, np.float64, (len(high),))
    if not high.max(initial=0.0) <= _MOST_SAMPLED:
        return plain.sample(key, ids, high)
    out = np.empty((len(ids), len(high)), np.int64)
    _compiled.sample(*key, ids, high, out)
    return out


def toss(
    key: Key,
    ids: Ids,
    offset: Counts | None,
    chance: Floats,
    flip: Floats,
    gap: Floats,
    kind: np.dtype[Any],
) -> NDArray[Any]:
    """Return messages with a tossed bit; see `plain.toss`."""
    ids = need("ids", ids, np.uint32, (len(ids),))
    flip = need("flip", flip, np.float64, (len(flip),))
    gap = need("gap", gap, np.float64, flip.shape)
    shape = (len(ids), len(flip))
    chance = need("chance", chance, np.float64, shape)
    if kind.char not in SHORT:
        return plain.toss(key, ids, offset, chance, flip, gap, kind)
    given = _NOTHING if offset is None else need("offset", offset, np.int64, shape)
    out = np.empty(shape, kind)
    _compiled.toss(*key, ids, given, chance, flip, gap, out)
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
    """Return messages about sampled coordinates; see `plain.picked`."""
    ids = need("ids", ids, np.uint32, (len(ids),))
    number = np.float32 if values.dtype == np.float32 else np.float64
    values = need("values", values, number, (len(ids), values.shape[1]))
    starts = need("starts", starts, np.int64, (len(starts),))
    high = need("high", high, np.float64, starts.shape)
    flip = need("flip", flip, np.float64, starts.shape)
    gap = need("gap", gap, np.float64, starts.shape)
    if kind.char not in SHORT:
        return plain.picked(index, key, ids, values, starts, high, shift, scale, flip, gap, kind)
    out = np.empty((len(ids), len(starts)), kind)
    size = values.itemsize
    _compiled.picked(*index, *key, ids, values, size, starts, high, shift, scale, flip, gap, out)
    return out


def coins(key: Key, more: Key, ids: Ids, octets: int, tables: CoinTables) -> Thrown:
    """Return bytes of eight coins; see `plain.coins`."""
    ids = need("ids", ids, np.uint32, (len(ids),))
    ends = need("ends", tables.ends, np.uint64, (255,))
    cells = need("cells", tables.cells, np.uint16, (1 << 16,))
    # What is undecided looks like 255 in a table of half the size, and is told by another.
    short, undecided = np.minimum(cells, 255).astype(np.uint8), (cells > 255).astype(np.uint8)
    out = np.empty((len(ids), octets), np.uint8)
    if _compiled.coins(*key, *more, ids, octets, short, undecided, ends, out):
        return plain.coins(key, more, ids, octets, tables)
    return Thrown(out, np.empty(0, np.int64), np.empty(0, np.uint64))


def mark(rows: Octets, bit: Counts) -> None:
    """Flip one bit of every row in place; see `plain.mark`."""
    if rows.dtype != np.uint8 or rows.ndim != 2 or not rows.flags.c_contiguous:
        raise TypeError("rows must be contiguous bytes, (n, octets); they are changed in place")
    _compiled.mark(rows, need("bit", bit, np.int64, (len(rows),)))


def buckets(key: Key, ids: Ids, draws: int) -> Octets:
    """Draw ten buckets from every word; see `plain.buckets`."""
    ids = need("ids", ids, np.uint32, (len(ids),))
    out = np.empty((len(ids), 10 * draws), np.uint8)
    _compiled.buckets(*key, ids, draws, out)
    return out


def dealt(
    key: Key, clients: range, messages: int, apart: bool, kind: np.dtype[Any]
) -> NDArray[Any]:
    """Return the bucket of every message of a range of clients; see `plain.dealt`."""
    if kind.char not in SHORT:
        return plain.dealt(key, clients, messages, apart, kind)
    out = np.empty(len(clients) * messages, kind)
    _compiled.dealt(*key, clients.start, len(clients), messages, apart, kind.itemsize, out)
    return out
