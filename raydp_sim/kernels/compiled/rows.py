"""Passes over long rows, in C."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.kernels import _compiled, plain
from raydp_sim.kernels.compiled.checked import need
from raydp_sim.kernels.plain.frames import factors
from raydp_sim.kernels.types import Booleans, Counts, Floats, Ids, Key

_NOTHING = b""
_WIDE = 16  # columns from which on a loop along rows is fast


def dots(one: Floats, other: Floats) -> Floats:
    """Return the inner products of rows; see `plain.dots`."""
    one = need("one", one, np.float64, (len(one), one.shape[1]))
    other = need("other", other, np.float64, one.shape)
    out = np.empty(len(one))
    _compiled.dots(one, other, out)
    return out


def _rows_of_floats(x: NDArray[np.floating]) -> NDArray[np.floating]:
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(f"x has type {x.dtype}; give rows of floats")
    return need("x", x, x.dtype, (len(x), x.shape[1]))


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
    given = _NOTHING if factors is None else need("factors", factors, np.float64, (len(x),))
    small = _compiled.steps(x, x.itemsize, given, scale, most, total)
    return total.astype(np.int64) if small else None


def turned(
    key: Key, ids: Ids, x: Floats, sided: Booleans, right: Booleans, length: float
) -> Floats:
    """Draw directions on one side of vectors; see `plain.turned`."""
    ids = need("ids", ids, np.uint32, (len(ids),))
    x = need("x", x, np.float64, (len(ids), x.shape[1]))
    sided = need("sided", sided, np.bool_, ids.shape)
    right = need("right", right, np.bool_, ids.shape)
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
    ids = need("ids", ids, np.uint32, (len(ids),))
    x = need("x", x, np.float64, (len(ids), x.shape[1]))
    size, height, across = (
        need(name, each, np.float64, ids.shape)
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
    frame = need("frame", frame, np.float64, (len(frame),))
    rest = need("wide", wide, np.float64, (len(wide), len(frame))).copy()
    kept = np.zeros_like(rest)
    _compiled.coefficients(kept, rest, rounds, cut, frame)
    return kept


def entries(x: Floats, signs: Floats, rows: Counts) -> Floats:
    """Return single entries of rotated vectors; see `plain.entries`."""
    if rows.shape[1] % 2:
        # BLAS sums the last of an odd number of rows in another order.
        return plain.entries(x, signs, rows)
    x = need("x", x, np.float64, (len(rows), x.shape[1]))
    signs = need("signs", signs, np.float64, (len(signs),))
    rows = need("rows", rows, np.int64, rows.shape)
    left, right = factors(len(signs))
    room = np.empty(5 * len(right))
    out = np.empty(rows.shape)
    _compiled.entries(x, x.shape[1], signs, rows, rows.shape[1], left, right, room, out)
    return out
