"""Quan: a vector of an l2 ball becomes a signed histogram of d balls in d bins."""

import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Floats
from raydp_sim.mechanisms.parts.half_space import half_step
from raydp_sim.random import ClientStream

Mode = Literal["iid", "seed", "simq"]

# Doubles handled at a time, so that the arrays of one step stay in cache.
_CACHED = 1 << 15
# Cells of the guide per bin. More cells need fewer comparisons and more memory.
_CELLS = 4
# A row whose entries sum to less counts as zeros, so that nothing below overflows.
_ZERO = 1e-280


def balls(
    y: Floats, size: float, mode: Mode, stream: ClientStream, dtype: Any = np.int64
) -> NDArray[Any]:
    """Throw d balls per client; return each bin's signed count. `size` bounds the l2 norm.

    Bin i is hit in proportion to |y_i|; with t = |y|_1 / (size sqrt(d)) <= 1 a ball has the sign of
    y_i with probability (1 + t) / 2 and else the opposite one. "iid" draws this for every ball,
    "seed" once for all d, "simq" drops a ball with probability 1 - t and never turns its sign.
    size / sqrt(d) times the counts has the mean y in all three.
    """
    n, d = y.shape
    out = np.empty((n, d), dtype)
    step = max(1, _CACHED // d)
    for first in range(0, n, step):
        rows = slice(first, first + step)
        out[rows] = _throw(np.ascontiguousarray(y[rows]), size, mode, stream.take(rows))
    return out


def _throw(y: Floats, size: float, mode: Mode, stream: ClientStream) -> Floats:
    n, d = y.shape
    masses = np.abs(y)
    total = masses.sum(axis=1, keepdims=True)
    tight = np.minimum(total / (size * math.sqrt(d)), 1.0)
    empty = total[:, 0] < _ZERO
    if empty.any():
        masses[empty], tight[empty] = 1.0, 0.0
    ends = np.cumsum(masses, axis=1, out=masses)
    total = ends[:, -1:]
    u = stream.uniform("balls", d)
    signs = np.copysign(1.0, y)
    weights = None
    if mode == "seed":
        u *= total
        signs *= np.where(stream.uniform("sign") < 0.5 + 0.5 * tight, 1.0, -1.0)
    else:
        # One uniform decides on the sign; its distance from where signs change, on the bin.
        turn = tight if mode == "simq" else 0.5 + 0.5 * tight
        u -= turn
        kept = u < 0.0
        weights = kept.astype(np.float64) if mode == "simq" else np.copysign(1.0, -u)
        np.abs(u, out=u)
        u *= np.where(kept, total / np.maximum(turn, _ZERO), total / np.maximum(1.0 - turn, _ZERO))
        np.minimum(u, np.nextafter(total, 0.0), out=u)
        weights = weights.ravel()
    counts = np.bincount(_search(ends, u), weights, n * d).reshape(n, d)
    return np.asarray(np.multiply(signs, counts, out=signs))


def _search(ends: Floats, points: Floats) -> NDArray[np.int64]:
    """Return, as flat positions, the first of each row's `ends` that lies above each point.

    Every row is cut into equal cells. The cell of a number grows with it, rounding included, so the
    ends of earlier cells lie below a point and those of later cells above it; what is left to
    compare is the ends of its own cell, mostly none or one, by bisection. The work is bounded
    whatever the row holds.
    """
    n, d = ends.shape
    # Two to spare for rounding at the end of a row, so that rows stay apart.
    cells = _CELLS * d + 2
    scale = _CELLS * d / ends[:, -1:]
    start = np.arange(0, n * cells, cells)[:, None]
    cell = (ends * scale).astype(np.int64)
    cell += start + 1
    # Each row has d ends, so the number of ends in earlier cells is also a flat position.
    before = np.bincount(cell.ravel(), minlength=n * cells + 1)
    np.cumsum(before, out=before)
    cell = (points * scale).astype(np.int64)
    cell += start
    low = before.take(cell.ravel())
    cell += 1
    high = before.take(cell.ravel())
    ends, points = ends.ravel(), points.ravel()
    left = np.flatnonzero(low < high)
    below, above, point = low[left], high[left], points[left]
    while left.size:
        middle = (below + above) >> 1
        right = ends.take(middle) <= point
        below = np.where(right, middle + 1, below)
        above = np.where(right, above, middle)
        low[left] = below
        keep = np.flatnonzero(below < above)
        left, below, above, point = left[keep], below[keep], above[keep], point[keep]
    return np.asarray(low)


def quantiser_mse(y: Floats, size: float, mode: Mode) -> Floats:
    """Return each row's exact error E |size / sqrt(d) * counts - y|^2."""
    d = y.shape[1]
    total, square = np.abs(y).sum(axis=1), (y * y).sum(axis=1)
    if mode == "simq":
        return np.asarray((size * math.sqrt(d) * total - square) / d)
    if mode == "iid":
        return np.asarray(size**2 - square / d)
    # Of a row of zeros the bins are drawn evenly, as if its entries were equal.
    shares = y / np.maximum(total, _ZERO)[:, None]
    ratio = np.where(total < _ZERO, 1.0 / d, (shares * shares).sum(axis=1))
    return np.asarray(size**2 * (1.0 + (d - 1) * ratio) - square)


def sphere_moment(dimension: int, mode: Mode) -> float:
    """Return E |counts|^2 / d of a uniform direction u, size 1: exact, "seed" by quadrature.

    iid: 2 - 1/d. simq: 1 - 1/d + sqrt(d) E|u_1|. seed: 1 + kappa with kappa = (d - 1) E 1/|u|_1^2.

    Example:
        >>> sphere_moment(4, "iid"), round(sphere_moment(2, "seed"), 9)
        (1.75, 1.636619772)
    """
    if mode == "iid":
        return 2.0 - 1.0 / dimension
    if mode == "simq":
        return 1.0 - 1.0 / dimension + math.sqrt(dimension) / half_step(0.5 * dimension)
    return 1.0 + kappa(dimension)


@lru_cache(maxsize=64)
def kappa(dimension: int) -> float:
    """Return (d - 1) E[1 / |u|_1^2] for u uniform on the sphere of R^d.

    For d = 2 it is 2 / pi. From d = 3 on, u is the direction of a normal vector g, independent of
    its length, and E[1 / |g|_2^2] = 1 / (d - 2); with 1 / s^2 = int t e^(-t s) dt this gives
    kappa = (d - 1) (d - 2) int_0^inf t L(t)^d dt, L(t) = E e^(-t |g_1|) = erfcx(t / sqrt(2)).

    Example:
        >>> round(kappa(64), 4)
        1.5392
    """
    d = dimension
    if d <= 2:
        return 0.0 if d == 1 else 2.0 / math.pi
    # In s = t d the integrand keeps its shape as d grows.
    value, _ = scipy.integrate.quad(
        lambda s: s * float(scipy.special.erfcx(s / (d * math.sqrt(2.0)))) ** d,
        0.0,
        math.inf,
        epsabs=0.0,
        epsrel=1e-11,
        limit=200,
    )
    return float((d - 1) * (d - 2) / d**2 * value)
