"""One noisy bit of the category's Hadamard code."""

import math
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field, model_validator

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
    step_down,
    step_up,
    symbols,
)
from raydp_sim.mechanisms.parts.entropy import h2, rarer
from raydp_sim.mechanisms.parts.hadamard_sign import HadamardSign
from raydp_sim.mechanisms.wires.packing import index_bits
from raydp_sim.mechanisms.wires.symbols import Symbols
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Ids, Stream

# A budget that misses what the bit takes by less than this share is a rounding of it.
_ROUNDING = 1e-9
# Least probability of a 1, far above the steps of 2^-53 that it is drawn in.
_LEAST = 1e-9


class HadamardBit(Mechanism):
    """Send a random column of the Hadamard matrix and the category's sign there, flipped at times.

    Acharya & Sun 2019; R_1 of Girgis et al. 2021 at the corners of the l1 ball. The matrix has the
    least power of two K >= k rows, and the sign flips with probability 1 / (e^epsilon_local + 1).
    Unbiased for any data, since every client draws its own column; with c = (e^epsilon_local + 1) /
    (e^epsilon_local - 1) a client's error is c^2 k - 1 for every category. As good as
    'hadamard-response' up to epsilon_local of about 1 and worse beyond.

    With a budget of randomness below the H2(1 / (e^epsilon_local + 1)) bits that this takes (Girgis
    et al. 2020, (7.27) of Girgis 2024), the bit is 1 with probability q where the sign is +1 and q
    e^-epsilon_local elsewhere, q <= 1/2 having that entropy; errors grow like 1/q.

    Probabilities are multiples of 2^-53, rounded to the side that hides more, so the loss is exact
    for what is drawn and never above epsilon_local.

    Fields:
        categories: how many there are, k, 2..1048576; clients hold whole numbers 0..k-1.
        randomness: most bits of randomness of a report's bit, > 0; by default as many as it takes.
            The column is public, and not counted.

    Example:
        >>> round(HadamardBit(epsilon_local=1.0, categories=10).worst_mse(), 6)
        45.826944
    """

    kind: ClassVar[str] = "hadamard-bit"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Acharya & Sun 2019"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "categories": 5},
        {"epsilon_local": 0.2, "categories": 16, "dimension": 1},
        {"epsilon_local": 6.0, "categories": 9},
        {"epsilon_local": 1.0, "categories": 5, "randomness": 0.5},
        {"epsilon_local": 3.0, "categories": 8, "randomness": 0.25},
    )

    categories: Categories
    randomness: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _fits(self) -> "HadamardBit":
        check_width(self.kind, self.dimension, self.categories)
        if self.randomness is not None and rarer(self.randomness) < _LEAST:
            raise ValueError(
                f"randomness is {self.randomness:g} bits; a bit with so little is hardly ever 1: "
                f"give at least {h2(_LEAST):.2g}"
            )
        return self

    @property
    def domain(self) -> Domain:
        """One of the categories."""
        return Domain("category", 1.0, self.categories)

    @property
    def columns(self) -> int:
        """Columns K of the matrix."""
        return 1 << index_bits(self.categories)

    @cached_property
    def wire(self) -> Symbols:
        """One symbol, 2 column + bit; the bit is 1 for the sign +1."""
        return Symbols(2 * self.columns)

    @cached_property
    def sign(self) -> HadamardSign:
        """What the reader computes."""
        flip = step_up(float(scipy.special.expit(-allowed(self.need_epsilon()))))
        if self.randomness is None or h2(flip) <= self.randomness * (1.0 + _ROUNDING):
            return HadamardSign(self.categories, 1.0 - flip, flip)
        up = step_down(rarer(self.randomness))
        down = step_up(up * math.exp(-allowed(self.need_epsilon())))
        return HadamardSign(self.categories, up, down)

    @property
    def entropy(self) -> float:
        """Bits of randomness of a report's bit."""
        return self.sign.entropy

    @property
    def _symmetric(self) -> bool:
        return self.sign.up + self.sign.down == 1.0

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Draw a column and a coin from one word per client."""
        size, up, down, symmetric = self.columns, self.sign.up, self.sign.down, self._symmetric

        def draw(own: Floats, part: ClientStream) -> NDArray[Any]:
            high, low = (word[:, 0] for word in part.words("report"))
            column: Ids = bits_beside(low, size, part)
            bit = coin(high, low, up).view(np.uint8)
            minus = odd_overlap(codes(own), column)
            if symmetric:
                bit ^= minus
            else:
                bit = np.where(minus, coin(high, low, down), bit)
            column += column
            column += bit
            return column

        return symbols(values, stream, self.wire.dtype, draw)

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the frequencies by transforming the sums of signs per column."""
        return self.sign.decode(counts)

    def event(self) -> LocalReport:
        """Return the report's exact loss, rounded up."""
        return stated(self.need_epsilon(), self.sign.loss)

    def randomizer(self) -> str | None:
        """Name the message's law: a uniform index into the category's K bits, one flipped.

        With a budget of randomness the two signs flip unequally, and it has no name.
        """
        return "rbin" if self._symmetric else None

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""
        return self.sign.mse(values)

    def worst_mse(self) -> float:
        """Return the error of a client; with a budget, of one in category 0, whose sign is +1."""
        return self.sign.worst_mse()

    def variance(self, mean: Floats, reports: int) -> Floats:
        """Return the square of every decoded entry, less its mean's, at these shares."""
        return self.sign.variance(mean, reports)

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probabilities of `2 column + bit`."""
        return self.sign.laws(values)
