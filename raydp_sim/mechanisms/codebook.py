"""Codebook: the nearest of a few random directions to a sampled block of the rotated vector."""

import math
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.parts.categories import odd_overlap, stated
from raydp_sim.mechanisms.parts.hadamard import fwht
from raydp_sim.mechanisms.parts.nearest_direction import (
    MOST_TRIED,
    best_codewords,
    nearest,
    other_probability,
)
from raydp_sim.mechanisms.parts.rotation import Hadamard, padded_dimension
from raydp_sim.mechanisms.parts.rowwise import dots
from raydp_sim.mechanisms.wires.codewords import Codewords
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream

# Doubles of one block of rows, which then stays in cache.
_CACHED = 1 << 17
# Directions of all codebooks together are numbered by 32 bits.
_MOST_DIRECTIONS = 1 << 32


class Codebook(Mechanism):
    """Send a block of the rotated vector as the nearest of a few random directions, by response.

    The vector is turned by a public rotation, and the client draws one of D/k blocks of k
    coordinates and one of many public codebooks without looking at its data: a random projection
    loses next to nothing while its k coordinates say more than the noise (Asi, Feldman, Nelson,
    Nguyen & Talwar 2023, "Fast optimal locally private mean estimation via random projections").
    A codebook holds codewords that look the same in every direction (Isik et al. 2023, "Exact
    optimality of communication-privacy-utility tradeoffs in distributed mean estimation"): here
    random ones and their opposites. The one nearest to the block is sent by randomized response.

    Its mean is the block's direction u times E<V, u> of the nearest one, whatever u, over the draw
    of the codebooks; of a block shorter than the bound r = level radius sqrt(k/D) the opposite
    direction is meant with probability 1/2 - length/(2 r), so that its mean is kept. Codebooks are
    finite in number, so for given ones the mean is off by a share of 1/(E<V, u> sqrt(codebooks)).
    A longer block is cut to r, which biases the estimate, and counted in `Messages.clipped`.

    The loss is that of the response, for every input; the ball may not attain it.

    Fields:
        radius: of the l2 ball, > 0.
        coordinates: of a block, k; a power of two. By default 32, or D if that is less.
        codewords: of a codebook, a power of two; by default the number up to 256 that errs least
            at epsilon_local, from 2 below epsilon 1 to 64 at 6.
        codebooks: how many there are, a power of two; a report names one of them.
        level: bound of a block in units of radius sqrt(k/D). With sqrt(D/k) no block is ever cut;
            the error goes with the square of it.
        rotation_seed: of the rotation and the codebooks, which are public.

    Example:
        >>> mechanism = Codebook(epsilon_local=5.0, dimension=1000, radius=1.0)
        >>> mechanism.bits, round(mechanism.worst_mse())
        (26, 356)
    """

    kind: ClassVar[str] = "codebook"
    source: ClassVar[str] = "Asi et al. 2023 and Isik et al. 2023, combined"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 1, "radius": 0.5, "codewords": 2},
        {"epsilon_local": 2.0, "dimension": 4, "radius": 1.0, "codewords": 8},
        {"epsilon_local": 4.0, "dimension": 5, "radius": 2.0, "coordinates": 2, "level": 2.0},
        {"epsilon_local": 5.0, "dimension": 60, "radius": 1.0, "coordinates": 16, "level": 2.0},
    )

    radius: Positive
    coordinates: Annotated[int, Field(ge=1)] | None = None
    codewords: Annotated[int, Field(ge=2, le=1 << 16)] | None = None
    codebooks: Annotated[int, Field(ge=1, le=1 << 31)] = 1 << 16
    level: Positive = 1.0
    rotation_seed: int = 0

    @model_validator(mode="after")
    def _powers_of_two(self) -> "Codebook":
        for name in ("coordinates", "codewords", "codebooks"):
            number = getattr(self, name)
            if number is not None and number & (number - 1):
                raise ValueError(f"{name} is {number}; it must be a power of two")
        if (self.codewords or MOST_TRIED) // 2 * self.codebooks > _MOST_DIRECTIONS:
            raise ValueError(
                f"codebooks is {self.codebooks}; with their codewords that is more than 2^33 in "
                "all: take fewer"
            )
        if self.dimension is not None and self.coordinates is not None:
            full = padded_dimension("hadamard", self.dimension)
            if self.coordinates > full:
                raise ValueError(
                    f"coordinates is {self.coordinates}, but the rotated vector has {full}; take "
                    "fewer"
                )
        return self

    @property
    def domain(self) -> Domain:
        """The l2 ball."""
        return Domain("l2", self.radius, self.need_dimension())

    @cached_property
    def _rotation(self) -> Hadamard:
        return Hadamard(padded_dimension("hadamard", self.need_dimension()), self.rotation_seed)

    @cached_property
    def wire(self) -> Codewords:
        """One message of three numbers."""
        full = self._rotation.full
        size = min(32, full) if self.coordinates is None else self.coordinates
        words = self.codewords or best_codewords(size, self.need_epsilon())
        return Codewords(full // size, size, self.codebooks, words, self.rotation_seed)

    @property
    def bound(self) -> float:
        """The largest length of a block, r."""
        return self.level * self.radius / math.sqrt(self.wire.blocks)

    @cached_property
    def other(self) -> float:
        """Probability of each codeword that is not the nearest: a multiple of 2^-53."""
        return other_probability(self.wire.codewords, self.need_epsilon())

    @property
    def kept(self) -> float:
        """What the nearest codeword's probability is above the others'."""
        return 1.0 - self.wire.codewords * self.other

    @property
    def scale(self) -> float:
        """What a codeword is multiplied by, so that a block of the largest length is right."""
        lean = self.kept * nearest(self.wire.size, self.wire.codewords // 2).mean
        return self.wire.blocks * self.bound / lean

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Draw a block and a codebook, find the nearest codeword, and send it or another one."""
        wire, half = self.wire, self.wire.codewords // 2
        block = stream.integers("block", wire.blocks)[:, 0]
        codebook = stream.words("codebook")[0][:, 0] % np.uint32(self.codebooks)
        draw = stream.uniform("codeword", 2)
        own, clipped = np.empty(len(values), np.int64), 0
        step = max(1, _CACHED // max(self._rotation.full, half * wire.size))
        for first in range(0, len(values), step):
            rows = slice(first, first + step)
            part = self._blocks(values[rows], block[rows])
            length = np.sqrt(dots(part, part))
            clipped += int(np.count_nonzero(length > self.bound * (1.0 + 1e-9)))
            number = np.tile(np.arange(half, dtype=np.uint32), len(part))
            found = wire.directions(np.repeat(codebook[rows], half), number)
            height = dots(found, np.repeat(part, half, axis=0)).reshape(len(part), half)
            place = np.argmax(np.abs(height), axis=1)
            below = height[np.arange(len(part)), place] < 0.0
            below ^= draw[rows, 0] < 0.5 - 0.5 * length / self.bound
            own[rows] = 2 * place + below
        # Interval j of length `other` is codeword j, and past the last one the nearest is kept.
        other = draw[:, 1] / self.other
        codeword = np.where(other < wire.codewords, other.astype(np.int64), own)
        numbers = block.astype(np.uint64) * np.uint64(self.codebooks) + codebook
        numbers = numbers * np.uint64(wire.codewords) + codeword.astype(np.uint64)
        return Messages(numbers.astype(wire.dtype)[:, None], clipped)

    def _blocks(self, values: Floats, block: NDArray[np.int64]) -> Floats:
        # Rows b k + j of H are those of H_(D/k) by those of H_k: mix the blocks, then transform.
        blocks, size = self.wire.blocks, self.wire.size
        wide = np.zeros((len(values), self._rotation.full))
        wide[:, : values.shape[1]] = values * self._rotation.signs[: values.shape[1]]
        odd = odd_overlap(block.astype(np.uint32)[:, None], np.arange(blocks, dtype=np.uint32))
        mixed = (1.0 - 2.0 * odd)[:, None, :] @ wide.reshape(-1, blocks, size)
        return fwht(mixed[:, 0, :])

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the mean of the vectors."""
        rotated = self.scale * self.wire.mean(counts)
        return self._rotation.back(rotated[None])[0, : self.need_dimension()]

    def event(self) -> LocalReport:
        """Return the loss of the response, rounded up."""
        return stated(self.need_epsilon(), math.log1p(self.kept / self.other))

    def randomizer(self) -> str:
        """Name the law: block and codebook without data, and randomized response.

        A shorter block is a mixture of two codewords, and divergences are jointly convex.
        """
        return "krr"

    def alphabet(self) -> int:
        """Return the symbols of that response."""
        return self.wire.codewords

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error, over the draw of the codebooks.

        A codeword V has E[V V^T] = a I + b u u^T; b = kept (t - (1 - t)/(k - 1)) with t the mean
        square height of the nearest one, and the trace is 1. In the vector's own space a block
        weighs what its columns of the rotation do, in all the dimension d.
        """
        wire, d = self.wire, self.need_dimension()
        blocks = self._rotation.rotate(values).reshape(len(values), wire.blocks, wire.size)
        length = np.sqrt((blocks * blocks).sum(axis=2, keepdims=True))
        unit = np.where(length > 0.0, blocks / np.maximum(length, 1e-300), np.eye(1, wire.size))
        mean = self._rotation.back(
            (unit * np.minimum(length, self.bound)).reshape(len(values), -1)
        )[:, :d]
        own = np.zeros(len(values))
        for number in range(wire.blocks):
            alone = np.zeros_like(blocks)
            alone[:, number] = unit[:, number]
            own += (self._rotation.back(alone.reshape(len(values), -1))[:, :d] ** 2).sum(axis=1)
        second = self.scale**2 * (self._even * d + self._along * own) / wire.blocks
        return np.asarray(second - 2.0 * (mean * values).sum(axis=1) + (values**2).sum(axis=1))

    def worst_mse(self) -> float:
        """Bound the error: a block's direction in the vector's own space, and all in one block.

        With n the lengths of blocks the rest of the error is sum n (n - 2 min(n, r)), which in n^2
        is convex where it is positive, so that it is largest where one block has all.
        """
        even = self._even * self.need_dimension() / self.wire.blocks
        cut = self.radius * (self.radius - 2.0 * self.bound)
        return self.scale**2 * (even + self._along) + max(0.0, cut)

    @property
    def worst_mse_is(self) -> Literal["exact", "bound"]:
        """A bound: hardly any vector has its blocks in its own space."""
        return "bound"

    @property
    def bias(self) -> str:
        """Cutting biases, where a block can be longer than the bound."""
        longest = self.level < math.sqrt(self.wire.blocks) * (1.0 - 1e-12)
        return "blocks of the rotated vector beyond the level are cut short" if longest else ""

    @property
    def _along(self) -> float:
        size = self.wire.size
        square = nearest(size, self.wire.codewords // 2).square
        return self.kept * (square - (1.0 - square) / max(1, size - 1))

    @property
    def _even(self) -> float:
        return (1.0 - self._along) / self.wire.size
