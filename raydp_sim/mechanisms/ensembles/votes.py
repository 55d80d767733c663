"""How many of K voters say 1: the law of their tally."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raydp_sim.errors import bad_field

Floats = NDArray[np.float64]


def tally_law(probabilities: ArrayLike) -> Floats:
    """Return Pr[L = l], l = 0..K, of independent votes: the Poisson binomial law.

    Args:
        probabilities: (..., K), of every vote's being 1.

    Example:
        >>> tally_law([0.5, 1.0]).tolist()
        [0.0, 0.5, 0.5]
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim == 0 or not ((p >= 0.0) & (p <= 1.0)).all():
        raise bad_field("probabilities", probabilities, "give numbers in [0, 1]")
    voters = p.shape[-1]
    law = np.zeros((*p.shape[:-1], voters + 1))
    law[..., 0] = 1.0
    for i in range(voters):
        yes = p[..., i : i + 1]
        # The right-hand side is whole before it is written: law[l] = law[l] (1 - p) + law[l-1] p.
        law[..., 1 : i + 2] = law[..., 1 : i + 2] * (1.0 - yes) + law[..., : i + 1] * yes
        law[..., :1] *= 1.0 - yes
    return law


def check_voters(voters: int) -> int:
    """Return an odd number of voters, so that there are no ties."""
    if isinstance(voters, bool) or int(voters) != voters or voters < 1 or voters % 2 == 0:
        raise bad_field("voters", voters, "it must be odd, so that there are no ties")
    return int(voters)
