"""Reports that say a few numbers of a vector: drawn by a seed, or with their indices."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Counts, Floats
from raydp_sim.mechanisms.wires.base import Wire
from raydp_sim.mechanisms.wires.packing import index_bits, pack_bits, unpack_bits
from raydp_sim.mechanisms.wires.vectors import Vectors

# Doubles of expanded reports that are held at a time.
_BUFFER = 1 << 20


@dataclass(frozen=True)
class Sketches:
    """One message per report: a seed with its numbers, then indices with theirs.

    A seed has 32 bits, a number 32 (a float), an index ceil(log2 d). In the payload all of them are
    doubles: seed, numbers of the seed, indices, numbers of the indices.

    Attributes:
        dimension: d.
        seeded: numbers whose place follows from the seed; without any there is no seed.
        indexed: numbers with an index each.

    Example:
        >>> Sketches(1024, seeded=20, indexed=0).bits, Sketches(1024, seeded=0, indexed=20).bits
        (672, 840)
    """

    dimension: int
    seeded: int
    indexed: int

    @property
    def numbers(self) -> int:
        """Seed and numbers, 32 bits each."""
        return (1 + self.seeded if self.seeded else 0) + self.indexed

    @property
    def bits(self) -> int:
        """Bits of one packed report."""
        return 32 * self.numbers + self.indexed * index_bits(self.dimension)

    @property
    def width(self) -> int:
        """Doubles of the payload."""
        return self.numbers + self.indexed

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Lay out seed and numbers as little-endian words, then the indices bit by bit."""
        rows = payload.reshape(-1, self.width)
        seeds, drawn, indices, chosen = self.split(rows)
        floats = np.concatenate([drawn, chosen], axis=1).astype("<f4").view("<u4")
        words = np.concatenate([seeds.astype("<u4"), floats], axis=1)
        whole = np.ascontiguousarray(words).view(np.uint8).reshape(len(rows), -1)
        if index_bits(self.dimension) == 0 or not self.indexed:
            return whole
        return np.concatenate([whole, pack_bits(indices, index_bits(self.dimension))], axis=1)

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Undo `encode`."""
        size = 4 * self.numbers
        words = np.ascontiguousarray(wire[:, :size]).view("<u4")
        first = 1 if self.seeded else 0
        floats = np.ascontiguousarray(words[:, first:]).view("<f4").astype(np.float64)
        indices = np.zeros((len(wire), self.indexed))
        if index_bits(self.dimension) and self.indexed:
            packed = np.ascontiguousarray(wire[:, size:])
            indices += unpack_bits(packed, index_bits(self.dimension), self.indexed)
        parts = [words[:, :first], floats[:, : self.seeded], indices, floats[:, self.seeded :]]
        return np.concatenate(parts, axis=1).astype(np.float64)[:, None, :]

    def split(self, rows: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the columns of seeds, of their numbers, of indices and of theirs."""
        first = 1 if self.seeded else 0
        ends = np.cumsum([first, self.seeded, self.indexed])
        seeds, drawn, indices, chosen = np.split(rows, ends, axis=1)
        return seeds, drawn, indices, chosen


class Form(Protocol):
    """The form of a report that is one message: a row of doubles, and its bits."""

    @property
    def width(self) -> int:
        """Doubles of the payload."""

    @property
    def bits(self) -> int:
        """Bits of one packed report."""

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Pack each report into whole bytes."""

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Undo `encode`."""


@dataclass(frozen=True)
class Seeded:
    """A seed of 32 bits, then a report of another form, all in one message.

    All of it are doubles in the payload, also symbols and numbers of single precision.

    Attributes:
        inner: the form of what follows.
        shape: of a report of it: messages, or 1 and the numbers of its message.
        dtype: of its payload.
    """

    inner: Wire
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def width(self) -> int:
        """Doubles of the payload."""
        return 1 + math.prod(self.shape)

    @property
    def bits(self) -> int:
        """Bits of one packed report."""
        return 32 + self.inner.bits

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Lay out the seed as a little-endian word, then the rest in its own form."""
        rows = payload.reshape(-1, self.width)
        seeds = np.ascontiguousarray(rows[:, :1].astype("<u4")).view(np.uint8)
        return np.concatenate([seeds, self.inner.encode(self.reports(rows))], axis=1)

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Undo `encode`."""
        seeds = np.ascontiguousarray(wire[:, :4]).view("<u4")
        rest = self.inner.unpack(np.ascontiguousarray(wire[:, 4:])).reshape(len(wire), -1)
        return np.concatenate([seeds, rest], axis=1).astype(np.float64)[:, None, :]

    def joined(self, seeds: NDArray[Any], reports: NDArray[Any]) -> Floats:
        """Return the payload of seeds and reports of the inner form."""
        rest = reports.reshape(len(reports), self.width - 1)
        return np.concatenate([seeds[:, None], rest], axis=1).astype(np.float64)[:, None, :]

    def reports(self, rows: Floats) -> NDArray[Any]:
        """Return the reports of the inner form in rows of payload."""
        return rows[:, 1:].astype(self.dtype).reshape(len(rows), *self.shape)


@dataclass(frozen=True)
class Expanded:
    """Sketches as they are summed: the exact sum of the vectors that they stand for.

    Attributes:
        form: of a report.
        sums: of the vectors.
        expand: turns rows of payload into vectors, one by one.
    """

    form: Form
    sums: Vectors
    expand: Callable[[Floats], Floats]

    @property
    def messages(self) -> int:
        """Number of messages in one report."""
        return 1

    @property
    def bits(self) -> int:
        """Bits of one packed report."""
        return self.form.bits

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Pack each report into whole bytes."""
        return self.form.encode(payload)

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Undo `encode`."""
        return self.form.unpack(wire)

    def zero(self) -> Counts:
        """Return an empty sum."""
        return self.sums.zero()

    def fold(self, counts: Counts, index: NDArray[Any], payload: NDArray[Any]) -> Counts:
        """Return the sum after a chunk of reports, expanded a block at a time."""
        rows = payload.reshape(-1, self.form.width)
        block = max(1, _BUFFER // self.sums.dimension)
        for first in range(0, len(rows), block):
            part = self.expand(rows[first : first + block])
            counts = self.sums.fold(counts, index[first : first + block], part)
        return counts
