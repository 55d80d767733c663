"""Reports that are signed histograms of balls in bins: their enumerative code and their sum."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Counts, Floats
from raydp_sim.mechanisms.wires.fixed import add, total

# The logarithm of a binomial coefficient is known to this much, relative to its largest part.
_UNSURE = 1e-12


@dataclass(frozen=True)
class SignedHistogram:
    """One message per report: a signed count per bin, from d balls in d bins with signs.

    Balls of both signs in one bin cancel and leave only their difference, which is all that the
    mean needs. `dropped` says that balls may also be missing.

    The code is the rank of the report among the multisets of d balls in 2d signed bins (2d + 1 with
    one for missing balls), where the pairs that cancelled are counted to the first bin:
    log2 C(3d-1, d) bits, or log2 C(3d, d), rounded up. Girgis et al. 2021, Lemmas 4 and 5, claim
    d (log2(e) + 1) bits (`claimed_bits`), which counts histograms without signs and from d = 9 on
    is too few; one index and one sign per ball take d (ceil(log2 d) + 1) (`naive_bits`).

    The counts are the sums of the signed counts, then the number of reports.

    Example:
        >>> wire = SignedHistogram(1000)
        >>> wire.bits, round(wire.claimed_bits), wire.naive_bits
        (2749, 2443, 11000)
    """

    dimension: int
    dropped: bool = False

    @property
    def messages(self) -> int:
        """Number of messages in one report."""
        return 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest signed type that holds the counts -d to d."""
        return np.min_scalar_type(-self.dimension - 1)

    @property
    def slots(self) -> int:
        """The n of the binomial coefficient C(n, d) that counts the reports."""
        return 3 * self.dimension - (0 if self.dropped else 1)

    @cached_property
    def bits(self) -> int:
        """Bits of one packed report."""
        # By logarithms where they are sure, since the number itself has thousands of digits.
        n, d = self.slots, self.dimension
        parts = [math.lgamma(n + 1), math.lgamma(d + 1), math.lgamma(n - d + 1)]
        log2 = (parts[0] - parts[1] - parts[2]) / math.log(2.0)
        if abs(log2 - round(log2)) <= _UNSURE * (1.0 + parts[0]):
            return max(1, (math.comb(n, d) - 1).bit_length())
        return math.ceil(log2)

    @property
    def claimed_bits(self) -> float:
        """What the literature claims for this code."""
        return self.dimension * (math.log2(math.e) + 1.0)

    @property
    def naive_bits(self) -> int:
        """Bits of one index and one sign for every ball."""
        return self.dimension * ((self.dimension - 1).bit_length() + 1)

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Write each report's rank as a big-endian integer."""
        octets = (self.bits + 7) // 8
        packed = b"".join(rank.to_bytes(octets, "big") for rank in self.ranks(payload))
        return np.frombuffer(packed, np.uint8).reshape(len(payload), octets)

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Undo `encode`."""
        return self.reports([int.from_bytes(row.tobytes(), "big") for row in wire])

    def ranks(self, payload: NDArray[Any]) -> list[int]:
        """Return each report's number, from 0 to C(slots, d) - 1.

        d balls in k bins are d marks among d + k - 1 slots. The rank sums C(slot, marks up to
        there); each coefficient follows from the one before by one product and one quotient.
        """
        return [self._rank(marks) for marks in self._marks(payload)]

    def reports(self, ranks: list[int]) -> NDArray[Any]:
        """Return the reports of these numbers, the inverse of `ranks`."""
        d = self.dimension
        marks = np.zeros((len(ranks), self.slots), np.int64)
        for row, rank in zip(marks, ranks, strict=True):
            row[self._places(rank)] = 1
        # The bin of a mark is the number of gaps before it.
        bins = np.cumsum(1 - marks, axis=1)[marks == 1].reshape(len(ranks), d)
        bins += np.arange(len(ranks))[:, None] * (2 * d + 1)
        seen = np.bincount(bins.ravel(), minlength=len(ranks) * (2 * d + 1))
        seen = seen.reshape(len(ranks), 2 * d + 1)
        signed = seen[:, :d] - seen[:, d : 2 * d]
        return np.asarray(signed.astype(self.dtype)[:, None, :])

    def zero(self) -> Counts:
        """Return an empty sum."""
        return np.zeros(self.dimension + 1, np.int64)

    def fold(self, counts: Counts, index: NDArray[Any], payload: NDArray[Any]) -> Counts:
        """Return the sum after a chunk of reports."""
        rows = payload.reshape(-1, self.dimension)
        return add(counts, np.append(total(rows), len(rows)))

    def mean(self, counts: Counts) -> Floats:
        """Return the mean of the signed counts, 0 if there are no reports."""
        return np.asarray(counts[:-1] / max(1, int(counts[-1])))

    def _marks(self, payload: NDArray[Any]) -> NDArray[np.int64]:
        """Return each report's d marked slots in order."""
        d = self.dimension
        signed = payload.reshape(-1, d).astype(np.int64)
        bins = np.zeros((len(signed), 2 * d + 1), np.int64)
        bins[:, :d], bins[:, d : 2 * d] = np.maximum(signed, 0), np.maximum(-signed, 0)
        rest = d - bins.sum(axis=1)
        if self.dropped:
            bins[:, 2 * d] = rest
        else:
            bins[:, 0] += rest // 2
            bins[:, d] += rest // 2
        every = np.tile(np.arange(2 * d + 1), len(bins))
        return np.repeat(every, bins.ravel()).reshape(len(bins), d) + np.arange(d)

    def _rank(self, marks: NDArray[np.int64]) -> int:
        rank, slot, taken = 0, self.slots - 1, self.dimension
        ways = math.comb(slot, taken)
        # From the last mark down: `ways` is C(slot, taken) all along.
        for mark in reversed(marks.tolist()):
            while slot > mark:
                ways = ways * (slot - taken) // slot
                slot -= 1
            rank += ways
            ways = ways * taken // slot if slot else 1
            slot, taken = slot - 1, taken - 1
        return rank

    def _places(self, rank: int) -> list[int]:
        places, slot, taken = [], self.slots - 1, self.dimension
        ways = math.comb(slot, taken)
        while taken:
            if rank >= ways:
                rank -= ways
                places.append(slot)
                ways = ways * taken // slot if slot else 1
                taken -= 1
            else:
                ways = ways * (slot - taken) // slot
            slot -= 1
        return places
