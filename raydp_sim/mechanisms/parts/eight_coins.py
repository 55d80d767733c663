"""Many coins of one bias at little cost: eight at a time, by one look into a table."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from raydp_sim import kernels
from raydp_sim.kernels.types import CoinTables
from raydp_sim.random import ClientStream

_COINS = 8
# A bias is a multiple of 2^-64, so the probability of eight coins is one of 2^-512.
_BIAS_BITS = 64
_ALL_BITS = _COINS * _BIAS_BITS
_CELL_BITS = 16
_UNDECIDED = 1 << _COINS


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

    @cached_property
    def tables(self) -> CoinTables:
        """What decides nearly always."""
        return CoinTables(self._table, self._upper)

    def throw(self, purpose: str, stream: ClientStream, octets: int) -> NDArray[np.uint8]:
        """Return `octets` bytes of coins for every client."""
        key, more = stream.key(purpose), stream.stream.at(purpose, "more").key()
        thrown = kernels.coins(key, more, stream.ids, octets, self.tables)
        for position, number in zip(thrown.position, thrown.number, strict=True):
            # Equal to the upper bits of an end: the lower bits decide on which side of it.
            row, column = divmod(int(position), octets)
            rest = stream.stream.at(purpose, "rest", column)
            owner = rest.clients(stream.ids[row : row + 1])
            thrown.octets[row, column] = self.settle(int(number), owner)
        return thrown.octets

    def settle(self, upper: int, stream: ClientStream) -> int:
        """Return the byte at a number whose upper 64 bits are known, by drawing the others."""
        high, low = stream.words("bits", _ALL_BITS // 64 - 1)
        number = upper
        for first, second in zip(high[0].tolist(), low[0].tolist(), strict=True):
            number = number << 64 | first << 32 | second
        return bisect_right(self.ends, number)
