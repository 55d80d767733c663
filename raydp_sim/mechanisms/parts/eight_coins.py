"""Many coins of one bias at little cost: eight at a time, by one look into a table."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.random import ClientStream

_COINS = 8
# A bias is a multiple of 2^-64, so the probability of eight coins is one of 2^-512.
_BIAS_BITS = 64
_ALL_BITS = _COINS * _BIAS_BITS
_CELL_BITS = 16
_UNDECIDED = 1 << _COINS
# Bytes drawn at a time, so that the arrays of one step stay in cache.
_BYTES = 1 << 17


@dataclass(frozen=True)
class EightCoins:
    """Independent coins that show 1 with probability ones / 2^64, eight to a byte.

    A byte is the inverse of its distribution function at a number of 512 random bits. Of these the
    first 16 decide nearly always (all but 255 of 65,536 cells lie within one byte's interval), 64
    in all other cases but a share of 2^-56, and then all 512 are drawn. So every byte has exactly
    the probability of eight independent coins, at two random bits per coin.

    Example:
        >>> EightCoins(1 << 62).ends[0] == (3 << 62) ** 8
        True
    """

    ones: int

    @cached_property
    def ends(self) -> list[int]:
        """Where the interval of each byte ends, in steps of 2^-512, but for the last byte."""
        zeros = (1 << _BIAS_BITS) - self.ones
        by_ones = [self.ones**m * zeros ** (_COINS - m) for m in range(_COINS + 1)]
        return list(accumulate(by_ones[byte.bit_count()] for byte in range(255)))

    @cached_property
    def _upper(self) -> NDArray[np.uint64]:
        return np.array([end >> (_ALL_BITS - 64) for end in self.ends], np.uint64)

    @cached_property
    def _table(self) -> NDArray[np.uint16]:
        """The byte of each cell, or `_UNDECIDED` where an interval ends in it."""
        cells = (self._upper >> np.uint64(64 - _CELL_BITS)).astype(np.int64)
        table = np.searchsorted(cells, np.arange(1 << _CELL_BITS), side="right").astype(np.uint16)
        table[cells] = _UNDECIDED
        return table

    def throw(self, purpose: str, stream: ClientStream, octets: int) -> NDArray[np.uint8]:
        """Return `octets` bytes of coins for every client."""
        out = np.empty((len(stream.ids), octets), np.uint8)
        step = max(1, _BYTES // octets)
        for first in range(0, len(out), step):
            rows = slice(first, first + step)
            out[rows] = self._block(purpose, stream.take(rows), octets)
        return out

    def _block(self, purpose: str, stream: ClientStream, octets: int) -> NDArray[Any]:
        words = stream.words(purpose, -(-octets // 4))
        halves = [half.astype("<u4", copy=False).view("<u2") for half in words]
        cells = np.hstack(halves)[:, :octets].reshape(-1)
        found: NDArray[np.uint16] = self._table[cells]
        at = np.flatnonzero(found == _UNDECIDED)
        if at.size:
            row, column = np.divmod(at, octets)
            high, low = stream.stream.at(purpose, "more").pairs(stream.ids[row], column)
            more = high.astype(np.uint64) << np.uint64(16) | low >> np.uint32(16)
            number = cells[at].astype(np.uint64) << np.uint64(48) | more
            byte = np.searchsorted(self._upper, number, side="right")
            # Equal to the upper bits of an end: the lower bits decide on which side of it.
            for tie in np.flatnonzero((byte > 0) & (self._upper[byte - 1] == number)):
                rest = stream.stream.at(purpose, "rest", int(column[tie]))
                byte[tie] = self.settle(int(number[tie]), rest.clients(stream.ids[row[[tie]]]))
            found[at] = byte
        return found.reshape(-1, octets)

    def settle(self, upper: int, stream: ClientStream) -> int:
        """Return the byte at a number whose upper 64 bits are known, by drawing the others."""
        high, low = stream.words("bits", _ALL_BITS // 64 - 1)
        number = upper
        for first, second in zip(high[0].tolist(), low[0].tolist(), strict=True):
            number = number << 64 | first << 32 | second
        return bisect_right(self.ends, number)
