"""Sums over the columns of a row, and wide random vectors that lean on a client's own."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.kernels.plain.threefry import normals
from raydp_sim.kernels.types import Booleans, Counts, Floats, Ids, Key

# NumPy's buffer: a single row that is wider is summed in pieces of this length, many rows are not.
_COLUMNS = 8192
# Doubles handled at a time, so that the arrays of one step stay in cache.
_CACHED = 1 << 16
_LEAST = 1e-300


def dots(one: Floats, other: Floats) -> Floats:
    """Return the inner product of every row of `one` with the same row of `other`."""
    # Columns apart from each other NumPy would sum in another order.
    one, other = np.ascontiguousarray(one), np.ascontiguousarray(other)
    total = np.einsum("ij,ij->i", one[:, :_COLUMNS], other[:, :_COLUMNS])
    for first in range(_COLUMNS, one.shape[1], _COLUMNS):
        columns = slice(first, first + _COLUMNS)
        total += np.einsum("ij,ij->i", one[:, columns], other[:, columns])
    return np.asarray(total)


def squares(x: NDArray[np.floating]) -> Floats:
    """Return the sum of the squares of every row, of doubles or of single floats as doubles.

    Row by row the same whatever else is in the array. In another order than `dots`.
    """
    out, step = np.empty(len(x)), max(1, _CACHED // (2 * max(1, x.shape[1])))
    for first in range(0, len(x), step):
        doubles = np.asarray(x[first : first + step], np.float64, order="C")
        with np.errstate(over="ignore", invalid="ignore"):
            out[first : first + step] = (doubles * doubles).sum(axis=1)
    return out


def largest(x: NDArray[np.floating]) -> Floats:
    """Return the largest entry of every row in size; what is no number is larger than all."""
    out, step = np.empty(len(x)), max(1, 4 * _CACHED // max(1, x.shape[1]))
    for first in range(0, len(x), step):
        part = x[first : first + step]
        # The largest and the smallest: there is no other array to be made.
        high, low = part.max(axis=1, initial=0.0), part.min(axis=1, initial=0.0)
        out[first : first + step] = np.abs(np.maximum(high, -low))  # no zero has a sign
    return out


def gathered(pool: NDArray[Any], numbers: NDArray[np.int64], scale: float) -> NDArray[np.float32]:
    """Return rows of a pool as single floats; of bytes, times a single float.

    Args:
        pool: one row per sample, of any shape.
        numbers: of rows.
        scale: of bytes.
    """
    found = pool.take(numbers, axis=0).astype(np.float32, copy=False)  # that is a copy already
    if pool.dtype == np.uint8:
        found *= np.float32(scale)
    return found


def steps(
    x: NDArray[np.floating], scale: float, most: float, factors: Floats | None = None
) -> Counts | None:
    """Round `x * factors * scale` to whole numbers and sum every column; exact in any order.

    Args:
        x: rows, of doubles or of single floats, which are taken as doubles.
        scale: of all.
        most: what every whole number must stay below.
        factors: of each row; 1 by default.

    Returns:
        None if one is not below `most` in size, which must be at most 2^53 over the rows.
    """
    total = np.zeros(x.shape[1])
    rows = max(1, _CACHED // max(1, x.shape[1]))
    room = np.empty((min(rows, len(x)), x.shape[1]))
    for first in range(0, len(x), rows):
        part = x[first : first + rows]
        block = room[: len(part)]
        block[:] = part
        if factors is not None:
            block *= factors[first : first + rows, None]
        block *= scale
        np.rint(block, out=block)
        if not max(block.max(initial=0.0), -block.min(initial=0.0)) < most:
            return None
        total += block.sum(axis=0)
    return total.astype(np.int64)


def turned(
    key: Key, ids: Ids, x: Floats, sided: Booleans, right: Booleans, length: float
) -> Floats:
    """Draw directions and turn each to the side of x where `right`, else to the other.

    Args:
        key: of the normals.
        ids: of the clients, one row each.
        x: the vectors, (n, d).
        sided: which of them have a side; others take that of the first column.
        right: on which side the direction shall be.
        length: of the result.
    """
    out = np.empty(x.shape)
    step = max(1, _CACHED // max(1, x.shape[1]))
    for first in range(0, len(x), step):
        rows = slice(first, first + step)
        g = normals(key, ids[rows], x.shape[1])
        along = np.where(sided[rows], dots(g, x[rows]), g[:, 0])
        size = np.sqrt(np.maximum(dots(g, g), _LEAST))
        factor = np.where((along > 0.0) == right[rows], 1.0, -1.0) / size
        np.multiply(g, factor[:, None], out=out[rows])
    out *= length
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
    """Draw normals and replace what lies along x, so that every row leans on its vector.

    Args:
        key: of the normals.
        ids: of the clients, one row each.
        x: the vectors, (n, d).
        size: their lengths; a row below `shortest` has the first axis for a direction.
        shortest: length of a vector that has a direction.
        height: of the result along its vector.
        across: what the rest is multiplied by.
        exact: bring the rest to length 1 before.
    """
    out = np.empty(x.shape)
    step = max(1, _CACHED // (2 * max(1, x.shape[1])))
    for first in range(0, len(x), step):
        rows = slice(first, first + step)
        short = size[rows] < shortest
        unit = x[rows] / np.where(short, 1.0, size[rows])[:, None]
        unit[short] = 0.0
        unit[short, 0] = 1.0
        normal = normals(key, ids[rows], x.shape[1])
        normal -= dots(normal, unit)[:, None] * unit
        rest = across[rows].copy()
        if exact:
            rest /= np.sqrt(np.maximum(dots(normal, normal), _LEAST))
        normal *= rest[:, None]
        unit *= height[rows, None]
        np.add(normal, unit, out=out[rows])
    return out
