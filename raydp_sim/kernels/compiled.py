"""Every kernel in C, with the arguments and the results of `plain`.

Types and shapes are checked here, before C is entered; arrays that are not contiguous are copied.
Where C has no loop for an argument (an alphabet of more than 32 bits, say), `plain` does the work.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.kernels import _compiled, plain
from raydp_sim.kernels.plain.frames import factors
from raydp_sim.kernels.types import (
    Booleans,
    CoinTables,
    Counts,
    Floats,
    Grouped,
    Ids,
    Key,
    Octets,
    Thrown,
)

_NOTHING = b""
_MOST_SAMPLED = 2.0**31
_SHORT = ("B", "H", "I")
_WIDE = 16  # columns from which on a loop along rows is fast


def sets() -> tuple[str, ...]:
    """Return the instruction sets of this machine that there are loops for, slowest first."""
    return _compiled.sets()


def use(name: str) -> None:
    """Use one of them from now on."""
    _compiled.use(name)


def encrypt(key: Key, first: Ids, second: Ids) -> tuple[Ids, Ids]:
    """Draw 64 bits for every pair of counters; see `plain.encrypt`."""
    x0 = _need("first", first, np.uint32, (len(first),)).copy()
    x1 = _need("second", second, np.uint32, x0.shape).copy()
    _compiled.encrypt(*key, x0, x1)
    return x0, x1


def words(key: Key, ids: Ids, draws: int) -> tuple[Ids, Ids]:
    """Draw 64 bits for every client and draw; see `plain.words`."""
    ids = _need("ids", ids, np.uint32, (len(ids),))
    high, low = (np.empty((len(ids), draws), np.uint32) for _ in range(2))
    _compiled.words(*key, ids, draws, high, low)
    return high, low


def uniforms(key: Key, ids: Ids, draws: int) -> Floats:
    """Draw uniforms; see `plain.uniforms`."""
    ids = _need("ids", ids, np.uint32, (len(ids),))
    out = np.empty((len(ids), draws))
    _compiled.uniforms(*key, ids, draws, out)
    return out


def normals(key: Key, ids: Ids, draws: int) -> Floats:
    """Draw normals, a generator per client; see `plain.normals`."""
    ids = _need("ids", ids, np.uint32, (len(ids),))
    out = np.empty((len(ids), draws))
    _compiled.normals(*key, ids, draws, out)
    return out


def sample(key: Key, ids: Ids, high: Floats) -> Counts:
    """Draw whole numbers; see `plain.sample`."""
    ids = _need("ids", ids, np.uint32, (len(ids),))
    high = _need("high", high, np.float64, (len(high),))
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
    ids = _need("ids", ids, np.uint32, (len(ids),))
    flip = _need("flip", flip, np.float64, (len(flip),))
    gap = _need("gap", gap, np.float64, flip.shape)
    shape = (len(ids), len(flip))
    chance = _need("chance", chance, np.float64, shape)
    if kind.char not in _SHORT:
        return plain.toss(key, ids, offset, chance, flip, gap, kind)
    given = _NOTHING if offset is None else _need("offset", offset, np.int64, shape)
    out = np.empty(shape, kind)
    _compiled.toss(*key, ids, given, chance, flip, gap, out)
    return out


def picked(
    index: Key,
    key: Key,
    ids: Ids,
    values: Floats,
    starts: Counts,
    high: Floats,
    shift: float,
    scale: float,
    flip: Floats,
    gap: Floats,
    kind: np.dtype[Any],
) -> NDArray[Any]:
    """Return messages about sampled coordinates; see `plain.picked`."""
    ids = _need("ids", ids, np.uint32, (len(ids),))
    values = _need("values", values, np.float64, (len(ids), values.shape[1]))
    starts = _need("starts", starts, np.int64, (len(starts),))
    high = _need("high", high, np.float64, starts.shape)
    flip = _need("flip", flip, np.float64, starts.shape)
    gap = _need("gap", gap, np.float64, starts.shape)
    if kind.char not in _SHORT:
        return plain.picked(index, key, ids, values, starts, high, shift, scale, flip, gap, kind)
    out = np.empty((len(ids), len(starts)), kind)
    _compiled.picked(*index, *key, ids, values, starts, high, shift, scale, flip, gap, out)
    return out


def coins(key: Key, more: Key, ids: Ids, octets: int, tables: CoinTables) -> Thrown:
    """Return bytes of eight coins; see `plain.coins`."""
    ids = _need("ids", ids, np.uint32, (len(ids),))
    ends = _need("ends", tables.ends, np.uint64, (255,))
    cells = _need("cells", tables.cells, np.uint16, (1 << 16,))
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
    _compiled.mark(rows, _need("bit", bit, np.int64, (len(rows),)))


def buckets(key: Key, ids: Ids, draws: int) -> Octets:
    """Draw ten buckets from every word; see `plain.buckets`."""
    ids = _need("ids", ids, np.uint32, (len(ids),))
    out = np.empty((len(ids), 10 * draws), np.uint8)
    _compiled.buckets(*key, ids, draws, out)
    return out


def dealt(
    key: Key, clients: range, messages: int, apart: bool, kind: np.dtype[Any]
) -> NDArray[Any]:
    """Return the bucket of every message of a range of clients; see `plain.dealt`."""
    if kind.char not in _SHORT:
        return plain.dealt(key, clients, messages, apart, kind)
    out = np.empty(len(clients) * messages, kind)
    _compiled.dealt(*key, clients.start, len(clients), messages, apart, kind.itemsize, out)
    return out


def group(keys: NDArray[Any], groups: int, items: NDArray[Any] | None = None) -> Grouped:
    """Put items or row numbers group by group; see `plain.group`."""
    unfit = items is not None and items.dtype.char not in _SHORT
    if unfit or keys.dtype.char not in _SHORT:
        return plain.group(keys, groups, items)
    keys = _need("keys", keys, keys.dtype, (len(keys),))
    given, kind = (_NOTHING, np.dtype(np.int64)) if items is None else (items, items.dtype)
    if items is not None:
        given = _need("items", items, kind, keys.shape)
    out, (sizes, room) = np.empty(len(keys), kind), np.empty((2, groups), np.int64)
    _compiled.group(keys, keys.itemsize, sizes, room, given, kind.itemsize, out)
    return Grouped(out, sizes)


def merge(parts: Sequence[NDArray[Any]], sizes: Counts) -> NDArray[Any]:
    """Put items of several that are grouped already together; see `plain.merge`."""
    kind = parts[0].dtype
    if kind.char not in _SHORT:
        return plain.merge(parts, sizes)
    sizes = _need("sizes", sizes, np.int64, (len(parts), sizes.shape[1]))
    out, ends = np.empty(sum(map(len, parts)), kind), np.cumsum(sizes.sum(axis=0))
    room = ends - sizes.sum(axis=0)
    for part, each in zip(parts, sizes, strict=True):
        _compiled.merge(_need("parts", part, kind, (len(part),)), kind.itemsize, each, room, out)
    return out


def shuffle(
    items: NDArray[Any], starts: Counts, lengths: Counts, seeds: NDArray[np.uint64]
) -> None:
    """Shuffle groups of items in place; see `plain.shuffle`."""
    if not (items.flags.c_contiguous and items.ndim == 1):
        raise ValueError("items are not contiguous; they are shuffled in place")
    starts = _need("starts", starts, np.int64, (len(starts),))
    lengths = _need("lengths", lengths, np.int64, starts.shape)
    seeds = _need("seeds", seeds, np.uint64, (len(starts), 3))
    if items.dtype.kind not in "iu":
        raise TypeError(f"items have type {items.dtype}; whole numbers are shuffled")
    _compiled.shuffle(items, items.itemsize, starts, lengths, seeds)


def tally(
    symbols: NDArray[Any], alphabet: int, index: NDArray[Any] | None = None, rows: int = 1
) -> Counts:
    """Return histograms of symbols; see `plain.tally`."""
    if symbols.dtype.char not in _SHORT:
        return plain.tally(symbols, alphabet, index, rows)
    flat = np.ascontiguousarray(symbols).reshape(-1)
    where: Any = _NOTHING
    if index is not None:
        where = np.broadcast_to(np.asarray(index, np.int64), symbols.shape)
        where = np.ascontiguousarray(where).reshape(-1)
    counts = np.zeros((rows, alphabet), np.int64)
    _compiled.tally(where, flat, flat.itemsize, rows, counts)
    return counts


def dots(one: Floats, other: Floats) -> Floats:
    """Return the inner products of rows; see `plain.dots`."""
    one = _need("one", one, np.float64, (len(one), one.shape[1]))
    other = _need("other", other, np.float64, one.shape)
    out = np.empty(len(one))
    _compiled.dots(one, other, out)
    return out


def _rows_of_floats(x: NDArray[np.floating]) -> NDArray[np.floating]:
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(f"x has type {x.dtype}; give rows of floats")
    return _need("x", x, x.dtype, (len(x), x.shape[1]))


def squares(x: NDArray[np.floating]) -> Floats:
    """Return sums of squares of rows; see `plain.squares`."""
    x, out = _rows_of_floats(x), np.empty(len(x))
    _compiled.squares(x, x.itemsize, out)
    return out


def largest(x: NDArray[np.floating]) -> Floats:
    """Return the largest entries of rows; see `plain.largest`."""
    x, out = _rows_of_floats(x), np.empty(len(x))
    _compiled.largest(x, x.itemsize, out)
    return out


def gathered(pool: NDArray[Any], numbers: NDArray[np.int64], scale: float) -> NDArray[np.float32]:
    """Return rows of a pool; see `plain.gathered`."""
    fits = pool.dtype in (np.uint8, np.float32) and numbers.dtype == np.int64
    if not fits or not pool.flags.c_contiguous:
        return plain.gathered(pool, numbers, scale)
    numbers = np.ascontiguousarray(numbers)
    out = np.empty((*numbers.shape, *pool.shape[1:]), np.float32)
    _compiled.gathered(pool, pool.itemsize, numbers, scale, out)
    return out


def steps(
    x: NDArray[np.floating], scale: float, most: float, factors: Floats | None = None
) -> Counts | None:
    """Return sums of whole numbers by column; see `plain.steps`."""
    if x.dtype not in (np.float32, np.float64) or x.shape[1] < _WIDE:
        return plain.steps(x, scale, most, factors)
    x, total = _rows_of_floats(x), np.empty(x.shape[1])
    given = _NOTHING if factors is None else _need("factors", factors, np.float64, (len(x),))
    small = _compiled.steps(x, x.itemsize, given, scale, most, total)
    return total.astype(np.int64) if small else None


def turned(
    key: Key, ids: Ids, x: Floats, sided: Booleans, right: Booleans, length: float
) -> Floats:
    """Draw directions on one side of vectors; see `plain.turned`."""
    ids = _need("ids", ids, np.uint32, (len(ids),))
    x = _need("x", x, np.float64, (len(ids), x.shape[1]))
    sided = _need("sided", sided, np.bool_, ids.shape)
    right = _need("right", right, np.bool_, ids.shape)
    out = np.empty(x.shape)
    _compiled.turned(*key, ids, x, sided, right, length, out)
    return out


def leaned(
    key: Key,
    ids: Ids,
    x: Floats,
    size: Floats,
    shortest: float,
    height: Floats,
    across: Floats,
    exact: bool,
) -> Floats:
    """Draw vectors that lean on others; see `plain.leaned`."""
    ids = _need("ids", ids, np.uint32, (len(ids),))
    x = _need("x", x, np.float64, (len(ids), x.shape[1]))
    size, height, across = (
        _need(name, each, np.float64, ids.shape)
        for name, each in (("size", size), ("height", height), ("across", across))
    )
    out, room = np.empty(x.shape), np.empty((8, x.shape[1]) if len(x) else (0, 0))
    _compiled.leaned(*key, ids, x, size, shortest, height, across, exact, room, out)
    return out


def hadamard(x: NDArray[Any]) -> NDArray[Any]:
    """Return the Walsh-Hadamard transform of every row; see `plain.hadamard`."""
    if x.dtype not in (np.float32, np.float64) or x.ndim != 2:
        raise TypeError(f"x has type {x.dtype} and {x.ndim} axes; give rows of floats")
    out = np.array(x, order="C")
    _compiled.hadamard(out, x.shape[1], x.itemsize)
    return out


def coefficients(wide: Floats, rounds: int, cut: float, frame: Floats) -> Floats:
    """Return small coefficients in a tight frame; see `plain.coefficients`."""
    frame = _need("frame", frame, np.float64, (len(frame),))
    rest = _need("wide", wide, np.float64, (len(wide), len(frame))).copy()
    kept = np.zeros_like(rest)
    _compiled.coefficients(kept, rest, rounds, cut, frame)
    return kept


def entries(x: Floats, signs: Floats, rows: Counts) -> Floats:
    """Return single entries of rotated vectors; see `plain.entries`."""
    if rows.shape[1] % 2:
        # BLAS sums the last of an odd number of rows in another order.
        return plain.entries(x, signs, rows)
    x = _need("x", x, np.float64, (len(rows), x.shape[1]))
    signs = _need("signs", signs, np.float64, (len(signs),))
    rows = _need("rows", rows, np.int64, rows.shape)
    left, right = factors(len(signs))
    room = np.empty(5 * len(right))
    out = np.empty(rows.shape)
    _compiled.entries(x, x.shape[1], signs, rows, rows.shape[1], left, right, room, out)
    return out


@lru_cache(maxsize=1)
def agrees() -> bool:
    """Say whether NumPy draws and sums as the loops do: another version or processor may not."""
    ids, key = np.arange(9, dtype=np.uint32), (1, 2)
    drawn = plain.normals(key, ids, 65)
    same = np.array_equal(normals(key, ids, 65), drawn)
    wide = np.tile(drawn, 5)
    same &= np.array_equal(dots(drawn, drawn[::-1]), plain.dots(drawn, drawn[::-1]))
    same &= np.array_equal(squares(wide), plain.squares(wide))
    rows = np.arange(18).reshape(9, 2) * 3
    same &= np.array_equal(
        entries(drawn[:, :64], drawn[0, :64].copy(), rows),
        plain.entries(drawn[:, :64], drawn[0, :64].copy(), rows),
    )
    start = drawn[:3, 0].view(np.uint64)[None]
    items = np.arange(99)
    again, none, all_of_it = items.copy(), np.zeros(1, np.int64), np.full(1, 99)
    shuffle(items, none, all_of_it, start)
    plain.shuffle(again, none, all_of_it, start)
    return bool(same and np.array_equal(items, again))


def _need(name: str, given: Any, kind: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array of this type and shape, copied if it is not contiguous."""
    if not isinstance(given, np.ndarray) or given.dtype != kind:
        found = getattr(given, "dtype", type(given).__name__)
        raise TypeError(f"{name} has type {found}; it must be an array of {np.dtype(kind)}")
    if given.shape != shape:
        raise ValueError(f"{name} has shape {given.shape}; it must be {shape}")
    return np.ascontiguousarray(given)
