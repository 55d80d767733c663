"""Losses of logits, with their slopes; all in float32, row by row."""

from typing import NamedTuple

import numpy as np

from raydp_sim.datasets.labelled import Labels
from raydp_sim.kernels.types import Floats32


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
    # Along a few classes NumPy looks for the largest ten times longer than across them.
    columns = np.ascontiguousarray(logits.reshape(-1, logits.shape[-1]).T)
    shifted: Floats32 = logits - columns.max(axis=0).reshape(*logits.shape[:-1], 1)
    shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted


def cross_entropy(logits: Floats32, labels: Labels) -> Loss:
    """Return -log p(label) and its slope p - onehot(label).

    Example:
        >>> found = cross_entropy(np.zeros((1, 4), np.float32), np.array([2]))
        >>> found.slopes.tolist()
        [[0.25, 0.25, -0.75, 0.25]]
    """
    logs = log_softmax(np.ascontiguousarray(logits))
    # Numbers of the labels' places among all logits: an axis at a time takes several times longer.
    place = np.arange(0, logs.size, logs.shape[-1]) + labels.reshape(-1)
    values = -logs.reshape(-1)[place]
    slopes = np.exp(logs, out=logs)
    slopes.reshape(-1)[place] -= 1.0
    return Loss(values.reshape(labels.shape), slopes)


class Divergence(NamedTuple):
    """Of each sample.

    Attributes:
        values: KL(p || q).
        p_slopes, q_slopes: in the logits of p and of q.
    """

    values: Floats32
    p_slopes: Floats32
    q_slopes: Floats32


def divergence(p_logits: Floats32, q_logits: Floats32) -> Divergence:
    """Return KL(p || q) of two softmax distributions, by which one model is distilled into another.

    The slopes are p (log p - log q - KL) and q - p. The reverse direction is the same with the
    arguments swapped.

    Example:
        >>> found = divergence(np.log([[3.0, 1.0]]), np.zeros((1, 2)))
        >>> round(float(found.values[0]), 6), found.q_slopes.tolist()
        (0.130812, [[-0.25, 0.25]])
    """
    p_logs, q_logs = log_softmax(p_logits), log_softmax(q_logits)
    p, ratios = np.exp(p_logs), p_logs - q_logs
    values = (p * ratios).sum(axis=-1)
    return Divergence(values, p * (ratios - values[..., None]), np.exp(q_logs) - p)
