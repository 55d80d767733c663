"""How long batches are, and when to stop exploring (000 Section 6.3, with its corrections)."""

import math

import numpy as np

from raydp_sim.tasks.bandits.checks import Floats, Ints, check_horizon


def growth(horizon: int) -> float:
    """Return q = (2T)^(1/log T), by which batches grow; between e and e^2.

    Example:
        >>> growth(10_000)
        2.9307474676754035
    """
    return float((2.0 * check_horizon(horizon)) ** (1.0 / math.log(horizon)))


def most_batches(horizon: int) -> int:
    """Return M = max(1, floor(log T) - 1), the number of batches where all of them fit.

    They need not: the sum of q^i may exceed T where log T is just above a whole number. A batch
    that does not fit into what is left of T is not begun.

    Example:
        >>> most_batches(10_000), most_batches(3)
        (8, 1)
    """
    return max(1, math.floor(math.log(check_horizon(horizon))) - 1)


def batch_slots(weights: Floats, size: float) -> Ints:
    """Return how many clients play each action: its weight times q^i, rounded up.

    Example:
        >>> batch_slots(np.array([0.5, 0.5]), 8.589)
        array([5, 5])
    """
    # A weight of 1/m may come out a little above, which must not cost one more client.
    return np.asarray(np.ceil(weights * size - 1e-12), dtype=np.int64)
