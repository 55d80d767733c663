"""A teacher: a classifier of two classes trained by DP-SGD on one voter's samples."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.kernels.types import Floats32
from raydp_sim.models.base import Network
from raydp_sim.models.losses import cross_entropy
from raydp_sim.privacy.events import SubsampledGaussian
from raydp_sim.privacy.spent import spent
from raydp_sim.random import Stream

_TOGETHER = 512  # samples that go through the model in one call
_ADDED = 64  # gradients that are added up at a time: the bits of their sum depend on it


class Training(NamedTuple):
    """How a teacher is trained.

    Attributes:
        epochs: passes over its samples.
        batch: samples of a step, on average: each is in it by a coin of its own.
        step_size: of a step.
        clip: l2 norm to which the gradient of every sample is clipped.
        noise_multiplier: standard deviation of a step's noise over `clip`; 0: none.
    """

    epochs: float
    batch: int
    step_size: float
    clip: float
    noise_multiplier: float

    def steps(self, samples: int) -> int:
        """Return how many steps a teacher of so many samples takes."""
        return max(1, round(self.epochs * samples / min(self.batch, samples)))

    def rate(self, samples: int) -> float:
        """Return the probability that a sample is in a step."""
        return min(self.batch, samples) / samples


@lru_cache(maxsize=64)
def cost(training: Training, samples: int, delta: float) -> float:
    """Return epsilon of a trained teacher, whose neighbours add or remove one sample.

    Example:
        >>> round(cost(Training(5, 32, 0.1, 1.0, 12.0), 1024, 1e-4), 4)
        0.0791
    """
    if training.noise_multiplier == 0.0:
        return math.inf
    step = SubsampledGaussian(training.noise_multiplier, training.rate(samples))
    return spent([(step, training.steps(samples))], delta).epsilon


def trained(
    network: Network,
    training: Training,
    features: Floats32,
    labels: NDArray[np.int64],
    stream: Stream,
) -> Floats32:
    """Return the parameters after DP-SGD (Abadi et al. 2016), Poisson sampled.

    Args:
        network: of two classes.
        training: how.
        features: of the samples, one row each.
        labels: 0 or 1.
        stream: of the teacher's draws: the first parameters, the samples of steps, and noise.
    """
    theta, draw = network.init(stream.at("model")).astype(np.float64), stream.generator()
    rate, scale = training.rate(len(labels)), 1.0 / min(training.batch, len(labels))
    for _ in range(training.steps(len(labels))):
        taken = np.flatnonzero(draw.random(len(labels)) < rate)
        total = _clipped_sum(network, theta.astype(np.float32), features, labels, taken, training)
        if training.noise_multiplier > 0.0:
            sigma = training.noise_multiplier * training.clip
            total += draw.normal(scale=sigma, size=len(total))
        theta -= training.step_size * scale * total
    return theta.astype(np.float32)


def _clipped_sum(
    network: Network,
    theta: Floats32,
    features: Floats32,
    labels: NDArray[np.int64],
    taken: NDArray[np.int64],
    training: Training,
) -> NDArray[np.float64]:
    """Return the sum of the samples' gradients, each clipped."""
    total = np.zeros(len(theta))
    for first in range(0, len(taken), _ADDED):
        rows = taken[first : first + _ADDED]
        logits, tape = network.forward(theta, features[rows, None])
        slopes = cross_entropy(logits, labels[rows, None]).slopes
        each = network.backward(theta, tape, slopes).astype(np.float64)
        length = np.sqrt(np.square(each).sum(axis=1))
        total += np.minimum(1.0, training.clip / np.maximum(length, 1e-300)) @ each
    return total


def votes(network: Network, theta: Floats32, features: Floats32) -> NDArray[np.uint8]:
    """Return the class, 0 or 1, that a teacher gives every sample."""
    parts = [
        network.forward(theta, features[None, first : first + _TOGETHER])[0].argmax(axis=-1)[0]
        for first in range(0, len(features), _TOGETHER)
    ]
    return np.concatenate(parts).astype(np.uint8)
