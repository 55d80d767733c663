"""Softmax regression, in C."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.kernels import _compiled, plain
from raydp_sim.kernels.compiled.checked import need
from raydp_sim.kernels.plain.softmax import LANES, refuse_labels
from raydp_sim.kernels.types import Counts, Floats32, Softmax


def softmax(
    pool: NDArray[Any],
    numbers: Counts,
    scale: float,
    labels: Counts,
    weights: Floats32,
    theta: Floats32,
    out: Floats32,
) -> Softmax:
    """Write the gradient of each client's loss; see `plain.softmax`."""
    clients, samples = numbers.shape
    fits = pool.dtype in (np.uint8, np.float32) and pool.flags.c_contiguous
    if not fits or not out.flags.c_contiguous:
        return plain.softmax(pool, numbers, scale, labels, weights, theta, out)
    features, apart = int(np.prod(pool.shape[1:])), theta.ndim == 2
    classes, wide = out.shape[1] // (features + 1), -(-features // LANES) * LANES
    numbers = need("numbers", numbers, np.int64, (clients, samples))
    labels = need("labels", labels, np.int64, numbers.shape)
    refuse_labels(labels, classes)
    weights = need("weights", weights, np.float32, numbers.shape)
    size = classes * (features + 1)
    theta = need("theta", theta, np.float32, (clients, size) if apart else (size,))
    need("out", out, np.float32, (clients, size))
    room = np.empty((samples + classes) * wide + (classes + 1) * samples, np.float32)
    total, below = (np.empty(numbers.shape, np.float32) for _ in range(2))
    right = np.empty(numbers.shape, np.bool_)
    _compiled.softmax(
        pool,
        pool.itemsize,
        features,
        numbers,
        scale,
        labels,
        weights,
        theta,
        apart,
        samples,
        classes,
        room,
        out,
        total,
        below,
        right,
    )
    return Softmax(total, below, right)
