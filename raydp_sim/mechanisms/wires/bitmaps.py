"""Reports that are one bit per category: their wire form and their counts."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Counts

# Reports whose bits are summed in single bytes before those can overflow.
_GROUP = 255
_GROUPS = 32


@dataclass(frozen=True)
class Bitmaps:
    """One message per report: `categories` bits, eight to a byte, the first one highest.

    The payload is (clients, 1, bytes) and its spare bits are 0. The counts are the ones of each
    category, then the number of reports.

    Example:
        >>> Bitmaps(10).octets
        2
    """

    # Whether its counts follow from how often each message came, and say no more.
    counted: ClassVar[bool] = True

    categories: int

    @property
    def messages(self) -> int:
        """Number of messages in one report."""
        return 1

    @property
    def bits(self) -> int:
        """Bits of one packed report."""
        return self.categories

    @property
    def octets(self) -> int:
        """Bytes of one packed report."""
        return -(-self.categories // 8)

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the bytes as they are."""
        return np.asarray(payload, np.uint8).reshape(len(payload), self.octets)

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Undo `encode`."""
        return wire.reshape(len(wire), 1, self.octets)

    def zero(self) -> Counts:
        """Return empty counts."""
        return np.zeros(self.categories + 1, np.int64)

    def fold(self, counts: Counts, index: NDArray[Any], payload: NDArray[Any]) -> Counts:
        """Return the counts after a chunk of reports."""
        rows = payload.reshape(-1, self.octets)
        ones = np.zeros(8 * self.octets, np.int64)
        for first in range(0, len(rows), _GROUP * _GROUPS):
            # Eight bits as eight bytes of one word: a sum of words is eight sums.
            words = np.unpackbits(rows[first : first + _GROUP * _GROUPS], axis=1).view(np.uint64)
            starts = np.arange(0, len(words), _GROUP)
            sums = np.add.reduceat(words, starts, axis=0).view(np.uint8)
            ones += sums.sum(axis=0, dtype=np.int64)
        return np.asarray(counts + np.append(ones[: self.categories], len(rows)))
