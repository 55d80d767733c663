"""Stable grouping, shuffling inside groups, and histograms."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.kernels.plain.threefry import generator
from raydp_sim.kernels.types import Counts, Grouped


def group(keys: NDArray[Any], groups: int, items: NDArray[Any] | None = None) -> Grouped:
    """Put items, or else the numbers of rows, group by group; inside a group nothing moves.

    Args:
        keys: of every row, unsigned, below `groups`.
        groups: how many there are.
        items: one number each; None for the rows' own numbers.
    """
    order = np.argsort(keys, kind="stable")
    sizes = np.bincount(keys, minlength=groups)
    return Grouped(order if items is None else items[order], sizes)


def merge(parts: Sequence[NDArray[Any]], sizes: Counts) -> NDArray[Any]:
    """Put items of several that are grouped already together, group by group.

    Args:
        parts: numbers of one type, each in the order of its groups.
        sizes: how many of every group each part has, (parts, groups).

    Raises:
        ValueError: where a part is longer or shorter than its groups.
    """
    if any(len(part) != each.sum() for part, each in zip(parts, sizes, strict=True)):
        raise ValueError("sizes of arrays do not fit each other")
    ends = [np.cumsum(each) for each in sizes]
    runs = [
        part[end[group] - each[group] : end[group]]
        for group in range(sizes.shape[1])
        for part, end, each in zip(parts, ends, sizes, strict=True)
    ]
    return np.concatenate(runs)


def shuffle(
    items: NDArray[Any], starts: Counts, lengths: Counts, seeds: NDArray[np.uint64]
) -> None:
    """Shuffle groups of items in place, each with NumPy's SFC64 from three words of its own."""
    for start, length, seed in zip(starts, lengths, seeds, strict=True):
        rows = items[start : start + length]
        words = rows.astype(np.int64)  # NumPy shuffles eight bytes faster than one
        generator(seed).shuffle(words)
        rows[:] = words


def tally(
    symbols: NDArray[Any], alphabet: int, index: NDArray[Any] | None = None, rows: int = 1
) -> Counts:
    """Return the histogram of symbols for every index, shape (rows, alphabet)."""
    key: NDArray[Any] = symbols
    if index is not None:
        # An index for every symbol: broadcasting the other way would count each of them many times.
        where = np.broadcast_to(np.asarray(index, np.int64), symbols.shape)
        key = where * alphabet + symbols
    return np.bincount(key.ravel(), minlength=rows * alphabet).reshape(rows, alphabet)
