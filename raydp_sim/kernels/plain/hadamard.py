"""The Walsh-Hadamard transform of many rows.

Nothing is summed across the batch: a row's result does not depend on its neighbours.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Numbers in one working buffer: large enough to spread the cost of a call, and still in cache.
_BUFFER = 1 << 17
# A row is cut into pieces of this length (longer where few rows fit), and the pieces of all rows of
# a block are laid side by side: the inner loops are then long whatever the index bit.
_PIECE = 32
_INNER = 2048


@contextmanager
def unbuffered() -> Iterator[None]:
    """Keep NumPy from copying through its buffers, which it does where inner loops are short.

    On exit `errstate` restores the size of the buffer as well (NumPy 2.0).
    """
    with np.errstate():
        np.setbufsize(16)
        yield


def hadamard(x: NDArray[Any]) -> NDArray[Any]:
    """Return H x for every row, H the Sylvester Hadamard matrix; rows of doubles or of floats."""
    n, full = x.shape
    out = np.empty((n, full), x.dtype)
    room = Room(full, n, 2, x.dtype)
    with unbuffered():
        for first, size, piece in plan(n, full, full):
            a, b = room.views((full // piece, size, piece))
            np.copyto(a, x[first : first + size].reshape(size, -1, piece).swapaxes(0, 1))
            a, b = butterflies(a, b, full // piece)
            low = b.reshape(piece, full // piece, size)
            np.copyto(low, np.moveaxis(a, 2, 0))
            low, _ = butterflies(low, a.reshape(low.shape), piece)
            np.copyto(out[first : first + size].reshape(size, -1, piece), low.transpose(2, 1, 0))
    return out


class Room:
    """Working memory, taken once per call: fresh pages would cost more than the work in them."""

    def __init__(self, full: int, n: int, buffers: int, kind: Any = np.float64) -> None:
        size = full * min(n, max(1, _BUFFER // full))
        self.buffers = [np.empty(size, kind) for _ in range(buffers)]

    def views(self, shape: tuple[int, ...]) -> list[NDArray[Any]]:
        """Return every buffer in this shape."""
        return [buffer[: math.prod(shape)].reshape(shape) for buffer in self.buffers]


def plan(n: int, full: int, part: int) -> Iterator[tuple[int, int, int]]:
    """Cut n rows into blocks: yield each block's first row, its size and the length of a piece."""
    step = max(1, _BUFFER // full)
    piece = min(part, max(_PIECE, _INNER // step))
    for first in range(0, n, step):
        yield first, min(step, n - first), piece


def butterflies(a: NDArray[Any], b: NDArray[Any], count: int) -> tuple[NDArray[Any], NDArray[Any]]:
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
