"""Reports of (offset, noisy bit) messages: the R^Bin family's wire form, sampler and decoder."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from raydp_sim import kernels
from raydp_sim.kernels.types import Floats32
from raydp_sim.mechanisms.base import Counts, Floats
from raydp_sim.mechanisms.parts.blocks import Blocks, recommended
from raydp_sim.mechanisms.parts.budget import SLACK, Calibration, message_losses
from raydp_sim.mechanisms.parts.coin import Coin
from raydp_sim.mechanisms.parts.levels import Allocation, shares, weights
from raydp_sim.mechanisms.wires.packing import index_bits, pack_bits, unpack_bits
from raydp_sim.random import ClientStream

Decoder = Literal["seed", "centred"]
BlockStyle = Literal["pad", "balanced"]

# Messages handled at a time, so that the arrays of one step stay in cache.
_CHUNK = 1 << 16

# Beyond this the step of a 53-bit uniform shows in the flip probability: no loss is claimed then.
_MOST_LOSS = 25.0


@dataclass(frozen=True)
class BitReports:
    """Per level and block, one message `2 offset + bit`, the bit flipped with probability p_k.

    Message index `level * blocks.count + block`. The counts are a histogram of symbols per index.

    Example:
        >>> BitReports(Blocks(10, 4), (0.5,), centred=False).bits
        12
    """

    # Whether its counts follow from how often each message came, and say no more.
    counted: ClassVar[bool] = True

    blocks: Blocks
    losses: tuple[float, ...]
    centred: bool

    # The wire.

    @property
    def levels(self) -> int:
        """Number of binary levels."""
        return len(self.losses)

    @property
    def messages(self) -> int:
        """Number of messages in one report."""
        return self.levels * self.blocks.count

    @property
    def alphabet(self) -> int:
        """Number of symbols of one message."""
        return 2 * self.blocks.width

    @property
    def symbol_bits(self) -> int:
        """Bits of one message: the offset and the bit."""
        return index_bits(self.blocks.width) + 1

    @property
    def bits(self) -> int:
        """Bits of one packed report."""
        return self.messages * self.symbol_bits

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned type that holds a symbol."""
        return np.min_scalar_type(self.alphabet - 1)

    def encode(self, payload: NDArray[Any]) -> NDArray[np.uint8]:
        """Pack each report into whole bytes."""
        return pack_bits(payload, self.symbol_bits)

    def unpack(self, wire: NDArray[np.uint8]) -> NDArray[Any]:
        """Undo `encode`."""
        return unpack_bits(wire, self.symbol_bits, self.messages).astype(self.dtype)

    def zero(self) -> Counts:
        """Return an empty histogram."""
        return np.zeros((self.messages, self.alphabet), np.int64)

    def fold(self, counts: Counts, index: NDArray[Any], payload: NDArray[Any]) -> Counts:
        """Return the histogram after a chunk of messages."""
        if counts.size == 2:
            ones = np.count_nonzero(payload)
            return np.asarray(counts + np.array([[payload.size - ones, ones]]))
        return np.asarray(counts + kernels.tally(payload, self.alphabet, index, self.messages))

    # The randomizer.

    @cached_property
    def flips(self) -> Floats:
        """Flip probability of each level, a multiple of the uniforms' step: see `Coin`."""
        return np.array([Coin(loss).flip for loss in self.losses])

    @cached_property
    def gaps(self) -> Floats:
        """1 - 2 flip, exact in doubles."""
        return np.asarray(1.0 - 2.0 * self.flips)

    @cached_property
    def noise(self) -> Floats:
        """Variance of one decoded bit at each level: p (1 - p) / (1 - 2 p)^2."""
        return np.asarray(self.flips * (1.0 - self.flips) / self.gaps**2)

    def message_losses(self) -> tuple[float, ...]:
        """Loss of every message that depends on the data, rounded up; padding costs nothing."""
        return tuple(
            loss * (1.0 + SLACK) for loss in self.losses for _ in range(self.blocks.filled)
        )

    @cached_property
    def loss(self) -> float:
        """Exact loss of a whole report."""
        return self.blocks.filled * float(sum(self.losses))

    def randomize(
        self, clients: int, stream: ClientStream, bits_at: Callable[[slice, Counts], Floats]
    ) -> NDArray[Any]:
        """Sample coordinates, ask `bits_at(rows, coordinates)` for their bits, and flip those.

        A fractional bit is a probability: rounding it at random and flipping the outcome is one
        comparison of one uniform with flip + gap * bit.
        """
        flip, gap = self._coins
        if self.messages == self.blocks.width == 1 and not self.blocks.padded:
            # One bit, which is all there is: nothing is computed that has to stay in cache.
            bits = bits_at(slice(0, clients), np.broadcast_to(self._starts, (clients, 1)))
            return kernels.toss(stream.key("flip"), stream.ids, None, bits, flip, gap, self.dtype)
        out = np.empty((clients, self.messages), self.dtype)
        start = self._starts
        step = max(1, _CHUNK // self.messages)
        for first in range(0, clients, step):
            rows = slice(first, min(first + step, clients))
            part = stream.take(rows)
            if self.blocks.width > 1:
                offset = self.blocks.offsets(self.levels, part)
                coordinate = offset + start
            else:
                offset, coordinate = None, np.broadcast_to(start, (len(part.ids), self.messages))
            if self.blocks.padded:
                bits = bits_at(rows, np.minimum(coordinate, self.blocks.dimension - 1))
                bits = np.where(coordinate < self.blocks.dimension, bits, 0.0)
            else:
                bits = bits_at(rows, coordinate)
            key = part.key("flip")
            out[rows] = kernels.toss(key, part.ids, offset, bits, flip, gap, self.dtype)
        return out

    @cached_property
    def _starts(self) -> Counts:
        return np.tile(self.blocks.starts, self.levels)

    @cached_property
    def _coins(self) -> tuple[Floats, Floats]:
        """Flip probability and gap of every message."""
        count = self.blocks.count
        return np.repeat(self.flips, count), np.repeat(self.gaps, count)

    @cached_property
    def _high(self) -> Floats:
        return self.blocks.lengths.astype(np.float64)

    @cached_property
    def picks(self) -> bool:
        """Whether `pick` may be used: one level, no padding, and something to sample."""
        return self.levels == 1 and not self.blocks.padded and self.blocks.width > 1

    def pick(self, values: Floats | Floats32, radius: float, stream: ClientStream) -> NDArray[Any]:
        """Sample coordinates, clamp them to [-radius, radius] and toss their bits, in one go.

        What `randomize` does with `linf.to_unit`, where it `picks`.
        """
        place = (stream.key("index"), stream.key("flip"), stream.ids, values)
        blocks = self.blocks.starts, self._high
        return kernels.picked(*place, *blocks, radius, 0.5 / radius, *self._coins, self.dtype)

    # The decoder and its error. `bits` are (clients, dimension), one array per level.

    def estimates(self, counts: Counts) -> Floats:
        """Estimate the mean of each level's bits, shape (levels, dimension).

        Each message index is divided by what was received at it; nothing received counts as 0.
        """
        shape = (self.levels, self.blocks.count, self.blocks.width)
        zeros, ones = (counts[:, side::2].reshape(shape) for side in (0, 1))
        flip, gap = self.flips[:, None, None], self.gaps[:, None, None]
        # ones (1 - p) - zeros p is ones - p total, and (ones - zeros) / 2 is ones - total / 2.
        raw = 0.5 * (ones - zeros) if self.centred else ones * (1.0 - flip) - zeros * flip
        received = np.maximum((ones + zeros).sum(axis=2, keepdims=True), 1)
        raw = raw * (self.blocks.lengths[:, None] / (gap * received))
        kept = np.arange(self.blocks.width) < self.blocks.lengths[:, None]
        means = raw[:, kept][:, : self.blocks.dimension]
        return np.asarray(means + 0.5 if self.centred else means)

    def variances(self, bits: list[Floats], reach: Floats | float = 1.0) -> Floats:
        """Return per client the variance of sum_k weight_k bit_k, summed over coordinates.

        Coordinate i counts `reach[i]` times. Per level and coordinate, with block length a, it is
        (a - 1) b + a noise + b (1 - b), and with the centred decoder (a - 1) / 4 in place of
        (a - 1) b.
        """
        a = self.blocks.factors
        total = np.zeros(len(bits[0]))
        for weight, noise, bit in zip(weights(self.levels), self.noise, bits, strict=True):
            unsampled = 0.25 if self.centred else bit
            each = (a - 1.0) * unsampled + a * noise + bit * (1.0 - bit)
            total += weight**2 * (each * reach).sum(axis=1)
        return total

    def variance(self, bits: list[Floats], rounded: bool) -> Floats:
        """Return each coordinate's variance, as in `variances`, over clients with these mean bits.

        Bits of 0 and 1 are not rounded: theirs is exact. Where last bits may be fractions it is
        never too small, for their b (1 - b) is at most that of their mean.
        """
        a, total = self.blocks.factors, np.zeros(self.blocks.dimension)
        last = len(bits) - 1
        rows = zip(weights(self.levels), self.noise, bits, strict=True)
        for level, (weight, noise, bit) in enumerate(rows):
            each = (a - 1.0) * (0.25 if self.centred else bit) + a * noise
            if rounded and level == last:
                each = each + bit * (1.0 - bit)
            total += weight**2 * each
        return total

    def worst(self, rounded: bool) -> Floats:
        """Return each coordinate's largest such variance; `rounded` if last bits may be fractions.

        Every term grows with the bits where a > 1, so all bits are 1 there; where a = 1 only the
        rounding at 1/2 remains.
        """
        a, w2 = self.blocks.factors, weights(self.levels) ** 2
        fixed = a * (w2 * self.noise).sum() + (a - 1.0) * w2.sum() * (0.25 if self.centred else 1.0)
        at_half = w2[-1] / 4 if rounded else 0.0
        return np.asarray(fixed + (at_half if self.centred else np.where(a == 1.0, at_half, 0.0)))

    def laws(self, bits: list[Floats]) -> list[Floats]:
        """Return the exact probabilities of the symbols of each message."""
        laws = []
        for flip, gap, bit in zip(self.flips, self.gaps, bits, strict=True):
            for start, length in zip(self.blocks.starts, self.blocks.lengths, strict=True):
                law = np.zeros((len(bit), self.alphabet))
                block = np.zeros((len(bit), length))
                inside = bit[:, start : start + length]
                block[:, : inside.shape[1]] = inside
                law[:, 0 : 2 * length : 2] = (flip + gap * (1.0 - block)) / length
                law[:, 1 : 2 * length : 2] = (flip + gap * block) / length
                laws.append(law)
        return laws


def bit_reports(
    epsilon: float,
    dimension: int,
    coordinates: int | None,
    blocks: BlockStyle,
    decoder: Decoder,
    calibration: Calibration,
    levels: int = 1,
    allocation: Allocation = "seed",
) -> BitReports:
    """Build the reports of one mechanism from the words of a scenario."""
    count = recommended(epsilon, dimension) if coordinates is None else coordinates
    cut = Blocks(dimension, count, blocks == "balanced")
    share = shares(levels, allocation)
    losses = message_losses(epsilon, share, count, cut.filled, calibration)
    return BitReports(cut, tuple(losses.tolist()), decoder == "centred")


def stated_loss(reports: BitReports, epsilon: float) -> float:
    """Return the loss to account for: the exact one, rounded up, and never above `epsilon`.

    A message that flips less often than 53-bit draws can express is as good as not flipped at all;
    a report with such messages has no finite loss.
    """
    if max(reports.losses) > _MOST_LOSS:
        return math.inf
    return min(epsilon, reports.loss * (1.0 + 2.0 * SLACK))
