"""Rand-k-Spatial: coordinates that several clients sent count less than their sum.

Jhunjhunwala et al. 2021; 004, section 2.3. x_hat(j) = (beta/n) sum_i x_i(j) 1{i sent j} / T(M_j),
M_j the number of clients that sent coordinate j. The closed forms hold for fixed vectors.
"""

import math
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from raydp_sim.mechanisms.sketching.similarity import check_sizes

Floats = NDArray[np.float64]


def decoded(rows: NDArray[np.int64], sent: Floats, dimension: int, slope: float) -> Floats:
    """Return the estimate of the mean.

    Args:
        rows: (n, k) coordinates that clients sent, distinct in a row.
        sent: their values.
        dimension: d.
        slope: s of T.

    Example:
        >>> decoded(np.array([[0], [0]]), np.array([[1.0], [3.0]]), 2, slope=0.0).tolist()
        [4.0, 0.0]
    """
    clients, kept = rows.shape
    total = np.bincount(rows.reshape(-1), sent.reshape(-1), minlength=dimension)
    senders = np.bincount(rows.reshape(-1), minlength=dimension)
    scale = normaliser(clients, kept, dimension, slope) / clients
    return np.asarray(scale * total / (1.0 + slope * np.maximum(senders - 1, 0)))


@lru_cache(maxsize=1024)
def normaliser(clients: int, kept: int, dimension: int, slope: float) -> float:
    """Return beta, which makes the estimate unbiased: 1/beta = (k/d) E[1/T(1 + Bin(n-1, k/d))].

    Example:
        >>> round(normaliser(3, 2, 4, slope=1.0), 6)
        3.428571
    """
    check_sizes(clients, kept, dimension)
    share = kept / dimension
    return 1.0 / (share * _inverse_moment(clients - 1, share, slope, 1, 1))


def error(vectors: Floats, kept: int, slope: float) -> float:
    """Return the exact mean squared error for these vectors.

    (1/n^2) [(d/k - 1 + c1) sum |x_i|^2 - c2 sum_{i != l} <x_i, x_l>]; Eq. 2.3 hides the factor
    1/n^2 of the bracket inside c1 and c2. At s = 0 it is Rand-k's (1/n^2)(d/k - 1) sum |x_i|^2.

    Example:
        >>> round(error(np.eye(4)[:1].repeat(3, axis=0), 2, slope=0.0), 6)
        0.333333
    """
    clients, dimension = vectors.shape
    beta, share = normaliser(clients, kept, dimension, slope), kept / dimension
    squares = float(np.square(vectors).sum())
    cross = float(np.square(vectors.sum(axis=0)).sum()) - squares
    own = beta**2 * share * _inverse_moment(clients - 1, share, slope, 1, 2)
    both = beta**2 * share**2 * _inverse_moment(clients - 2, share, slope, 2, 2)
    return float(((own - 1.0) * squares + (both - 1.0) * cross) / clients**2)


def _inverse_moment(others: int, share: float, slope: float, first: int, power: int) -> float:
    """Return E[T(first + Bin(others, share))^-power]."""
    if others < 0:
        return 0.0
    count = np.arange(others + 1)
    masses = scipy.stats.binom(others, share).pmf(count)
    return math.fsum(masses * (1.0 + slope * (first + count - 1.0)) ** -power)
