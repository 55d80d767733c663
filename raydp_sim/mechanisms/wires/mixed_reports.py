"""Reports that are either one symbol or a signed histogram: their wire form and their sums."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Counts
from raydp_sim.mechanisms.wires.fixed import add
from raydp_sim.mechanisms.wires.packing import index_bits
from raydp_sim.mechanisms.wires.signed_histogram import SignedHistogram


@dataclass(frozen=True)
class MixedReports:
    """One message per report: a flag, then a symbol (with chance `share`) or a histogram.

    A row of the payload is the symbol plus 1, or 0 for a histogram, and then the signed counts.
    All reports have the length of the longer form that occurs, so that their length tells nothing;
    `expected_bits` is the mean length without that padding. The counts are the histogram of the
    first column and then the sums of the others.

    Example:
        >>> wire = MixedReports(16, SignedHistogram(8), 0.5)
        >>> wire.bits, wire.expected_bits
        (20, 12.5)
    """

    alphabet: int
    histogram: SignedHistogram
    share: float

    @property
    def messages(self) -> int:
        """Number of messages in one report."""
        return 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest signed type that holds a row."""
        return np.min_scalar_type(-self.alphabet - 1)

    @cached_property
    def bits(self) -> int:
        """Bits of one packed report."""
        symbol = index_bits(self.alphabet) if self.share > 0.0 else 0
        return 1 + max(symbol, self.histogram.bits if self.share < 1.0 else 0)

    @property
    def expected_bits(self) -> float:
        """Mean number of bits that are not padding."""
        symbol = index_bits(self.alphabet)
        return 1.0 + self.share * symbol + (1.0 - self.share) * self.histogram.bits

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Write each report as a big-endian integer, the flag first."""
        octets, flag = (self.bits + 7) // 8, 1 << (self.bits - 1)
        rows = payload.reshape(len(payload), -1)
        codes = [flag | (int(symbol) - 1) for symbol in rows[:, 0]]
        other = np.flatnonzero(rows[:, 0] == 0)
        for row, rank in zip(other.tolist(), self.histogram.ranks(rows[other, 1:]), strict=True):
            codes[row] = rank
        packed = b"".join(code.to_bytes(octets, "big") for code in codes)
        return np.frombuffer(packed, np.uint8).reshape(len(payload), octets)

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Undo `encode`."""
        flag = 1 << (self.bits - 1)
        codes = [int.from_bytes(row.tobytes(), "big") for row in wire]
        rows = np.zeros((len(codes), 1 + self.histogram.dimension), self.dtype)
        rows[:, 0] = [code - flag + 1 if code & flag else 0 for code in codes]
        other = np.flatnonzero(rows[:, 0] == 0)
        rows[other, 1:] = self.histogram.reports([codes[row] for row in other])[:, 0]
        return rows[:, None, :]

    def zero(self) -> Counts:
        """Return empty sums."""
        return np.zeros(self.alphabet + 1 + self.histogram.dimension, np.int64)

    def fold(self, counts: Counts, index: NDArray[Any], payload: NDArray[Any]) -> Counts:
        """Return the sums after a chunk of reports."""
        rows = payload.reshape(-1, 1 + self.histogram.dimension)
        symbols = np.bincount(rows[:, 0], minlength=self.alphabet + 1)
        summed = self.histogram.fold(self.histogram.zero(), index, rows[:, 1:])
        return add(counts, np.concatenate([symbols, summed[:-1]]))

    def parts(self, counts: Counts) -> tuple[Counts, Counts, int]:
        """Return the histogram of symbols, the summed counts and the number of reports."""
        symbols = counts[: self.alphabet + 1]
        return symbols[1:], counts[self.alphabet + 1 :], int(symbols.sum())
