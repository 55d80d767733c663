"""Groups of items, their permutations and histograms, in C."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.kernels import _compiled, plain
from raydp_sim.kernels.compiled.checked import SHORT, need
from raydp_sim.kernels.types import Counts, Grouped

_NOTHING = b""


def group(keys: NDArray[Any], groups: int, items: NDArray[Any] | None = None) -> Grouped:
    """Put items or row numbers group by group; see `plain.group`."""
    unfit = items is not None and items.dtype.char not in SHORT
    if unfit or keys.dtype.char not in SHORT:
        return plain.group(keys, groups, items)
    keys = need("keys", keys, keys.dtype, (len(keys),))
    given, kind = (_NOTHING, np.dtype(np.int64)) if items is None else (items, items.dtype)
    if items is not None:
        given = need("items", items, kind, keys.shape)
    out, (sizes, room) = np.empty(len(keys), kind), np.empty((2, groups), np.int64)
    _compiled.group(keys, keys.itemsize, sizes, room, given, kind.itemsize, out)
    return Grouped(out, sizes)


def merge(parts: Sequence[NDArray[Any]], sizes: Counts) -> NDArray[Any]:
    """Put items of several that are grouped already together; see `plain.merge`."""
    kind = parts[0].dtype
    if kind.char not in SHORT:
        return plain.merge(parts, sizes)
    sizes = need("sizes", sizes, np.int64, (len(parts), sizes.shape[1]))
    out, ends = np.empty(sum(map(len, parts)), kind), np.cumsum(sizes.sum(axis=0))
    room = ends - sizes.sum(axis=0)
    for part, each in zip(parts, sizes, strict=True):
        _compiled.merge(need("parts", part, kind, (len(part),)), kind.itemsize, each, room, out)
    return out


def shuffle(
    items: NDArray[Any], starts: Counts, lengths: Counts, seeds: NDArray[np.uint64]
) -> None:
    """Shuffle groups of items in place; see `plain.shuffle`."""
    if not (items.flags.c_contiguous and items.ndim == 1):
        raise ValueError("items are not contiguous; they are shuffled in place")
    starts = need("starts", starts, np.int64, (len(starts),))
    lengths = need("lengths", lengths, np.int64, starts.shape)
    seeds = need("seeds", seeds, np.uint64, (len(starts), 3))
    if items.dtype.kind not in "iu":
        raise TypeError(f"items have type {items.dtype}; whole numbers are shuffled")
    _compiled.shuffle(items, items.itemsize, starts, lengths, seeds)


def tally(
    symbols: NDArray[Any], alphabet: int, index: NDArray[Any] | None = None, rows: int = 1
) -> Counts:
    """Return histograms of symbols; see `plain.tally`."""
    if symbols.dtype.char not in SHORT:
        return plain.tally(symbols, alphabet, index, rows)
    flat = np.ascontiguousarray(symbols).reshape(-1)
    where: Any = _NOTHING
    if index is not None:
        where = np.broadcast_to(np.asarray(index, np.int64), symbols.shape)
        where = np.ascontiguousarray(where).reshape(-1)
    counts = np.zeros((rows, alphabet), np.int64)
    _compiled.tally(where, flat, flat.itemsize, rows, counts)
    return counts
