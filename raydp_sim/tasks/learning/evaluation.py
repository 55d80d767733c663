"""How good a model is on samples."""

from typing import NamedTuple

import numpy as np

from raydp_sim.datasets.labelled import Examples
from raydp_sim.kernels.types import Floats32
from raydp_sim.models.base import Network
from raydp_sim.models.losses import cross_entropy

_TOGETHER = 512  # samples that go through the model in one call


class Score(NamedTuple):
    """What a model makes of samples.

    Attributes:
        loss: mean cross-entropy.
        accuracy: share of the samples whose class is found.
    """

    loss: float
    accuracy: float


def score(network: Network, theta: Floats32, samples: Examples) -> Score:
    """Return how good the model with these parameters is.

    Example:
        >>> from raydp_sim.models.linear import Linear
        >>> samples = Examples(np.eye(2, dtype=np.float32), np.array([0, 1]))
        >>> theta = np.array([1, 0, 0, 1, 0, 0], np.float32)
        >>> score(Linear().network((2,), 2), theta, samples).accuracy
        1.0
    """
    total, hits = 0.0, 0
    for first in range(0, len(samples.labels), _TOGETHER):
        features = samples.features[None, first : first + _TOGETHER]
        labels = samples.labels[None, first : first + _TOGETHER]
        logits, _ = network.forward(theta, features)
        total += float(cross_entropy(logits, labels).values.sum(dtype=np.float64))
        hits += int((logits.argmax(axis=-1) == labels).sum())
    count = max(1, len(samples.labels))
    return Score(total / count, hits / count)
