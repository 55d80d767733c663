"""Public random rotations and frames that spread an l2 vector evenly over its coordinates."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Floats
from raydp_sim.mechanisms.parts.hadamard import FACTORED, cheapest_split, factored, fwht, sampled
from raydp_sim.mechanisms.parts.kashin import Kashin, frame_size
from raydp_sim.random import Stream

# Sampled entries of a Hadamard rotation up to which a product is faster than the transform.
_FEW = 64
# Doubles of Haar rows gathered at a time.
_BUFFER = 1 << 16

Kind = Literal["hadamard", "haar", "kashin"]


class Rotation(Protocol):
    """An orthogonal matrix U of size `full` that is the same for all clients.

    Or a tight frame with `full` vectors: then "U pad(x)" are coefficients of x in it, U^T is the
    frame, and the vectors, which U^T U projects on, have equal lengths.
    """

    @property
    def full(self) -> int:
        """Size of the matrix, or number of the frame's vectors."""

    def rotate(self, x: Floats) -> Floats:
        """Return U pad(x) for every row."""

    def pick(self, x: Floats, rows: NDArray[Any], coordinates: int) -> Floats:
        """Return entries `rows` (n, L) of U pad(x); message l samples block l % coordinates."""

    def back(self, w: Floats) -> Floats:
        """Return U^T w for every row; the first entries are those of x."""


def make_rotation(kind: Kind, dimension: int, seed: int) -> Rotation:
    """Build a rotation for vectors of a dimension."""
    if kind == "haar":
        return Haar(dimension, seed)
    if kind == "kashin":
        return Kashin(dimension, frame_size(dimension), seed)
    return Hadamard(padded_dimension(kind, dimension), seed)


def padded_dimension(kind: Kind, dimension: int) -> int:
    """Return the size of the rotation: the next power of two for Hadamard, of 2d for Kashin.

    Example:
        >>> [padded_dimension(kind, 300) for kind in ("hadamard", "haar", "kashin")]
        [512, 300, 1024]
    """
    if kind == "kashin":
        return frame_size(dimension)
    return dimension if kind == "haar" else 1 << (dimension - 1).bit_length()


@dataclass(frozen=True)
class Hadamard:
    """U = H diag(signs) / sqrt(full), H the Sylvester matrix and the signs public coin flips.

    Example:
        >>> x = np.array([[3.0, 4.0, 0.0]])
        >>> (Hadamard(4, 0).rotate(x) ** 2).sum().round(9)
        np.float64(25.0)
    """

    full: int
    seed: int

    @cached_property
    def signs(self) -> Floats:
        """The coin flips, divided by sqrt(full)."""
        coins = Stream(self.seed).at("hadamard").generator().integers(0, 2, self.full)
        return np.asarray((1.0 - 2.0 * coins) / np.sqrt(self.full))

    def rotate(self, x: Floats) -> Floats:
        """Return U pad(x) for every row."""
        wide = np.zeros((len(x), self.full))
        wide[:, : x.shape[1]] = x * self.signs[: x.shape[1]]
        return fwht(wide)

    def pick(self, x: Floats, rows: NDArray[Any], coordinates: int) -> Floats:
        """Return entries `rows` (n, L) of U pad(x); message l samples block l % coordinates."""
        messages = rows.shape[1]
        if messages <= _FEW and messages * self.full <= FACTORED:
            return factored(x, self.signs, rows)
        split = cheapest_split(self.full, coordinates, messages)
        if split:
            return sampled(x, self.signs, rows, split)
        return np.take_along_axis(self.rotate(x), rows, axis=1)

    def back(self, w: Floats) -> Floats:
        """Return U^T w for every row."""
        return fwht(w) * self.signs


@dataclass(frozen=True)
class Haar:
    """A uniformly random orthogonal matrix: the QR factor of a normal one, signs fixed.

    Mezzadri 2007, "How to generate random matrices from the classical compact groups".

    Example:
        >>> x = np.array([[3.0, 4.0, 0.0]])
        >>> (Haar(3, 0).rotate(x) ** 2).sum().round(9)
        np.float64(25.0)
    """

    full: int
    seed: int

    @property
    def matrix(self) -> Floats:
        """U, kept per process and not with the piece, since it is large."""
        return _haar(self.full, self.seed)

    def rotate(self, x: Floats) -> Floats:
        """Return U x for every row."""
        everything = np.broadcast_to(np.arange(self.full), (len(x), self.full))
        return self.pick(x, everything, self.full)

    def pick(self, x: Floats, rows: NDArray[Any], coordinates: int) -> Floats:
        """Return entries `rows` (n, L) of U x."""
        matrix, (n, messages) = self.matrix, rows.shape
        out = np.empty((n, messages))
        step = max(1, _BUFFER // (messages * self.full))
        for first in range(0, n, step):
            part = slice(first, first + step)
            # Not a matrix product: its order of summation would depend on the batch.
            gathered = matrix[rows[part]]
            gathered *= x[part, None, :]
            gathered.sum(axis=-1, out=out[part])
        return out

    def back(self, w: Floats) -> Floats:
        """Return U^T w for every row."""
        return np.stack([(self.matrix * each[:, None]).sum(axis=0) for each in w])


@lru_cache(maxsize=4)
def _haar(full: int, seed: int) -> Floats:
    normal = Stream(seed).at("haar").generator().standard_normal((full, full))
    q, r = np.linalg.qr(normal)
    matrix = np.ascontiguousarray(q * np.sign(np.diagonal(r)))
    matrix.flags.writeable = False
    return matrix
