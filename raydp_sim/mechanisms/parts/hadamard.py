"""Walsh-Hadamard transforms of many vectors, whole or only where they are needed.

Nothing is summed across the batch: a row's result does not depend on its neighbours.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Floats

# Doubles in one working buffer: large enough to spread the cost of a call, and still in cache.
_BUFFER = 1 << 17
# A row is cut into pieces of this length (longer where few rows fit), and the pieces of all rows of
# a block are laid side by side: the inner loops are then long whatever the index bit.
_PIECE = 32
_INNER = 2048
# Multiplications of one client up to which `factored` is used, and doubles in its buffer.
FACTORED = 1 << 18
_FACTORED_BUFFER = 1 << 17


@contextmanager
def unbuffered() -> Iterator[None]:
    """Keep NumPy from copying through its buffers, which it does where inner loops are short.

    On exit `errstate` restores the size of the buffer as well (NumPy 2.0).
    """
    with np.errstate():
        np.setbufsize(16)
        yield


def fwht(x: Floats) -> Floats:
    """Return H x for every row, H the Sylvester Hadamard matrix (entries 1 and -1).

    Example:
        >>> fwht(np.array([[1.0, 2.0, 3.0, 4.0]])).tolist()
        [[10.0, -2.0, -4.0, 0.0]]
    """
    n, full = x.shape
    out = np.empty((n, full))
    room = _Room(full, n, 2)
    with unbuffered():
        for first, size, piece in _plan(n, full, full):
            a, b = room.views((full // piece, size, piece))
            np.copyto(a, x[first : first + size].reshape(size, -1, piece).swapaxes(0, 1))
            a, b = _butterflies(a, b, full // piece)
            low = b.reshape(piece, full // piece, size)
            np.copyto(low, np.moveaxis(a, 2, 0))
            low, _ = _butterflies(low, a.reshape(low.shape), piece)
            np.copyto(out[first : first + size].reshape(size, -1, piece), low.transpose(2, 1, 0))
    return out


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
    room = _Room(full, n, 4)
    with unbuffered():
        for first, size, piece in _plan(n, full, part):
            a, b, now, sign = room.views((full // piece, size, piece))
            flipped = b.reshape(size, full)
            np.multiply(x[first : first + size], signs[:d], out=flipped[:, :d])
            flipped[:, d:] = 0.0
            np.copyto(a, flipped.reshape(size, -1, piece).swapaxes(0, 1))
            a, b = _butterflies(a, b, split)
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
    n, d = x.shape
    full, messages = len(signs), rows.shape[1]
    low = (full.bit_length() - 1) // 2
    left, right = _matrix(full >> low), _matrix(1 << low)
    out = np.empty((n, messages))
    step = min(n, max(1, _FACTORED_BUFFER // full))
    flipped = np.zeros((step, full))
    one = np.empty((step, messages, len(left)))
    other, product = (np.empty((step, messages, len(right))) for _ in range(2))
    for first in range(0, n, step):
        size = min(step, n - first)
        a, b, c, wanted = one[:size], other[:size], product[:size], rows[first : first + size]
        np.multiply(x[first : first + size], signs[:d], out=flipped[:size, :d])
        left.take(wanted >> low, axis=0, out=a, mode="clip")
        np.matmul(a, flipped[:size].reshape(size, len(left), len(right)), out=c)
        right.take(wanted & (len(right) - 1), axis=0, out=b, mode="clip")
        np.einsum("njk,njk->nj", b, c, out=out[first : first + size])
    return out


@lru_cache(maxsize=16)
def _matrix(size: int) -> Floats:
    matrix = fwht(np.eye(size))
    matrix.flags.writeable = False
    return matrix


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


class _Room:
    """Working memory, taken once per call: fresh pages would cost more than the work in them."""

    def __init__(self, full: int, n: int, buffers: int) -> None:
        self.buffers = [np.empty(full * min(n, max(1, _BUFFER // full))) for _ in range(buffers)]

    def views(self, shape: tuple[int, ...]) -> list[Floats]:
        return [buffer[: math.prod(shape)].reshape(shape) for buffer in self.buffers]


def _plan(n: int, full: int, part: int) -> Iterator[tuple[int, int, int]]:
    """Cut n rows into blocks: yield each block's first row, its size and the length of a piece."""
    step = max(1, _BUFFER // full)
    piece = min(part, max(_PIECE, _INNER // step))
    for first in range(0, n, step):
        yield first, min(step, n - first), piece


def _butterflies(a: Floats, b: Floats, count: int) -> tuple[Floats, Floats]:
    """Transform the first axis, seen as `count` equal parts, a power of two.

    Returns the result and the spare buffer; both arguments are overwritten.
    """
    half = count // 2
    while half:
        cut = (count // (2 * half), 2, half * (a.size // count))
        x, y = a.reshape(cut), b.reshape(cut)
        np.add(x[:, 0], x[:, 1], out=y[:, 0])
        np.subtract(x[:, 0], x[:, 1], out=y[:, 1])
        a, b = b, a
        half //= 2
    return a, b


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
