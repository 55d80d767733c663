"""Reports of one symbol out of a finite alphabet: their wire form and their histogram."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raydp_sim import kernels
from raydp_sim.mechanisms.base import Counts
from raydp_sim.mechanisms.wires.packing import index_bits, pack_bits, unpack_bits


@dataclass(frozen=True)
class Symbols:
    """One message per report: a number from 0 to alphabet - 1. The counts are its histogram.

    Example:
        >>> Symbols(100).bits
        7
    """

    # Whether its counts follow from how often each message came, and say no more.
    counted: ClassVar[bool] = True

    alphabet: int

    @property
    def messages(self) -> int:
        """Number of messages in one report."""
        return 1

    @property
    def bits(self) -> int:
        """Bits of one packed report."""
        return max(1, index_bits(self.alphabet))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned type that holds a symbol."""
        return np.min_scalar_type(self.alphabet - 1)

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Pack each report into whole bytes."""
        return pack_bits(payload, self.bits)

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Undo `encode`."""
        return unpack_bits(wire, self.bits, 1).astype(self.dtype)

    def zero(self) -> Counts:
        """Return an empty histogram: one row, since there is one message index."""
        return np.zeros((1, self.alphabet), np.int64)

    def fold(self, counts: Counts, index: NDArray[Any], payload: NDArray[Any]) -> Counts:
        """Return the histogram after a chunk of messages."""
        return np.asarray(counts + kernels.tally(payload, self.alphabet))


def histogram_bits(alphabet: int, symbols: int) -> int:
    """Return the bits of several symbols whose order says nothing, as the number of their multiset.

    001 Theorem 1: ceil(log2 C(s + B - 1, s)), at most s (log2 e + log2((s + B - 1)/s)), rounded up.

    Example:
        >>> histogram_bits(16, 16), 16 * Symbols(16).bits
        (29, 64)
    """
    return max(1, (math.comb(symbols + alphabet - 1, symbols) - 1).bit_length())
