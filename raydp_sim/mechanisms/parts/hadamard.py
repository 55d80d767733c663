"""Walsh-Hadamard transforms of many vectors, whole or only where they are needed.

Nothing is summed across the batch: a row's result does not depend on its neighbours.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim import kernels
from raydp_sim.kernels.plain.hadamard import Room, butterflies, plan, unbuffered
from raydp_sim.mechanisms.base import Floats

# Multiplications of one client up to which `factored` is used.
FACTORED = 1 << 18


def fwht(x: Floats) -> Floats:
    """Return H x for every row, H the Sylvester Hadamard matrix (entries 1 and -1).

    Example:
        >>> fwht(np.array([[1.0, 2.0, 3.0, 4.0]])).tolist()
        [[10.0, -2.0, -4.0, 0.0]]
    """
    return kernels.hadamard(x)


def sampled(x: Floats, signs: Floats, rows: NDArray[Any], split: int) -> Floats:
    """Return single entries of H (signs * pad(x)): entry `rows[i, l]` for client i, message l.

    Args:
        x: (n, d), with d at most the length D of `signs`; the rest is zeros.
        signs: (D,), D a power of two.
        rows: (n, L) indices into the transform.
        split: a power of two that divides L. If it is more than 1, the rows are known by part:
            rows[:, l] lies in [j D/split, (j+1) D/split) with j = l % split.

    The top bits of a row that all clients share are butterflies; the others select, client by
    client, x[:half] + sign * x[half:] and halve the vector: D log2(split) + D L / split additions.

    Example:
        >>> x = np.array([[1.0, 2.0, 3.0, 4.0]])
        >>> sampled(x, np.ones(4), np.array([[1, 2]]), 2).tolist()
        [[-2.0, -4.0]]
    """
    n, d = x.shape
    full, messages = len(signs), rows.shape[1]
    part = full // split
    out = np.empty((n, messages))
    room = Room(full, n, 4)
    with unbuffered():
        for first, size, piece in plan(n, full, part):
            a, b, now, sign = room.views((full // piece, size, piece))
            flipped = b.reshape(size, full)
            np.multiply(x[first : first + size], signs[:d], out=flipped[:, :d])
            flipped[:, d:] = 0.0
            np.copyto(a, flipped.reshape(size, -1, piece).swapaxes(0, 1))
            a, b = butterflies(a, b, split)
            top = a.reshape(split, -1, size, piece)
            for group in range(0, messages, split):
                wanted = rows[first : first + size, group : group + split]
                picked = _select(top, wanted.T, now.reshape(-1), sign.reshape(-1))
                out[first : first + size, group : group + split] = picked.T
    return out


def factored(x: Floats, signs: Floats, rows: NDArray[Any]) -> Floats:
    """Return what `sampled` does, for any rows: entry `rows[i, l]` of H (signs * pad(x)).

    H is the Kronecker product of two smaller ones, so a client's L entries are L rows of the one
    times its vector as a matrix, then L dot products with rows of the other: D L multiplications,
    half the time of `sampled` for L up to 64. The product is a call of BLAS for each client by
    itself, and below `FACTORED` multiplications BLAS does not split it among threads, so that the
    order of summation is always the same.

    Example:
        >>> factored(np.array([[1.0, 2.0, 3.0, 4.0]]), np.ones(4), np.array([[1, 2]])).tolist()
        [[-2.0, -4.0]]
    """
    return kernels.entries(x, signs, rows)


def cheapest_split(full: int, coordinates: int, messages: int) -> int:
    """Return the `split` that costs the least additions, or 0 if the whole transform costs less.

    Example:
        >>> cheapest_split(1024, 4, 4), cheapest_split(1024, 300, 300)
        (4, 0)
    """
    log_full = full.bit_length() - 1
    aligned = coordinates & (coordinates - 1) == 0
    costs = {0: float(log_full), 1: 2.0 * messages}
    if aligned:
        costs[coordinates] = (coordinates.bit_length() - 1) + 2.0 * messages / coordinates
    return min(costs, key=lambda split: costs[split])


def _select(top: Floats, rows: NDArray[Any], now: Floats, sign: Floats) -> Floats:
    """Reduce top (split, pieces, n, piece) to one entry per (split, n): the low bits of `rows`.

    `now` and `sign` are scratch.
    """
    split, pieces, n, piece = top.shape
    depth = (pieces * piece).bit_length() - 1
    shifts = np.arange(depth - 1, -1, -1)[:, None, None]
    signs = iter(1.0 - 2.0 * ((rows >> shifts) & 1))
    here = sign[: split * n * piece].reshape(split, n, piece)
    while pieces > 1:
        pieces //= 2
        # A client's sign once per entry of its piece: the inner loop then spans all clients.
        np.copyto(here, next(signs)[:, :, None])
        upper = now[: split * pieces * n * piece].reshape(split, pieces, n, piece)
        np.multiply(top[:, pieces:], here[:, None], out=upper)
        upper += top[:, :pieces]
        # The next level's products go behind this level's sums.
        top, now = upper, now[upper.size :]
    # Within a piece with the rows innermost, since the halves are short.
    tail = np.ascontiguousarray(top.reshape(split, n, piece).transpose(2, 0, 1))
    while piece > 1:
        piece //= 2
        upper = tail[piece:]
        upper *= next(signs)
        tail = tail[:piece]
        tail += upper
    return np.asarray(tail[0])
