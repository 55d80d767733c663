"""How good a model is on samples."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.datasets.labelled import Examples
from raydp_sim.models.base import Floats32, Network
from raydp_sim.models.losses import cross_entropy

_TOGETHER = 512  # samples that go through the model in one call


class Score(NamedTuple):
    """What a model makes of samples.

    Attributes:
        loss: mean cross-entropy.
        confusion: samples by class (row) and by what they were taken for (column).
    """

    loss: float
    confusion: NDArray[np.int64]

    @property
    def accuracy(self) -> float:
        """Share of the samples whose class is found."""
        return float(np.trace(self.confusion) / max(1, self.confusion.sum()))


def score(network: Network, theta: Floats32, samples: Examples, classes: int) -> Score:
    """Return how good the model with these parameters is.

    Example:
        >>> from raydp_sim.models.linear import Linear
        >>> samples = Examples(np.eye(2, dtype=np.float32), np.array([0, 1]))
        >>> theta = np.array([1, 0, 0, 1, 0, 0], np.float32)
        >>> score(Linear().network((2,), 2), theta, samples, 2).accuracy
        1.0
    """
    total, confusion = 0.0, np.zeros((classes, classes), np.int64)
    for first in range(0, len(samples.labels), _TOGETHER):
        features = samples.features[None, first : first + _TOGETHER]
        labels = samples.labels[None, first : first + _TOGETHER]
        logits, _ = network.forward(theta, features)
        total += float(cross_entropy(logits, labels).values.sum(dtype=np.float64))
        pairs = labels * classes + logits.argmax(axis=-1)
        confusion += np.bincount(pairs.ravel(), minlength=classes**2).reshape(classes, classes)
    return Score(total / max(1, len(samples.labels)), confusion)
