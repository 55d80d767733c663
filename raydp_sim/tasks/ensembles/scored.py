"""How good labels of given teachers would be, by every way to release their majority."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Floats
from raydp_sim.mechanisms.ensembles.choice import Noise, chosen
from raydp_sim.mechanisms.ensembles.error import says_one
from raydp_sim.mechanisms.ensembles.votes import tally_law
from raydp_sim.mechanisms.ensembles.worst_cases import Ensemble
from raydp_sim.mechanisms.gnmax import GNMax

Tallies = NDArray[np.int64]
"""Questions by true answer and tally, (2, K + 1)."""


class Votes(NamedTuple):
    """What one vote costs."""

    epsilon: float
    delta: float


def accuracy(tallies: Tallies, law: Floats) -> float:
    """Return how often a label is right, over all questions and the noise.

    Args:
        tallies: of the questions.
        law: Pr[label 1 | tally].

    Example:
        >>> accuracy(np.array([[3, 0], [0, 1]]), np.array([0.25, 0.75]))
        0.75
    """
    right = math.fsum((tallies[1] * law).tolist()) + math.fsum((tallies[0] * (1 - law)).tolist())
    return right / int(tallies.sum())


def majority(voters: int) -> Floats:
    """Return the law of the majority without noise."""
    return (2 * np.arange(voters + 1) > voters).astype(np.float64)


def private(voters: int, vote: Votes, multiple: int, noise: Noise) -> Floats:
    """Return the law of DaRRM's label at (m epsilon, m Delta)."""
    delta = multiple * vote.delta
    return says_one(chosen(Ensemble(voters, vote.epsilon, vote.delta, multiple, delta), noise))


def noisy(voters: int, vote: Votes, multiple: int) -> Floats:
    """Return the law of GNMax's label at (m epsilon, m Delta), its noise as printed."""
    epsilon, delta = multiple * vote.epsilon, multiple * vote.delta
    return GNMax(clients=voters, epsilon=epsilon, delta=delta).law()


def spread(share: float, questions: int) -> float:
    """Return the standard deviation of the accuracy of so many questions drawn at random.

    Example:
        >>> spread(0.5, 25)
        0.1
    """
    return math.sqrt(share * (1.0 - share) / questions)


def independent(tallies: Tallies, law: Floats) -> float:
    """Return the accuracy if the same voters erred independently of the question and each other."""
    voters = tallies.shape[1] - 1
    ones = np.arange(voters + 1)
    right = (tallies[1] * ones + tallies[0] * (voters - ones)).sum()
    share = float(right) / (voters * int(tallies.sum()))
    return math.fsum((tally_law(np.full(voters, share)) * law).tolist())
