"""Fixed-point sums: floats become integers once, so that adding them is exact in any order."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim import kernels
from raydp_sim.mechanisms.base import Counts, Floats

# Largest term 2^38 steps, so that 2^24 (16 million) terms of full size stay below 2^62.
_STEPS = 2.0**-38
_LIMIT = 2.0**62
# Doubles hold every whole number below this, so sums that stay below are exact in any order.
_WHOLE = 2.0**53
# Numbers handled at a time, so that each step finds them in the cache; and rows at least, since
# sums of long rows are long themselves.
_CACHED, _TOGETHER = 1 << 16, 64


def resolution(largest: float) -> float:
    """Return the step, a power of two, for terms of at most `largest` in size.

    Example:
        >>> resolution(1.0) == 2.0**-38
        True
    """
    return float(2.0 ** math.ceil(math.log2(largest))) * _STEPS


def quantise(values: Floats, step: float) -> Counts:
    """Round values to whole steps.

    Raises:
        OverflowError: if a value is not a number of steps that 62 bits can hold.

    Example:
        >>> quantise(np.array([0.3, -1.0]), 0.25).tolist()
        [1, -4]
    """
    scaled = values * (1.0 / step)
    np.rint(scaled, out=scaled)
    if not (np.abs(scaled) < _LIMIT).all():
        raise OverflowError(f"a value exceeds {_LIMIT * step:.3g}, the largest that can be summed")
    return scaled.astype(np.int64)


def total(terms: Counts) -> Counts:
    """Sum integer rows; refuse a sum that may not fit in 64 bits.

    Example:
        >>> total(np.array([[1, 2], [3, 4]])).tolist()
        [4, 6]
    """
    largest = max(abs(int(end)) for end in (terms.max(initial=0), terms.min(initial=0)))
    if largest * len(terms) >= 2**63:
        raise OverflowError(f"{len(terms)} terms of up to {largest} steps may exceed 64 bits")
    return np.asarray(terms.sum(axis=0))


def summed(values: NDArray[Any], step: float, factors: Floats | None = None) -> Counts:
    """Round values to whole steps and sum the rows: `total(quantise(values, step))`.

    Args:
        values: one row each, of doubles or single floats.
        step: to whose multiples they are rounded.
        factors: of each row, by which it is multiplied before, as doubles.

    Example:
        >>> summed(np.array([[0.3, 1.0], [0.3, -2.0]]), 0.25).tolist()
        [2, -4]
    """
    found = np.zeros(values.shape[1], np.int64)
    rows = max(_TOGETHER, _CACHED // max(1, values.shape[1]))
    for first in range(0, len(values), rows):
        part = values[first : first + rows]
        own = None if factors is None else factors[first : first + rows]
        sums = kernels.steps(part, 1.0 / step, _WHOLE / len(part), own)
        if sums is None:
            whole = part if own is None else part.astype(np.float64) * own[:, None]
            sums = total(quantise(whole, step))
        found = add(found, sums)
    return found


def add(one: Counts, other: Counts) -> Counts:
    """Add two sums; refuse to wrap around.

    Example:
        >>> add(np.array([2]), np.array([3])).tolist()
        [5]
    """
    result = one + other
    # A sum has wrapped exactly if its sign differs from the sign of both its terms.
    if (((one ^ result) & (other ^ result)) < 0).any():
        raise OverflowError("the sum of the reports exceeds 64 bits; release smaller batches")
    return np.asarray(result)
