"""The range search of user-level mean estimation: which bin is each coordinate in?"""

from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages
from raydp_sim.mechanisms.parts.categories import odd_overlap
from raydp_sim.mechanisms.parts.hadamard import fwht
from raydp_sim.mechanisms.wires.bit_reports import BitReports, bit_reports, stated_loss
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream

# Beyond this a histogram of the bins would not fit in memory.
MOST_BINS = 1 << 24
RangeSplit = Literal["clients", "budget"]


class UserRange(Mechanism):
    """Send noisy signs of the Hadamard code words of a row of bin numbers.

    Algorithm "Range" of Girgis 2023 (dissertation), section 3.7, and its remark for vectors. A bin
    t of k has the code word H[., t] of length K, the next power of two, H the Sylvester matrix; a
    message is a uniform index j of it and the sign H[j, t], flipped with probability 1 / (1 + e^v).
    That is R^Bin on the code word's bits, so the loss is exactly v (the seed's Lemma 3.7.1 prints
    e^(v/2)). The estimate is the frequency of every bin of every coordinate, and it is unbiased.

    With one coordinate this is the one-bit Hadamard mechanism on bins. With more, "clients" lets
    each client draw, by a coin of its own, the one coordinate that it reports with the whole
    guarantee. The seed's user i reports coordinate i mod d; the coin serves each coordinate as
    often, but it also keeps every client in one crowd of n behind a shuffler, where i mod d would
    make d crowds of n / d. "budget" sends one message per coordinate, each with a share of it.

    Fields:
        dimension: coordinates d; a row holds one bin number for each.
        bins: bins k of one coordinate.
        split: "clients" or "budget", what the coordinates share.

    Example:
        >>> UserRange(epsilon_local=1.0, dimension=1, bins=20).bits
        6
    """

    kind: ClassVar[str] = "user-range"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Girgis 2023, section 3.7, Algorithm 3.7.2 and Remark 3.7.4"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 1, "bins": 20},
        {"epsilon_local": 3.0, "dimension": 1, "bins": 8},
        {"epsilon_local": 1.5, "dimension": 3, "bins": 5},
        {"epsilon_local": 3.0, "dimension": 3, "bins": 6, "split": "budget"},
    )

    bins: Annotated[int, Field(ge=1, le=MOST_BINS)]
    split: RangeSplit = "clients"

    @property
    def domain(self) -> Domain:
        """One bin number per coordinate."""
        d = self.need_dimension()
        return Domain("category", 1.0, d * self.bins, questions=d)

    @property
    def word(self) -> int:
        """Length K of a code word."""
        return 1 << (self.bins - 1).bit_length()

    @cached_property
    def wire(self) -> BitReports:
        """One index and sign out of all code words, or out of each."""
        d = self.need_dimension()
        sampled = 1 if self.split == "clients" else d
        return bit_reports(self.need_epsilon(), d * self.word, sampled, "pad", "centred", "tight")

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Sample entries of the code words and flip them."""
        bins, length = values.astype(np.int64), self.word

        def bits_at(rows: slice, entry: Counts) -> Floats:
            at = np.take_along_axis(bins[rows], entry // length, axis=1)
            return _positive(entry % length, at)

        return Messages(self.wire.randomize(len(values), stream, bits_at))

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the frequency of every bin, coordinate by coordinate."""
        signs = 2.0 * self.wire.estimates(counts)[0] - 1.0
        words = fwht(signs.reshape(-1, self.word)) / self.word
        return np.ascontiguousarray(words[:, : self.bins]).reshape(-1)

    def event(self) -> LocalReport:
        """Return the report's exact loss, rounded up."""
        return LocalReport(stated_loss(self.wire, self.need_epsilon()))

    def losses(self) -> tuple[float, ...]:
        """Return the loss of each message."""
        return self.wire.message_losses()

    def randomizer(self) -> str:
        """Name the message's law: a uniform index and a flipped bit."""
        return "rbin"

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error, the same for all values.

        A bin's decoded frequency is 0, or +-scale/gap where its coordinate was sampled, which has
        probability 1/scale; so its mean square is scale/gap^2, and it means to be 0 or 1.
        """
        d, gap = self.need_dimension(), float(self.wire.gaps[0])
        scale = d / self.wire.blocks.count
        return np.full(len(values), d * (self.bins * scale / gap**2 - 1.0))

    def worst_mse(self) -> float:
        """Return the error, the same for all values."""
        return float(self.mse(np.zeros((1, self.need_dimension())))[0])

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probabilities of `2 index + sign` for each message."""
        bins = values.astype(np.int64)[:, :, None]
        return self.wire.laws([_positive(np.arange(self.word), bins).reshape(len(values), -1)])


def _positive(index: Counts, bins: Counts) -> Floats:
    """Return 1 where the Sylvester matrix is +1 at (index, bin), else 0."""
    return np.asarray(1.0 - odd_overlap(index.astype(np.uint32), bins.astype(np.uint32)))
