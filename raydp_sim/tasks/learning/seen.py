"""What clients see while they train, for the simulation's analyst: exact sums, in any order."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Counts

UNIT = 2.0**-16
"""In which losses and norms are summed, so that sums are exact integers."""
_MOST = 2.0**26  # where numbers are cut off in sums: with it 2^20 of them cannot overflow


class Seen(NamedTuple):
    """Sums over the clients of a round.

    Attributes:
        losses: how many losses were taken, each before the round's first step.
        loss: their sum, in units, each cut off and rounded by itself.
        samples: that they are of.
        hits: of these, how many were classified rightly.
        gradients: how many.
        norm: sum of their l2 norms before any clipping, in units.

    Example:
        >>> counts = Seen(losses=2, loss=exact(np.array([0.5, 1.5]))).counts()
        >>> Seen.of(counts + counts).mean_loss
        1.0
    """

    losses: int = 0
    loss: int = 0
    samples: int = 0
    hits: int = 0
    gradients: int = 0
    norm: int = 0

    def counts(self, more: int = 0) -> Counts:
        """Return them as an array that adds up, with so many places more for a task's own."""
        return np.array([*self, *(0 for _ in range(more))], np.int64)

    @classmethod
    def of(cls, counts: Counts) -> "Seen":
        """Return the sums that an array begins with."""
        return cls(*(int(each) for each in counts[: len(cls._fields)]))

    @classmethod
    def split(cls, counts: Counts) -> tuple[Counts, Counts]:
        """Return views of the sums that an array begins with, and of a task's own behind them."""
        cut = len(cls._fields)
        return counts[:cut], counts[cut:]

    @property
    def mean_loss(self) -> float:
        """The mean of the losses."""
        return self.loss * UNIT / max(1, self.losses)

    @property
    def accuracy(self) -> float:
        """The share of the samples that were classified rightly."""
        return self.hits / max(1, self.samples)

    @property
    def mean_norm(self) -> float:
        """The mean of the gradients' norms."""
        return self.norm * UNIT / max(1, self.gradients)


def exact(numbers: NDArray[Any]) -> int:
    """Return the sum of numbers >= 0 in units, each cut off and rounded by itself."""
    kept = np.minimum(numbers.astype(np.float64), _MOST)
    return int(np.rint(kept / UNIT).astype(np.int64).sum())
