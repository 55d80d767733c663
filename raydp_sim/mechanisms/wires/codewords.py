"""Messages that name a codeword: a random direction of a block of coordinates, or its opposite."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Counts, Floats
from raydp_sim.mechanisms.parts.rowwise import dots
from raydp_sim.mechanisms.wires.fixed import add, quantise, resolution
from raydp_sim.mechanisms.wires.packing import index_bits, pack_bits, unpack_bits
from raydp_sim.random import Ids, Stream

# Doubles of one block of rows, which then stays in cache.
_CACHED = 1 << 17


@dataclass(frozen=True)
class Codewords:
    """One message per report: the number of a block, of a codebook, and of one of its codewords.

    Codeword 2j is direction j of the codebook, 2j + 1 its opposite. The counts are the sums of the
    codewords at each coordinate of their block, in steps of 2^-38, then the number of reports.

    Example:
        >>> Codewords(blocks=512, size=32, codebooks=65536, codewords=32, seed=0).bits
        30
    """

    blocks: int
    size: int
    codebooks: int
    codewords: int
    seed: int

    @property
    def messages(self) -> int:
        """Number of messages in one report."""
        return 1

    @property
    def bits(self) -> int:
        """Bits of one packed report."""
        return sum(index_bits(each) for each in (self.blocks, self.codebooks, self.codewords))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned type that holds a report."""
        return np.min_scalar_type((1 << self.bits) - 1)

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Pack each report into whole bytes."""
        return pack_bits(payload, self.bits)

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Undo `encode`."""
        return unpack_bits(wire, self.bits, 1).astype(self.dtype)

    def directions(self, codebook: Ids, number: Ids) -> Floats:
        """Return unit vectors that look the same in every direction, one for each pair."""
        place = Stream(self.seed).at("codebook")
        found = place.clients(codebook * np.uint32(self.codewords // 2) + number)
        normal = found.normal("direction", self.size)
        normal /= np.sqrt(np.maximum(dots(normal, normal), 1e-300))[:, None]
        return normal

    def zero(self) -> Counts:
        """Return an empty sum."""
        return np.zeros(self.blocks * self.size + 1, np.int64)

    def fold(self, counts: Counts, index: NDArray[Any], payload: NDArray[Any]) -> Counts:
        """Return the sum after a chunk of reports: their codewords are drawn again."""
        reports = payload.reshape(-1).astype(np.uint64)
        codeword = reports % self.codewords
        codebook = reports // self.codewords % self.codebooks
        block = (reports // (self.codewords * self.codebooks)).astype(np.int64)
        added = self.zero()
        summed, step = added[:-1].reshape(self.blocks, self.size), resolution(1.0)
        rows = max(1, _CACHED // self.size)
        for first in range(0, len(reports), rows):
            part = slice(first, first + rows)
            number = (codeword[part] // 2).astype(np.uint32)
            sent = self.directions(codebook[part].astype(np.uint32), number)
            sent[codeword[part] % 2 == 1] *= -1.0
            np.add.at(summed, block[part], quantise(sent, step))
        added[-1] = len(reports)
        return add(counts, added)

    def mean(self, counts: Counts) -> Floats:
        """Return the sum of the codewords over the number of reports, 0 if there are none."""
        return np.asarray(counts[:-1] / max(1, int(counts[-1])) * resolution(1.0))
