"""The floors of `raydp-sim bench training`: the same gradients in plain loops, none of our actors.

A round gathers the samples of a cohort, computes its gradients tile by tile and takes a step. The
linear kernel is written here in NumPy, one small product per client, in tiles of 16, the fastest
of those tried; `-compiled` uses raydp_sim's instead. The CNN's is raydp_sim's own, for no faster
one is known. `private` also draws a coordinate of each gradient, clips it, flips its sign as R_inf
does, shuffles and counts. Two such processes play a cohort, half of it each. Data are made before
the clock starts; nothing is checked, placed or made durable.

With no argument it serves the benchmark: each line `case clients rounds` on standard input is
answered by one line of JSON; clients are those of this process.
"""

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402  # BLAS reads its number of threads when it is loaded

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests import floors  # noqa: E402  # as a script it has only its own folder

SAMPLES, POINTS, CLASSES, EPSILON, RADIUS = 60_000, 60, 10, 2.0, 0.01
Round = Callable[[], np.ndarray]


def _pool(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.random((SAMPLES, 28, 28), np.float32), rng.integers(0, CLASSES, SAMPLES)


def _reported(rng: np.random.Generator, gradients: np.ndarray) -> np.ndarray:
    """One coordinate of each gradient, clipped to [-C, C] and its sign randomized, as a symbol."""
    count, size = gradients.shape
    at = rng.integers(0, size, count)
    value = np.clip(gradients[np.arange(count), at], -RADIUS, RADIUS) / RADIUS
    gap = math.tanh(EPSILON / 2.0)
    return 2 * at + (rng.random(count) < 0.5 + 0.5 * gap * value)


def _decoded(rng: np.random.Generator, symbols: list[np.ndarray], size: int) -> np.ndarray:
    sent = np.concatenate(symbols)
    rng.shuffle(sent)
    counts = np.bincount(sent, minlength=2 * size)
    scale = size * RADIUS / (math.tanh(EPSILON / 2.0) * len(sent))
    return (counts[1::2] - counts[0::2]) * scale


def _linear(clients: int, private: bool, compiled: bool = False) -> Round:
    """Softmax regression, 60 samples a client: the gradient of each client's mean loss."""
    rng = np.random.default_rng(1)
    features, labels = _pool(rng)
    features = features.reshape(SAMPLES, -1)
    theta, tile, size = np.zeros((CLASSES, 785), np.float32), 16, CLASSES * 785
    gathered = np.empty((tile, POINTS, 784), np.float32)
    gradients = np.empty((tile, CLASSES, 785), np.float32)

    def in_numpy(index: np.ndarray) -> np.ndarray:
        weight, bias = theta[:, :-1].copy(), theta[:, -1].copy()
        x, y, found = gathered[: len(index)], labels[index], gradients[: len(index)]
        features.take(index, axis=0, out=x, mode="clip")
        z = np.matmul(x, weight.T)
        z += bias
        z -= z.max(axis=-1, keepdims=True)
        np.exp(z, out=z)
        z /= z.sum(axis=-1, keepdims=True)
        np.put_along_axis(z, y[..., None], np.take_along_axis(z, y[..., None], -1) - 1, -1)
        z /= POINTS
        np.matmul(z.swapaxes(1, 2), x, out=found[:, :, :-1])
        np.sum(z, axis=1, out=found[:, :, -1])
        return found.reshape(len(index), size)

    def in_c(index: np.ndarray) -> np.ndarray:
        from raydp_sim import kernels

        # Weights and biases behind one another, which is all the same to what is done with them.
        flat, weights = theta.reshape(-1), np.full(index.shape, 1.0 / POINTS, np.float32)
        found = gradients[: len(index)].reshape(len(index), size)
        kernels.softmax(features, index, 1.0, labels[index], weights, flat, found)
        return found

    kernel = in_c if compiled else in_numpy

    def play() -> np.ndarray:
        nonlocal theta
        symbols, total = [], np.zeros(size)
        for first in range(0, clients, tile):
            flat = kernel(rng.integers(0, SAMPLES, (min(tile, clients - first), POINTS)))
            if private:
                symbols.append(_reported(rng, flat))
            else:
                total += flat.sum(axis=0, dtype=np.float64)
        mean = _decoded(rng, symbols, size) if private else total / clients
        theta = theta - np.float32(0.1) * mean.reshape(theta.shape).astype(np.float32)
        return mean

    return play


def linear(clients: int) -> Round:
    """Plain averages."""
    return _linear(clients, False)


def linear_private(clients: int) -> Round:
    """With clipping, R_inf and a shuffle."""
    return _linear(clients, True)


def linear_compiled(clients: int) -> Round:
    """Plain averages, by the kernel that the actors use."""
    return _linear(clients, False, compiled=True)


def linear_private_compiled(clients: int) -> Round:
    """With clipping, R_inf and a shuffle, by the kernel that the actors use."""
    return _linear(clients, True, compiled=True)


def cnn(clients: int) -> Round:
    """The CNN, the gradient of one sample of each client, with clipping, R_inf and a shuffle."""
    from raydp_sim.models.base import TILE
    from raydp_sim.models.cnn import Cnn
    from raydp_sim.models.losses import cross_entropy
    from raydp_sim.random import Stream

    rng = np.random.default_rng(2)
    features, labels = _pool(rng)
    network = Cnn().network((28, 28), CLASSES)
    theta = network.init(Stream(1))

    def play() -> np.ndarray:
        nonlocal theta
        chosen, symbols = rng.permutation(SAMPLES)[:clients], []
        for first in range(0, clients, TILE):
            index = chosen[first : first + TILE, None]
            logits, tape = network.forward(theta, features[index])
            slopes = cross_entropy(logits, labels[index]).slopes
            symbols.append(_reported(rng, network.backward(theta, tape, slopes)))
        mean = _decoded(rng, symbols, network.size)
        theta = theta - np.float32(0.1) * mean.astype(np.float32)
        return mean

    return play


CASES = {
    "linear": linear,
    "linear-private": linear_private,
    "linear-compiled": linear_compiled,
    "linear-private-compiled": linear_private_compiled,
    "cnn": cnn,
}


if __name__ == "__main__":
    floors.serve(CASES)
