"""Hadamard response: blocks of outputs, half of one block more likely than the rest."""

import math
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages
from raydp_sim.mechanisms.parts.categories import (
    Categories,
    allowed,
    bits_beside,
    check_width,
    codes,
    coin,
    odd_overlap,
    stated,
    step_up,
    symbols,
)
from raydp_sim.mechanisms.parts.entropy import law_entropy
from raydp_sim.mechanisms.parts.hadamard import fwht
from raydp_sim.mechanisms.wires.symbols import Symbols
from raydp_sim.privacy.events import LocalReport
from raydp_sim.privacy.names import hadamard_blocks
from raydp_sim.random import ClientStream, Ids, Stream


class HadamardResponse(Mechanism):
    """Send an output out of K = B b, in the category's own half block e^epsilon_local as likely.

    Acharya, Sun & Zhang 2019. Category x has block x mod B and column x // B + 1 of the b x b
    Hadamard matrix; its set C_x are the b / 2 outputs of the block whose row holds +1 in that
    column. A report is uniform on C_x with probability `kept`, and else uniform on all outputs.
    Unbiased; see `mse` for the exact error. Of the order k / (n epsilon^2) for small epsilon and
    k / (n e^epsilon) up to log k, the best possible in both.

    The mixture's probability is a multiple of 2^-53, rounded up, so the loss is exact for what is
    drawn and never above epsilon_local.

    Fields:
        categories: how many there are, k, 2..1048576; clients hold whole numbers 0..k-1.

    Example:
        >>> response = HadamardResponse(epsilon_local=2.0, categories=100)
        >>> response.blocks, response.block, response.bits
        (4, 32, 7)
    """

    kind: ClassVar[str] = "hadamard-response"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Acharya, Sun & Zhang 2019"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 0.5, "categories": 5},
        {"epsilon_local": 1.0, "categories": 10, "dimension": 1},
        {"epsilon_local": 2.0, "categories": 37},
        {"epsilon_local": 6.0, "categories": 6},
    )

    categories: Categories

    @model_validator(mode="after")
    def _fits(self) -> "HadamardResponse":
        check_width(self.kind, self.dimension, self.categories)
        return self

    @property
    def domain(self) -> Domain:
        """One of the categories."""
        return Domain("category", 1.0, self.categories)

    @cached_property
    def blocks(self) -> int:
        """Number of blocks B, a power of two."""
        return hadamard_blocks(self.need_epsilon(), self.categories)

    @cached_property
    def block(self) -> int:
        """Outputs b of a block: the least power of two that is at least k / B + 1."""
        return 1 << math.ceil(self.categories / self.blocks).bit_length()

    @cached_property
    def wire(self) -> Symbols:
        """One output."""
        return Symbols(self.blocks * self.block)

    @cached_property
    def _blanket(self) -> float:
        # The probability of an output drawn from all, 2 B / (e^epsilon + 2 B - 1).
        q = math.exp(-allowed(self.need_epsilon()))
        return step_up(2 * self.blocks * q / (1.0 + (2 * self.blocks - 1) * q))

    @property
    def _kept(self) -> float:
        return 1.0 - self._blanket

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Draw an output of all, and move most clients' into their own half block."""
        size, kept = self.wire.alphabet, self._kept
        within = np.uint32(self.block - 1)

        def draw(own: Floats, part: ClientStream) -> NDArray[Any]:
            high, low = (word[:, 0] for word in part.words("report"))
            output = bits_beside(low, size, part)
            block, column = self._place(codes(own))
            row = output & within
            # Where the row holds -1, its partner across the column's lowest bit holds +1.
            lowest = column & (~column + np.uint32(1))
            row ^= lowest * odd_overlap(row, column)
            row += block * np.uint32(self.block)
            return np.where(coin(high, low, kept), row, output)

        return symbols(values, stream, self.wire.dtype, draw)

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the frequencies: how much more often than its complement C_x was seen."""
        tilted = fwht(counts.reshape(self.blocks, self.block).astype(np.float64))
        block, column = self._place(np.arange(self.categories, dtype=np.uint32))
        return np.asarray(tilted[block, column] / (self._kept * max(1, int(counts.sum()))))

    def event(self) -> LocalReport:
        """Return the report's exact loss, rounded up."""
        ratio = 2 * self.blocks * self._kept / self._blanket
        return stated(self.need_epsilon(), math.log1p(ratio))

    def randomizer(self) -> str:
        """Name the message's law."""
        return "hadamard"

    def alphabet(self) -> int:
        """Return the number of categories."""
        return self.categories

    @property
    def entropy(self) -> float:
        """Bits of randomness of a report, the same for every category."""
        return float(law_entropy(self.laws(np.zeros((1, 1)))[0])[0])

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error.

        A decoded output is 1 / kept or its negative at every category of its block, 0 elsewhere.
        With m_x categories in x's block its expected square is (kept m_x + (1 - kept) k / B) /
        kept^2, from which the square of its mean, 1, is taken.
        """
        block, _ = self._place(codes(values[:, 0]))
        return self._error((self.categories - 1 - block.astype(np.float64)) // self.blocks)

    def worst_mse(self) -> float:
        """Return the error in block 0, which has the most categories."""
        return float(self._error(np.array([(self.categories - 1) // self.blocks]))[0])

    def variance(self, mean: Floats, reports: int) -> Floats:
        """Return what `mse` adds up, for each category by itself, at these shares.

        An entry is 1 / kept or its negative if the output is in its block, which has probability
        kept P + (1 - kept) / B, P the share of the block's categories; its mean is its share.
        """
        share = np.clip(mean, 0.0, 1.0)
        block, _ = self._place(np.arange(self.categories, dtype=np.uint32))
        held = np.bincount(block, share, self.blocks)
        inside = np.minimum(held, 1.0) / self._kept + self._blanket / self.blocks / self._kept**2
        return np.asarray((inside[block] - share) / reports)

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probabilities of the outputs."""
        block, column = self._place(codes(values[:, 0]))
        output = np.arange(self.wire.alphabet, dtype=np.uint32)
        row, place = output % np.uint32(self.block), output // np.uint32(self.block)
        own = (odd_overlap(row, column[:, None]) == 0) & (place == block[:, None])
        return [self._blanket / self.wire.alphabet + (2.0 * self._kept / self.block) * own]

    def _place(self, category: Ids) -> tuple[Ids, Ids]:
        shift = np.uint32(self.blocks.bit_length() - 1)
        return category & np.uint32(self.blocks - 1), (category >> shift) + np.uint32(1)

    def _error(self, others: Floats) -> Floats:
        # `others` is m_x - 1, so that nothing cancels where the error is small.
        spread = self._blanket * self.categories / self.blocks
        return np.asarray((others + self._blanket) / self._kept + spread / self._kept**2)
