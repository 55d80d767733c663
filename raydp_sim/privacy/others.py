"""Averages over how many others hide one client, charged upwards: the outer sum of two bounds."""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from raydp_sim.privacy.local import local_rdp
from raydp_sim.privacy.numerics import Array
from raydp_sim.privacy.windows import Buckets, below, central, window

# What a cut end may add, relative to the sum: e^-25.
_NEGLIGIBLE = -25.0
_EXACT = 1000

Excess = Callable[[int, float, Array], Array]
"""(messages that hide, epsilon0, orders) -> log(moment - 1), falling in the first."""


@lru_cache(maxsize=64)
def _known(key: tuple[object, ...]) -> dict[float, float]:
    return {}


def remembered(key: tuple[object, ...], orders: Array, compute: Callable[[Array], Array]) -> Array:
    """Return a curve at ascending orders and compute only those not asked for before.

    The bounds on one run ask for the same curves one after another.

    Example:
        >>> remembered(("doubled",), np.array([2.0, 3.0]), lambda orders: 2.0 * orders).tolist()
        [4.0, 6.0]
    """
    known = _known(key)
    new = np.array([order for order in orders if order not in known])
    if len(new):
        known.update(zip(new.tolist(), compute(new).tolist(), strict=True))
    return np.array([known[order] for order in orders])


def average_rdp(epsilon0: float, n: int, orders: Array, excess: Excess, buckets: int) -> Array:
    """Return log E_j[moment of j + 1 messages]/(alpha - 1) per order, j ~ Bin(n - 1, 1/E).

    A bucket of values of j is charged at its smallest; what is cut away is charged at the most that
    any epsilon0-DP pair can have, and only if that is e^-25 of the sum, else it is computed.

    Args:
        epsilon0: >= 0.
        n: messages >= 1.
        orders: real, > 1, ascending.
        excess: of one value of j.
        buckets: about how many around the mean, where there are more than 1000 values of j.
    """
    if epsilon0 == 0.0 or len(orders) == 0:
        return np.zeros(len(orders))
    trials, p = n - 1, math.exp(-epsilon0)
    low, high = window(trials, p)
    pieces = central(trials, p, None if high - low < _EXACT else buckets)
    sums = _average(epsilon0, pieces, orders, excess)
    caps = np.array([(a - 1.0) * local_rdp(epsilon0, a) for a in orders])
    rest = np.full(len(orders), pieces.log_below)
    cut = pieces.log_below + caps > sums + _NEGLIGIBLE
    if np.any(cut) and pieces.low[0] > 0:
        # At large orders few hiding others, though rare, carry the moment.
        first = int(pieces.low[0]) - 1
        more = below(trials, p, first, exact=first < _EXACT)
        sums[cut] = np.logaddexp(sums[cut], _average(epsilon0, more, orders[cut], excess))
        rest[cut] = more.log_below
    logs: Array = np.logaddexp(0.0, np.logaddexp(sums, rest + caps))
    return logs / (orders - 1.0)


def _average(epsilon0: float, pieces: Buckets, orders: Array, excess: Excess) -> Array:
    total = np.full(len(orders), -math.inf)
    masses = pieces.log_mass.copy()
    masses[-1] = np.logaddexp(masses[-1], pieces.log_above)  # further right it is smaller still
    for low, mass in zip(pieces.low, masses, strict=True):
        total = np.logaddexp(total, mass + excess(int(low) + 1, epsilon0, orders))
    return total
