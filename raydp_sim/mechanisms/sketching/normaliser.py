"""The normaliser of Rand-Proj-Spatial: what makes its estimate unbiased.

E[T(S)^+ S] is a multiple of the identity, since column signs and shifts of H leave its law alone.
Hence beta = n d / E[sum_{lambda > 0} lambda / T(lambda)], of the eigenvalues of S alone: it knows
no data, and is drawn once for every (n, k, d, T).
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from raydp_sim.mechanisms.sketching.projection import ZERO, Floats, gram, sketches
from raydp_sim.mechanisms.sketching.similarity import check_sizes
from raydp_sim.random import Stream

# Draws: at least, at most, and the relative standard error that ends them in between.
LEAST, MOST, WANTED = 12, 4096, 3e-4


class Normaliser(NamedTuple):
    """beta and its standard error, 0 where it is exact."""

    value: float
    standard_error: float


@lru_cache(maxsize=1024)
def normaliser(clients: int, kept: int, dimension: int, slope: float) -> Normaliser:
    """Return beta of (n, k, d, T).

    d/k at s = 0 (Theorem 2.4.4 prints d^2/k, its proof d/k). At s = 1 it is n d / E[rank S], which
    is d/k only where all rows are independent.

    Example:
        >>> normaliser(2, 1, 4, 0.0)
        Normaliser(value=4.0, standard_error=0.0)
    """
    check_sizes(clients, kept, dimension)
    if slope == 0.0 or clients == 1:
        return Normaliser(dimension / kept, 0.0)
    draws: list[float] = []
    while True:
        positive = spectrum(clients, kept, dimension, len(draws))
        draws.append(float((positive / (1.0 + slope * (positive - 1.0))).sum()))
        if len(draws) >= LEAST:
            mean = math.fsum(draws) / len(draws)
            spread = float(np.std(draws, ddof=1)) / math.sqrt(len(draws)) / mean
            if spread <= WANTED or len(draws) >= MOST:
                value = clients * dimension / mean
                return Normaliser(value, value * spread)


@lru_cache(maxsize=512)
def spectrum(clients: int, kept: int, dimension: int, draw: int) -> Floats:
    """Return the positive eigenvalues of one drawn S, as many as its rank: the same for every T.

    Example:
        >>> len(spectrum(2, 1, 4, draw=0)) in (1, 2)
        True
    """
    # The draws are everyone's, whatever the seed of a run: beta is a number, not a result.
    stream = Stream(0, ("normaliser", clients, kept, dimension))
    high, _ = stream.at(draw).clients(np.arange(clients)).words("seed")
    values = scipy.linalg.eigvalsh(gram(*sketches(high[:, 0], kept, dimension)))
    return np.asarray(values[values > ZERO])
