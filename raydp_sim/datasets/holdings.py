"""Who holds which labels, counted."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.datasets.labelled import Labelled

Counts = NDArray[np.int64]


class Spread(NamedTuple):
    """How a number differs from client to client."""

    least: int
    median: float
    most: int

    @classmethod
    def of(cls, numbers: NDArray[np.int64]) -> "Spread":
        """Return the spread of one number per client."""
        return cls(int(numbers.min()), float(np.median(numbers)), int(numbers.max()))


def label_counts(held: Labelled, classes: int) -> Counts:
    """Return how many samples of each class each client holds, shape (clients, classes).

    Example:
        >>> pool, labels = np.zeros((3, 1), np.uint8), np.array([0, 1, 1])
        >>> held = Labelled(pool, labels, np.array([[0, 2], [1, 1]]), np.array([2, 1]))
        >>> label_counts(held, 2).tolist()
        [[1, 1], [0, 1]]
    """
    clients, width = held.index.shape
    # Clients with fewer samples repeat their first; that is not counted.
    real = np.arange(width) < held.sizes[:, None]
    owner = np.broadcast_to(np.arange(clients)[:, None], real.shape)[real]
    place = owner * classes + held.classes[held.index[real]]
    return np.bincount(place, minlength=clients * classes).reshape(clients, classes)
