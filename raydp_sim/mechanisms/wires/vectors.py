"""Reports that are whole vectors of doubles: their wire form and their exact sum."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Counts, Floats
from raydp_sim.mechanisms.wires.fixed import add, quantise, resolution, total


@dataclass(frozen=True)
class Vectors:
    """One message per report: `dimension` doubles, 64 bits each.

    The counts are the sums of the coordinates in steps of `resolution(largest)`, then the number
    of reports; rounding to a step moves the mean by at most half of one.

    Example:
        >>> Vectors(3, largest=1.0).bits
        192
    """

    dimension: int
    largest: float

    @property
    def messages(self) -> int:
        """Number of messages in one report."""
        return 1

    @property
    def bits(self) -> int:
        """Bits of one packed report."""
        return 64 * self.dimension

    @property
    def step(self) -> float:
        """Resolution of the sums."""
        return resolution(self.largest)

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Lay out each report's doubles as little-endian bytes."""
        return np.ascontiguousarray(payload, "<f8").reshape(len(payload), -1).view(np.uint8)

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Undo `encode`."""
        doubles = np.ascontiguousarray(wire).view("<f8").astype(np.float64, copy=False)
        return doubles.reshape(len(wire), 1, self.dimension)

    def zero(self) -> Counts:
        """Return an empty sum."""
        return np.zeros(self.dimension + 1, np.int64)

    def fold(self, counts: Counts, index: NDArray[Any], payload: NDArray[Any]) -> Counts:
        """Return the sum after a chunk of reports."""
        rows = payload.reshape(-1, self.dimension)
        added = total(quantise(rows, self.step))
        return add(counts, np.append(added, len(rows)))

    def mean(self, counts: Counts) -> Floats:
        """Return the mean of the reports, 0 if there are none."""
        return np.asarray(counts[:-1] / max(1, int(counts[-1])) * self.step)
