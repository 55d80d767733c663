"""Reports that are whole vectors of doubles: their wire form and their exact sum."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Counts, Floats
from raydp_sim.mechanisms.domain import Admitted
from raydp_sim.mechanisms.wires.fixed import add, resolution, summed


@dataclass(frozen=True)
class Vectors:
    """One message per report: `dimension` numbers, doubles or those of single precision.

    The counts are the sums of the coordinates in steps of `resolution(largest)`, then the number
    of reports; rounding to a step moves the mean by at most half of one.

    Example:
        >>> Vectors(3, largest=1.0).bits
        192
    """

    dimension: int
    largest: float
    width: Literal[32, 64] = 64

    @property
    def messages(self) -> int:
        """Number of messages in one report."""
        return 1

    @property
    def bits(self) -> int:
        """Bits of one packed report."""
        return self.width * self.dimension

    @property
    def step(self) -> float:
        """Resolution of the sums."""
        return resolution(self.largest)

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Lay out each report's numbers as little-endian bytes."""
        return np.ascontiguousarray(payload, self._layout).reshape(len(payload), -1).view(np.uint8)

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Undo `encode`."""
        numbers = np.ascontiguousarray(wire).view(self._layout)
        native = numbers.astype(self._layout.newbyteorder("="), copy=False)
        return native.reshape(len(wire), 1, self.dimension)

    def zero(self) -> Counts:
        """Return an empty sum."""
        return np.zeros(self.dimension + 1, np.int64)

    def fold(self, counts: Counts, index: NDArray[Any], payload: Any) -> Counts:
        """Return the sum after a chunk of reports, or of vectors that are still to be scaled."""
        if isinstance(payload, Admitted) and payload.factors is not None:
            total = summed(payload.given, self.step, payload.factors)
            return add(counts, np.append(total, len(payload)))
        rows = payload.reshape(-1, self.dimension)
        return add(counts, np.append(summed(rows, self.step), len(rows)))

    def mean(self, counts: Counts) -> Floats:
        """Return the mean of the reports, 0 if there are none."""
        return np.asarray(counts[:-1] / max(1, int(counts[-1])) * self.step)

    @property
    def _layout(self) -> np.dtype[Any]:
        return np.dtype(f"<f{self.width // 8}")
