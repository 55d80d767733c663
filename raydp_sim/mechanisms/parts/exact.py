"""Sums of real numbers that are the same in any order: integers in two parts."""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_FRACTION_BITS = 36
# A number of so many units is kept in the first part alone; larger ones are split.
_LARGE = 2.0 ** (_FRACTION_BITS + 1)
_SPLIT = 2.0**31
# Beyond 2^30 radii a number counts as that: it is far outside of anything that is estimated.
_MOST = 2.0 ** (_FRACTION_BITS + 30)
_BLOCK = 1 << 16


def unit(radius: float) -> float:
    """Return the unit in which numbers about as large as the radius are summed: 2^-36 of it.

    Example:
        >>> unit(1.0) == 2.0**-36
        True
    """
    return float(2.0 ** (math.ceil(math.log2(radius)) - _FRACTION_BITS))


def exact_sum(values: NDArray[np.floating], step: float) -> Counts:
    """Return the sum of the rows as two rows of integers, `low + high 2^31` in units of `step`.

    Numbers are rounded to the unit one by one. Up to 2^27 rows cannot overflow.

    Example:
        >>> exact_sum(np.array([[0.5], [1e6]]), 2.0**-36).shape
        (2, 1)
    """
    total = np.zeros((2, values.shape[1]), np.int64)
    rows = max(1, _BLOCK // values.shape[1])
    for start in range(0, len(values), rows):
        with np.errstate(over="ignore"):  # beyond the largest it is clipped below
            block = values[start : start + rows] * (1.0 / step)
        np.rint(block, out=block)
        large = np.abs(block) > _LARGE
        if large.any():
            high = np.floor(np.clip(block, -_MOST, _MOST) / _SPLIT) * large
            block = np.where(large, np.clip(block, -_MOST, _MOST) - high * _SPLIT, block)
            total[1] += high.astype(np.int64).sum(axis=0)
        total[0] += block.astype(np.int64).sum(axis=0)
    return total


def exact_value(counts: Counts, step: float, number: int) -> Floats:
    """Return the mean that a sum of `exact_sum` stands for.

    Example:
        >>> exact_value(exact_sum(np.array([[0.5], [1.0]]), 2.0**-36), 2.0**-36, 2).tolist()
        [0.75]
    """
    scale = (1.0 / step) * max(1, number)
    low, high = counts
    if np.abs(high).max(initial=0) < 1 << 31:
        return np.asarray((low + (high << 31)) / scale, dtype=np.float64)
    return np.asarray((low + high * _SPLIT) / scale, dtype=np.float64)
