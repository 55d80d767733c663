"""Reports of several additive shares modulo a power of two: their wire form and their sum."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Counts
from raydp_sim.mechanisms.wires.fixed import add
from raydp_sim.mechanisms.wires.packing import pack_bits, unpack_bits
from raydp_sim.random import ClientStream

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class Shares:
    """Several messages per report, each a number of `width` bits; only their sum means anything.

    The counts are the sums of the shares' lower 32 bits and of the bits above, which 2^31 shares
    cannot overflow, and the number of shares. Which share of its report a message is plays no part.

    Example:
        >>> Shares(messages=7, width=21).bits
        147
    """

    messages: int
    width: int

    @property
    def bits(self) -> int:
        """Bits of one packed report."""
        return self.messages * self.width

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned type that holds a share."""
        return np.min_scalar_type((1 << self.width) - 1)

    def split(self, values: NDArray[np.int64], stream: ClientStream) -> NDArray[Any]:
        """Write each number as shares that are uniform, given that they add up to it.

        Example:
            >>> from raydp_sim.random import Stream
            >>> parts = Shares(3, 8).split(np.array([5, -1]), Stream(1).clients(np.arange(2)))
            >>> parts.sum(axis=1, dtype=np.uint8).tolist()
            [5, 255]
        """
        high, low = stream.words("shares", self.messages - 1)
        # Sums wrap around at 2^64, and so at every smaller power of two.
        shares = np.empty((len(values), self.messages), np.uint64)
        shares[:, :-1] = (high.astype(np.uint64) << _HALF) | low
        shares[:, -1] = values.astype(np.uint64) - shares[:, :-1].sum(axis=1, dtype=np.uint64)
        shares &= np.uint64((1 << self.width) - 1)
        return shares.astype(self.dtype)

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Pack each report into whole bytes."""
        return pack_bits(payload, self.width)

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Undo `encode`."""
        return unpack_bits(wire, self.width, self.messages).astype(self.dtype)

    def zero(self) -> Counts:
        """Return an empty sum."""
        return np.zeros(3, np.int64)

    def fold(self, counts: Counts, index: NDArray[Any], payload: NDArray[Any]) -> Counts:
        """Return the sum after a chunk of messages."""
        shares = payload.ravel().astype(np.uint64)
        parts = (int((shares & _LOW).sum()), int((shares >> _HALF).sum()), len(shares))
        return add(counts, np.array(parts, np.int64))

    def total(self, counts: Counts) -> int:
        """Return the sum of all shares modulo 2^width."""
        low, high, _ = (int(count) for count in counts)
        return (low + (high << 32)) % (1 << self.width)
