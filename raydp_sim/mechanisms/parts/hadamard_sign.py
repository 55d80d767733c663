"""A column of the Hadamard matrix and a noisy bit: what every reader of such a report computes."""

import math
from dataclasses import dataclass

import numpy as np

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Counts, Floats
from raydp_sim.mechanisms.parts.categories import codes, odd_overlap
from raydp_sim.mechanisms.parts.entropy import h2
from raydp_sim.mechanisms.parts.hadamard import fwht


@dataclass(frozen=True)
class HadamardSign:
    """A uniform column of the K x K matrix, and a bit that says whether the sign there is +1.

    The bit is 1 with probability `up` where the category's sign is +1 and `down` where it is -1.
    Messages are symbols `2 column + bit`, and the counts their histogram.

    Attributes:
        categories: k; K is the least power of two that is not below it.
        up, down: 1 >= up > down >= 0.

    Example:
        >>> round(HadamardSign(10, 0.75, 0.25).worst_mse(), 6)
        39.0
    """

    categories: int
    up: float
    down: float

    @property
    def columns(self) -> int:
        """Columns K of the matrix."""
        return 1 << (self.categories - 1).bit_length()

    @property
    def gap(self) -> float:
        """How much likelier a 1 is where the sign is +1."""
        return self.up - self.down

    @property
    def loss(self) -> float:
        """Exact loss of a report: the larger of what a 1 and what a 0 tells."""
        return max(_log_ratio(self.gap, self.down), _log_ratio(self.gap, 1.0 - self.up))

    @property
    def entropy(self) -> float:
        """Bits of randomness of the bit, for the category and column that take most of it."""
        return max(h2(self.up), h2(self.down))

    @property
    def span(self) -> float:
        """By how much an entry of a decoded report can vary."""
        both = self.up + self.down
        return 2.0 * max(both, 2.0 - both) / self.gap

    def decode(self, counts: Counts) -> Floats:
        """Estimate the frequencies; unbiased for any data, if clients drew their columns.

        Every report adds H[column, x] (2 (bit - down) / gap - 1) at each category x.
        """
        ones, zeros = counts[:, 1::2], counts[:, 0::2]
        both = self.up + self.down
        signs = (2.0 - both) * ones - both * zeros
        scale = self.gap * max(1, int(counts.sum()))
        return np.asarray(fwht(signs)[0, : self.categories] / scale)

    def grouped(self, counts: Counts) -> Floats:
        """Estimate the distribution that all values are drawn from, by the mean of each column.

        Girgis 2024, (7.30) and (7.31): unbiased for i.i.d. values and any sizes of the groups; for
        fixed data only `decode` is.

        Raises:
            InputError: for columns without a report.
        """
        ones = counts[0, 1::2]
        size = ones + counts[0, 0::2]
        if not size.all():
            raise InputError(
                f"{int((size == 0).sum())} of {self.columns} groups have no report; the estimate "
                "by groups needs one in each: take more clients, fewer categories, or `decode`, "
                "which does without"
            )
        share = (ones / size - self.down) / self.gap
        return np.asarray(fwht((2.0 * share - 1.0)[None])[0, : self.categories] / self.columns)

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact E||decoded report - indicator||^2."""
        square = np.where(values[:, 0] == 0.0, self._square(self.up), self._usual)
        return np.asarray(self.categories * square - 1.0)

    def worst_mse(self) -> float:
        """Return the largest of these errors."""
        return self.categories * max(self._square(self.up), self._usual) - 1.0

    def variance(self, mean: Floats, reports: int) -> Floats:
        """Return the square of every decoded entry, less its mean's, at these shares."""
        share = np.clip(mean, 0.0, 1.0)
        first = min(1.0, float(share[0]))
        square = first * self._square(self.up) + (1.0 - first) * self._usual
        return np.asarray((square - share) / reports)

    def grouped_variance(self, share: Floats, reports: float) -> float:
        """Return the exact variance of each entry of `grouped`, for values drawn from `share`.

        Groups are of equal size reports / K. A group's bit is 1 with probability s = down + gap
        p(B), and the entry is the mean of K such means, 2 / gap as large.
        """
        padded = np.zeros((1, self.columns))
        padded[0, : self.categories] = share
        s = self.down + self.gap * (fwht(padded)[0] + 1.0) / 2.0
        return float((s * (1.0 - s)).mean()) * 4.0 / (self.gap**2 * reports)

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probabilities of `2 column + bit`."""
        column = np.arange(self.columns, dtype=np.uint32)
        minus = odd_overlap(codes(values[:, 0])[:, None], column)
        law = np.empty((len(values), 2 * self.columns))
        law[:, 0::2] = ((1.0 - self.up) + self.gap * minus) / self.columns
        law[:, 1::2] = (self.up - self.gap * minus) / self.columns
        return [law]

    @property
    def _usual(self) -> float:
        # Of categories but the first, whose sign is +1 in half of the columns: up + down over 2.
        return self._square((self.up + self.down) / 2.0)

    def _square(self, one: float) -> float:
        """Return the expected square of a decoded entry if the bit is 1 with this probability."""
        both = self.up + self.down
        return (one * (2.0 - both) ** 2 + (1.0 - one) * both**2) / self.gap**2


def _log_ratio(gap: float, least: float) -> float:
    return math.log1p(gap / least) if least > 0.0 else math.inf
