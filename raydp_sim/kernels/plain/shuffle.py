"""Stable grouping, shuffling inside groups, and histograms."""

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
