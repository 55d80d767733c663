"""Kashin's representation: a vector's coefficients in a redundant frame, all equally small."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim import kernels
from raydp_sim.mechanisms.base import Floats
from raydp_sim.mechanisms.parts.hadamard import fwht
from raydp_sim.random import Stream

# The level that coefficients stay below, in units of radius / sqrt(full). Tried on frames of 16 to
# 2048 with vectors in general position (2.2 at most) and with sparse sums of the frame's own
# vectors (2.9 at most); a search for the worst vector of a small frame reaches 3.3.
LEVEL = 3.0
# Rounds of truncation. What they leave is about 1e-4 of a generic vector's length.
_ROUNDS = 12
# Each round keeps coefficients up to this times their root mean square. Lyubarskii and Vershynin
# need it above 1 by a constant for their proof; the levels found are least around 1.
_CUT = 1.0
# Doubles of one block of rows: all rounds of a block are done in cache.
_CACHED = 1 << 16


@dataclass(frozen=True)
class Kashin:
    """A tight frame F of `full` vectors in `dimension`, F F^T = 1, and small a with F a = x.

    F is the Sylvester matrix / sqrt(full), cut to `dimension` random rows with random signs, both
    public. The coefficients are found by truncation (Lyubarskii & Vershynin 2010, "Uncertainty
    principles and vector quantization", Theorem 3.5): keep F^T x cut to the level of its root mean
    square, go on with the rest, and add what is left after 12 rounds as it is. So F a = x up to
    rounding for every x. That no coefficient exceeds LEVEL ||x|| / sqrt(full) is not proved for a
    given frame: whoever uses them must check, and cut those that do.

    Example:
        >>> x = np.array([[3.0, 4.0, 0.0]])
        >>> frame = Kashin(3, 8, 0)
        >>> frame.back(frame.rotate(x)).round(12) + 0.0
        array([[3., 4., 0.]])
        >>> bool(np.abs(frame.rotate(x)).max() <= LEVEL * 5.0 / np.sqrt(8))
        True
    """

    dimension: int
    full: int
    seed: int

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Which rows of the matrix are kept: one for each coordinate of x."""
        order = Stream(self.seed).at("kashin", "rows").generator().permutation(self.full)
        return np.asarray(order[: self.dimension], dtype=np.int64)

    @cached_property
    def signs(self) -> Floats:
        """The coin flips of the rows, divided by sqrt(full)."""
        coins = Stream(self.seed).at("kashin", "signs").generator().integers(0, 2, self.dimension)
        return np.asarray((1.0 - 2.0 * coins) / np.sqrt(self.full))

    def rotate(self, x: Floats) -> Floats:
        """Return coefficients a of every row, F a = x."""
        out = np.empty((len(x), self.full))
        step = max(1, _CACHED // self.full)
        for first in range(0, len(x), step):
            out[first : first + step] = self._coefficients(x[first : first + step])
        return out

    def pick(self, x: Floats, rows: NDArray[Any], coordinates: int) -> Floats:
        """Return entries `rows` (n, L) of the coefficients; none can be had without the others."""
        out = np.empty(rows.shape)
        step = max(1, _CACHED // self.full)
        for first in range(0, len(x), step):
            part = slice(first, first + step)
            out[part] = np.take_along_axis(self._coefficients(x[part]), rows[part], axis=1)
        return out

    def back(self, w: Floats) -> Floats:
        """Return F w for every row, `dimension` entries."""
        return np.asarray(fwht(w)[:, self.places] * self.signs)

    def _coefficients(self, x: Floats) -> Floats:
        wide = np.zeros((len(x), self.full))
        wide[:, self.places] = x * self.signs
        return kernels.coefficients(wide, _ROUNDS, _CUT, self._frame)

    @cached_property
    def _frame(self) -> Floats:
        frame = np.zeros(self.full)
        frame[self.places] = 1.0 / self.full
        return frame


def frame_size(dimension: int) -> int:
    """Return the size of the frame: the least power of two that is at least twice the dimension.

    Example:
        >>> frame_size(1), frame_size(64), frame_size(1000)
        (2, 128, 2048)
    """
    return 1 << (2 * dimension - 1).bit_length()
