"""Sums over the columns of a row, and wide random vectors that lean on a client's own."""

import numpy as np

from raydp_sim.kernels.plain.threefry import normals
from raydp_sim.kernels.types import Booleans, Floats, Ids, Key

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
