"""The form of a report, apart from what it means."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


class Wire(Protocol):
    """The form of a report: how it is packed, and the integers that reports are summed in."""

    @property
    def messages(self) -> int:
        """Number of messages in one report."""

    @property
    def bits(self) -> int:
        """Bits of one packed report."""

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Pack each report into whole bytes."""

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Undo `encode`."""

    def zero(self) -> Counts:
        """Return an empty accumulator."""

    def fold(self, counts: Counts, index: NDArray[Any], payload: NDArray[Any]) -> Counts:
        """Return the accumulator after a chunk of messages."""
