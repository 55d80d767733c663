"""How willing the ensemble is to tell its majority, by the tally of votes (Algorithm 1 of 004).

DaRRM says the majority with probability gamma(L) and a fair bit otherwise. gamma is symmetric, one
number per tally 0..K; the tally itself is never released.
"""

import math

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms.ensembles.votes import check_voters

Floats = NDArray[np.float64]


def check_gamma(gamma: ArrayLike) -> Floats:
    """Return a noise function as (K + 1,) numbers in [0, 1] with gamma(l) = gamma(K - l).

    Example:
        >>> check_gamma([1.0, 0.2, 0.3, 1.0])
        Traceback (most recent call last):
            ...
        raydp_sim.errors.InputError: gamma is not symmetric: gamma(1) = 0.2 and gamma(2) = 0.3; \
give one number for l and K - l
    """
    array = np.array(gamma, dtype=np.float64)
    if array.ndim != 1 or len(array) < 2:
        raise InputError(f"gamma has shape {array.shape}; give K + 1 numbers, one per tally")
    check_voters(len(array) - 1)
    if not ((array >= 0.0) & (array <= 1.0)).all():
        raise bad_field("gamma", array.tolist(), "every number must lie in [0, 1]")
    if not (array == array[::-1]).all():
        l = int(np.argmax(array != array[::-1]))  # noqa: E741, the tally's letter
        mirror = len(array) - 1 - l
        raise InputError(
            f"gamma is not symmetric: gamma({l}) = {array[l]:g} and gamma({mirror}) = "
            f"{array[mirror]:g}; give one number for l and K - l"
        )
    array.flags.writeable = False
    return array


def mirrored(upper: ArrayLike) -> Floats:
    """Return gamma on 0..K from its values on (K+1)/2..K."""
    half = np.asarray(upper, dtype=np.float64)
    return np.concatenate([half[::-1], half])


def constant(
    voters: int, multiple: float, epsilon: float, delta: float, tau: float, failure: float
) -> Floats:
    """Return gamma of randomized response on the majority (Algorithm 7, Lemma B.1.1).

    Args:
        voters: K.
        multiple: m, so that the release is (m epsilon, delta)-DP.
        epsilon: of one vote.
        delta: of the release.
        tau: releasing the majority itself is (tau epsilon, failure)-DP by composition of all votes.
        failure: lambda; it is made of the votes' Delta (the text prints delta).

    Example:
        >>> round(float(constant(11, 3, 0.1, 0.0, 11.0, 0.0)[0]), 7)
        0.2974606
    """
    check_voters(voters)
    grown = math.exp(multiple * epsilon)
    all_votes = math.exp(tau * epsilon)
    worst = 2.0 * (all_votes - grown + (1.0 + grown) * failure) / (all_votes + 1.0) + grown - 1.0
    limit = grown - 1.0 + 2.0 * delta
    return np.full(voters + 1, min(1.0, limit / worst) if worst > limit else 1.0)


def subsampling(voters: int, asked: int) -> Floats:
    """Return gamma of the majority of a random subset of votes, a fair coin on ties (Lemma 3.4.1).

    Algorithm 8 says 1 on ties, which is not the lemma's law. An even number of votes does what one
    vote less does. (asked epsilon, asked Delta)-DP by composition.

    Example:
        >>> subsampling(3, 1).round(4).tolist()
        [1.0, 0.3333, 0.3333, 1.0]
    """
    check_voters(voters)
    if isinstance(asked, bool) or int(asked) != asked or not 1 <= asked <= voters:
        raise bad_field("multiple", asked, f"it must be a whole number from 1 to {voters}")
    tally = np.arange((voters + 1) // 2, voters + 1)
    ones = scipy.stats.hypergeom(voters, tally, int(asked))
    says_one = ones.sf(asked // 2) + (0.5 * ones.pmf(asked // 2) if asked % 2 == 0 else 0.0)
    return mirrored(np.clip(2.0 * says_one - 1.0, 0.0, 1.0))


def double_subsampling(voters: int, multiple: int) -> Floats:
    """Return gamma of twice as many votes at the same loss, for votes with pure privacy.

    Theorem 3.5.1: the majority of 2m - 1 votes is decided by m of them that agree, the others cost
    nothing; from m = (K+1)/2 on the true majority is told. The text proves it for identical votes;
    with p_i >= p_i' for all i without loss of generality each of the m ones costs e^epsilon at most
    and each zero at most 1, whatever the voters, and averaging over subsets keeps that.
    """
    check_voters(voters)
    if isinstance(multiple, bool) or int(multiple) != multiple or not 1 <= multiple <= voters:
        raise bad_field("multiple", multiple, f"it must be a whole number from 1 to {voters}")
    if 2 * multiple > voters:
        return np.ones(voters + 1)
    return subsampling(voters, 2 * int(multiple) - 1)
