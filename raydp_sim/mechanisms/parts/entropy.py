"""Entropies in bits: of one coin, of coins within a budget, and of finite laws."""

import math

import numpy as np

from raydp_sim.mechanisms.base import Floats

_STEPS = 200


def h2(probability: float) -> float:
    """Return the entropy of a coin.

    Example:
        >>> round(h2(0.25), 6), h2(0.0)
        (0.811278, 0.0)
    """
    p = min(probability, 1.0 - probability)
    if p <= 0.0:
        return 0.0
    return -(p * math.log2(p) + (1.0 - p) * math.log1p(-p) / math.log(2.0))


def rarer(bits: float) -> float:
    """Return the largest p <= 1/2 with h2(p) <= bits.

    Example:
        >>> round(rarer(0.5), 12)
        0.110027864438
    """
    if bits >= 1.0:
        return 0.5
    # In log p, so that tiny budgets keep their digits; below e^-700 lie no doubles.
    low, high = -700.0, math.log(0.5)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if h2(math.exp(middle)) <= bits:
            low = middle
        else:
            high = middle
    return math.exp(low)


def law_entropy(law: Floats) -> Floats:
    """Return the entropy of each row of probabilities.

    Example:
        >>> law_entropy(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])).tolist()
        [1.0, 0.0]
    """
    logs = np.log2(law, out=np.zeros_like(law), where=law > 0.0)
    return np.asarray(-(law * logs).sum(axis=1) + 0.0)
