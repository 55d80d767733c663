"""Sparsifiers that look at the vector: what is large is kept (004, section 2.5, baselines)."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def wangni_probabilities(values: Floats, kept: int) -> Floats:
    """Return with which probability each coordinate is sent, k in expectation.

    Wangni et al. 2018, Algorithm 3: proportional to size, what would exceed 1 is sent surely, and
    the others share what that leaves. A vector of fewer than k non-zeros is sent whole.

    Example:
        >>> wangni_probabilities(np.array([[8.0, 1.0, 1.0, 0.0]]), 2).tolist()
        [[1.0, 0.5, 0.5, 0.0]]
    """
    size = np.abs(values)
    total = size.sum(axis=1, keepdims=True)
    chance = np.minimum(kept * size / np.where(total > 0.0, total, 1.0), 1.0)
    # Every pass makes some client's coordinate sure, so that there are at most k of them.
    for _ in range(kept + 1):
        free = (chance > 0.0) & (chance < 1.0)
        left = kept - (chance >= 1.0).sum(axis=1, keepdims=True)
        sum_free = np.where(free, chance, 0.0).sum(axis=1, keepdims=True)
        grow = left / np.where(sum_free > 0.0, sum_free, np.inf)
        if not (grow > 1.0 + 1e-12).any():
            break
        chance = np.where(free & (grow > 1.0), np.minimum(chance * grow, 1.0), chance)
    return chance


def wangni_error(values: Floats, kept: int) -> Floats:
    """Return each client's exact error, sum_j (1/p_j - 1) x_j^2."""
    chance = wangni_probabilities(values, kept)
    sent = chance > 0.0
    inverse = 1.0 / np.where(sent, chance, 1.0)
    return np.asarray(((inverse - 1.0) * np.square(values)).sum(axis=1))


def largest(values: Floats, number: int) -> NDArray[np.int64]:
    """Return the indices of each row's largest entries by size, the first of equals."""
    return np.argsort(-np.abs(values), axis=1, kind="stable")[:, :number]


def induced_error(values: Floats, kept: int) -> Floats:
    """Return each client's exact error of the induced compressor: top-h, then Rand-h of the rest.

    h = k/2 rounded down; (d/h - 1) |rest|^2. At k = 1 it is Rand-k.

    Example:
        >>> induced_error(np.array([[3.0, 1.0, 0.0, 0.0]]), 2).tolist()
        [3.0]
    """
    half = kept // 2
    dimension = values.shape[1]
    if half == 0:
        return np.asarray((dimension - 1.0) * np.square(values).sum(axis=1))
    rest = values.copy()
    np.put_along_axis(rest, largest(values, half), 0.0, axis=1)
    return np.asarray((dimension / half - 1.0) * np.square(rest).sum(axis=1))
