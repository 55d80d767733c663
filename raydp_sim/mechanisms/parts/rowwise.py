"""Sums over the columns of a row, the same whoever else is in the array."""

from raydp_sim import kernels
from raydp_sim.mechanisms.base import Floats


def dots(one: Floats, other: Floats) -> Floats:
    """Return the inner product of every row of `one` with the same row of `other`.

    The order of summation depends on the number of columns alone: neither on how many rows share
    the call nor on the number of threads, so a client's report is the same for any placement.
    A matrix product keeps neither, and `np.vecdot`, though faster, not the second: BLAS splits a
    long sum among threads. Up to 8,192 columns this is one einsum, beyond it a sum over blocks.

    Example:
        >>> import numpy as np
        >>> dots(np.array([[3.0, 4.0], [1.0, 2.0]]), np.array([[3.0, 4.0], [2.0, -1.0]])).tolist()
        [25.0, 0.0]
    """
    return kernels.dots(one, other)
