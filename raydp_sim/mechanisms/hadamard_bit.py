"""One noisy bit of the category's Hadamard code."""

import math
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator
from scipy.special import expit

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
from raydp_sim.mechanisms.parts.hadamard import fwht
from raydp_sim.mechanisms.wires.packing import index_bits
from raydp_sim.mechanisms.wires.symbols import Symbols
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Ids, Stream


class HadamardBit(Mechanism):
    """Send a random column of the Hadamard matrix and the category's sign there, flipped at times.

    Acharya & Sun 2019; R_1 of Girgis et al. 2021 at the corners of the l1 ball. The matrix has the
    least power of two K >= k rows, and the sign flips with probability 1 / (e^epsilon_local + 1).
    Unbiased for any data, since every client draws its own column; with c = (e^epsilon_local + 1) /
    (e^epsilon_local - 1) a client's error is c^2 k - 1 for every category. As good as
    'hadamard-response' up to epsilon_local of about 1 and worse beyond.

    The flip probability is a multiple of 2^-53, rounded up, so the loss is exact for what is drawn
    and never above epsilon_local.

    Fields:
        categories: how many there are, k, 2..1048576; clients hold whole numbers 0..k-1.

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
    )

    categories: Categories

    @model_validator(mode="after")
    def _fits(self) -> "HadamardBit":
        check_width(self.kind, self.dimension, self.categories)
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
    def _flip(self) -> float:
        return step_up(float(expit(-allowed(self.need_epsilon()))))

    @property
    def _gap(self) -> float:
        return 1.0 - 2.0 * self._flip

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Draw a column and a coin from one word per client."""
        size, upright = self.columns, 1.0 - self._flip

        def draw(own: Floats, part: ClientStream) -> NDArray[Any]:
            high, low = (word[:, 0] for word in part.words("report"))
            column: Ids = bits_beside(low, size, part)
            bit = coin(high, low, upright).view(np.uint8)
            bit ^= odd_overlap(codes(own), column)
            column += column
            column += bit
            return column

        return symbols(values, stream, self.wire.dtype, draw)

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the frequencies by transforming the sums of signs per column."""
        signs = (counts[:, 1::2] - counts[:, 0::2]).astype(np.float64)
        scale = self._gap * max(1, int(counts.sum()))
        return np.asarray(fwht(signs)[0, : self.categories] / scale)

    def event(self) -> LocalReport:
        """Return the report's exact loss, rounded up."""
        return stated(self.need_epsilon(), math.log1p(self._gap / self._flip))

    def randomizer(self) -> str:
        """Name the message's law: a uniform index into the category's K bits, one flipped."""
        return "rbin"

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error, the same for every category."""
        return np.full(len(values), self.worst_mse())

    def worst_mse(self) -> float:
        """Return the error of a client: a decoded report is 1 / gap or its negative k times."""
        return self.categories / self._gap**2 - 1.0

    def variance(self, mean: Floats, reports: int) -> Floats:
        """Return 1 / gap^2, the square of every decoded entry, less its mean's at these shares."""
        return np.asarray((self._gap**-2 - np.clip(mean, 0.0, 1.0)) / reports)

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probabilities of `2 column + bit`."""
        column = np.arange(self.columns, dtype=np.uint32)
        minus = odd_overlap(codes(values[:, 0])[:, None], column)
        law = np.empty((len(values), 2 * self.columns))
        law[:, 0::2] = (self._flip + self._gap * minus) / self.columns
        law[:, 1::2] = (1.0 - self._flip - self._gap * minus) / self.columns
        return [law]
