"""The best noise function: a linear program over its values, one row per worst case (section 3.6).

Of the rows few bind. The program is solved with some, the solution is held against all, what it
breaks is added, and so on; what is returned has been held against every row.
"""

import math
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.ensembles.gamma import check_gamma, mirrored
from raydp_sim.mechanisms.ensembles.worst_cases import Ensemble

Floats = NDArray[np.float64]
Method = Literal["full", "monotone"]
# Largest f over the limit that is put down to rounding.
TOLERANCE = 1e-12
_ADDED = 64


def optimal(ensemble: Ensemble, method: Method = "full", mean: float = 0.75) -> Floats:
    """Return the private gamma of least expected error.

    The objective is 1/2 sum w_l gamma(l), w_l = Bin(K, mean)(l) - Bin(K, mean)(K - l): for
    independent p_i with that mean the expected tally law is binomial, whatever their law (Eq. B.61
    without sampling; the text's prior on [0, 1] makes every weight zero).

    Args:
        ensemble: votes, and what shall be guaranteed.
        method: `full`, all symmetric functions; `monotone`, those that grow away from a tie, with
            (K+1)(K+2)/2 rows.
        mean: of the votes' probabilities, on the side of the truth: 0.75 for U[0.5, 1].

    Example:
        >>> gamma = optimal(Ensemble(11, 0.1, 0.0, 3, 0.0))
        >>> round(gain(gamma), 8)
        0.42436647
    """
    rising = {"full": False, "monotone": True}.get(method)
    if rising is None:
        raise bad_field("method", method, "choose full or monotone")
    weights = objective_weights(ensemble.voters, mean)
    rows = ensemble.rising_rows if rising else ensemble.rows
    half = len(weights)
    order = np.eye(half)[:-1] - np.eye(half)[1:] if rising else np.zeros((0, half))
    used = np.zeros(len(rows), dtype=bool)
    upper = np.ones(half)
    while True:
        excess = rows @ upper - ensemble.limit
        broken = np.flatnonzero((excess > TOLERANCE) & ~used)
        if len(broken) == 0:
            break
        used[broken[np.argsort(-excess[broken])[:_ADDED]]] = True
        upper = solved(weights, rows[used], ensemble.limit, order)
    return verified(ensemble, mirrored(upper), rising=rising)


def solved(weights: Floats, rows: Floats, limit: float, order: Floats) -> Floats:
    """Return the upper half of the best function that keeps some rows and the given order."""
    # Rows differ by orders of magnitude in large ensembles; the solver's tolerance is absolute.
    scale = np.abs(rows).max(axis=1)
    solution = scipy.optimize.linprog(
        -weights / np.abs(weights).max(),
        A_ub=np.concatenate([rows / scale[:, None], order]),
        b_ub=np.concatenate([limit / scale, np.zeros(len(order))]),
        bounds=(0.0, 1.0),
        method="highs",
    )
    if solution.status != 0 or solution.x is None:
        raise RuntimeError(f"the linear program was not solved: {solution.message}")
    return np.clip(solution.x, 0.0, 1.0)


def objective_weights(voters: int, mean: float) -> Floats:
    """Return w_l for l = (K+1)/2..K."""
    if not 0.5 < mean <= 1.0:
        raise bad_field("mean", mean, "it must lie in (0.5, 1]")
    law = scipy.stats.binom(voters, mean).pmf(np.arange(voters + 1))
    half = (voters + 1) // 2
    return np.asarray(law[half:] - law[:half][::-1])


def gain(gamma: Floats, mean: float = 0.75) -> float:
    """Return 1/2 sum w_l gamma(l): how much likelier than a coin the release is to be right."""
    half = len(gamma) // 2
    return 0.5 * math.fsum(objective_weights(len(gamma) - 1, mean) * gamma[half:])


def excess(ensemble: Ensemble, gamma: Floats, rising: bool = False) -> float:
    """Return the largest f minus its limit over all worst cases; private if it is not positive."""
    rows = ensemble.rising_rows if rising else ensemble.rows
    return float((rows @ gamma[len(gamma) // 2 :]).max() - ensemble.limit)


def verified(ensemble: Ensemble, gamma: Floats, rising: bool = False) -> Floats:
    """Return gamma, made smaller by what it breaks the worst case with.

    f is linear in gamma, so gamma limit/max f keeps every row. A noise function that grows away
    from a tie needs fewer rows; whether it grows is looked at, not believed.
    """
    check_gamma(gamma)
    upper = gamma[len(gamma) // 2 :]
    if rising and (np.diff(upper) < 0.0).any():
        gamma = mirrored(np.maximum.accumulate(upper))
    over = excess(ensemble, gamma, rising)
    if over > 0.0:
        gamma = gamma * (ensemble.limit / (ensemble.limit + over))
        gamma = np.maximum(gamma * (1.0 - 4.0 * np.finfo(float).eps), 0.0)
    return check_gamma(gamma)
