"""Codebook: the nearest of a few random directions to a sampled block of the rotated vector."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.parts.categories import allowed, odd_overlap, stated, step_up
from raydp_sim.mechanisms.parts.hadamard import fwht
from raydp_sim.mechanisms.parts.rotation import Hadamard, padded_dimension
from raydp_sim.mechanisms.parts.rowwise import dots
from raydp_sim.mechanisms.wires.fixed import add, quantise, resolution
from raydp_sim.mechanisms.wires.packing import index_bits, pack_bits, unpack_bits
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Ids, Stream

# Doubles of one block of rows, which then stays in cache.
_CACHED = 1 << 17
# The most codewords that are taken without being asked for.
_MOST_TRIED = 256
# Directions of all codebooks together are numbered by 32 bits.
_MOST_DIRECTIONS = 1 << 32


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


class Nearest(NamedTuple):
    """Of random directions and their opposites, the one nearest to a unit vector u.

    Attributes:
        mean: E <V, u>.
        square: E <V, u>^2.
    """

    mean: float
    square: float


@lru_cache(maxsize=64)
def nearest(size: int, directions: int) -> Nearest:
    """Integrate Pr[some |<V, u>| > t] over t: squares of heights follow Beta(1/2, (size - 1)/2).

    Example:
        >>> [round(value, 4) for value in nearest(32, 16)]
        [0.3611, 0.1364]
    """
    if size == 1:
        return Nearest(1.0, 1.0)
    from scipy.integrate import quad  # here: most actors never integrate

    def beyond(angle: float) -> float:
        # t = sin(angle): no singularity at t = 1, which circles have.
        below = float(scipy.special.betainc(0.5, 0.5 * (size - 1), math.sin(angle) ** 2))
        return (1.0 - below**directions) * math.cos(angle)

    # Most of it lies below a few times 1/sqrt(size).
    inner = math.asin(min(1.0, 2.0 / math.sqrt(size)))
    found = []
    for weight in (lambda t: 1.0, lambda t: 2.0 * t):
        spans = ((0.0, inner), (inner, math.pi / 2))
        parts = [
            quad(lambda a, f=weight: f(math.sin(a)) * beyond(a), *span, epsabs=1e-13, limit=200)[0]
            for span in spans
        ]
        found.append(math.fsum(parts))
    return Nearest(*found)


def _other(codewords: int, epsilon: float) -> float:
    """Return the probability of each codeword that is not the nearest: a multiple of 2^-53."""
    ratio = math.exp(-allowed(min(epsilon, 700.0)))
    return step_up(ratio / (1.0 + (codewords - 1) * ratio))


@lru_cache(maxsize=256)
def _best_codewords(size: int, epsilon: float) -> int:
    """Return the number of codewords whose mean leans most towards the block."""
    tried = [1 << power for power in range(1, _MOST_TRIED.bit_length())]

    def lean(codewords: int) -> float:
        kept = 1.0 - codewords * _other(codewords, epsilon)
        return kept * nearest(size, codewords // 2).mean

    return max(tried, key=lean)


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
        if (self.codewords or _MOST_TRIED) // 2 * self.codebooks > _MOST_DIRECTIONS:
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
        words = self.codewords or _best_codewords(size, self.need_epsilon())
        return Codewords(full // size, size, self.codebooks, words, self.rotation_seed)

    @property
    def bound(self) -> float:
        """The largest length of a block, r."""
        return self.level * self.radius / math.sqrt(self.wire.blocks)

    @cached_property
    def other(self) -> float:
        """Probability of each codeword that is not the nearest: a multiple of 2^-53."""
        return _other(self.wire.codewords, self.need_epsilon())

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
