"""What a client does with its own samples: train on most, choose by some, test with the last."""

from typing import NamedTuple

import numpy as np

from raydp_sim.datasets.partitions.base import Numbers

ROUNDING = 1e-9
"""What a fraction of a count may be off by, in doubles."""


class Parts(NamedTuple):
    """How many samples clients use for what, in the order of their hands.

    Those for the test come last, so that clients who choose by some and train on as many fewer
    test with the same samples.
    """

    train: Numbers
    validation: Numbers
    test: Numbers


def parts_of(sizes: Numbers, validation: float, test: float) -> Parts:
    """Divide the samples of clients.

    Args:
        sizes: samples that each client has.
        validation: a fraction of them if below 1, else their number.
        test: as that.

    Example:
        >>> [part.tolist() for part in parts_of(np.array([10, 40]), 0.1, 5)]
        [[4, 31], [1, 4], [5, 5]]
    """
    choose, tested = _kept_back(validation, sizes), _kept_back(test, sizes)
    return Parts(sizes - choose - tested, choose, tested)


def _kept_back(wanted: float, sizes: Numbers) -> Numbers:
    if wanted == 0.0 or wanted >= 1.0:
        return np.full(len(sizes), int(wanted))
    return np.maximum(1, (wanted * sizes + ROUNDING).astype(np.int64))


def laid_out(samples: Numbers, first: Numbers, sizes: Numbers, width: int) -> Numbers:
    """Return rows of samples, each from its own first on; a short row repeats that."""
    column = np.arange(width)
    return samples[first[:, None] + np.where(column < sizes[:, None], column, 0)]
