"""How often the private majority is wrong about the majority (Definition 3.3.4)."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raydp_sim.mechanisms.ensembles.gamma import check_gamma
from raydp_sim.mechanisms.ensembles.votes import tally_law

Floats = NDArray[np.float64]


def says_one(gamma: ArrayLike) -> Floats:
    """Return Pr[output 1 | tally] for tallies 0..K."""
    noise = check_gamma(gamma)
    half = len(noise) // 2
    return np.concatenate([0.5 * (1.0 - noise[:half]), 0.5 * (1.0 + noise[half:])])


def error(gamma: ArrayLike, probabilities: ArrayLike) -> Floats:
    """Return |Pr[A = 1] - Pr[majority = 1]| for every row of votes' probabilities (..., K).

    At p_i = 1/2 it is zero for every symmetric gamma.

    Example:
        >>> float(error([1.0, 0.0, 0.0, 1.0], [0.5, 0.5, 0.5]))
        0.0
    """
    noise = check_gamma(gamma)
    law = tally_law(probabilities)
    half = len(noise) // 2
    lean = law[..., half:] - law[..., :half][..., ::-1]
    return np.asarray(np.abs(0.5 * (lean * (1.0 - noise[half:])).sum(axis=-1)))


def accuracy(gamma: ArrayLike, votes_right: float, voters: int) -> float:
    """Return how often the release is right where every voter is, independently, so often right.

    Real voters err together, on hard questions; this overstates what many of them add.
    """
    law = tally_law(np.full(voters, votes_right))
    return math.fsum(law * says_one(gamma))
