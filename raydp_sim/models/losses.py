"""Losses of logits, with their slopes; all in float32, row by row."""

from typing import NamedTuple

import numpy as np

from raydp_sim.datasets.labelled import Labels
from raydp_sim.models.base import Floats32


class Loss(NamedTuple):
    """Of each sample.

    Attributes:
        values: the losses.
        slopes: in the logits.
    """

    values: Floats32
    slopes: Floats32


def log_softmax(logits: Floats32) -> Floats32:
    """Return the logarithms of the class probabilities; none is ever log 0.

    Example:
        >>> float(log_softmax(np.array([0.0, 1e4], np.float32))[0])
        -10000.0
    """
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def cross_entropy(logits: Floats32, labels: Labels) -> Loss:
    """Return -log p(label) and its slope p - onehot(label).

    Example:
        >>> found = cross_entropy(np.zeros((1, 4), np.float32), np.array([2]))
        >>> found.slopes.tolist()
        [[0.25, 0.25, -0.75, 0.25]]
    """
    logs = log_softmax(logits)
    place = labels[..., None]
    values = -np.take_along_axis(logs, place, axis=-1)[..., 0]
    slopes = np.exp(logs)
    np.put_along_axis(slopes, place, np.take_along_axis(slopes, place, axis=-1) - 1.0, axis=-1)
    return Loss(values, slopes)
