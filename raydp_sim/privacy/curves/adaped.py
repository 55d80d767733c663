"""DP-AdaPeD's divergences: as its source states them, as averages would cost, and as proved."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from raydp_sim.privacy.curves.numerics import log1p_exp, log_binomials, log_sum


class Noise(NamedTuple):
    """One of the quantities that local steps make noisy.

    Attributes:
        radius: that a step's direction is clipped to, in l2.
        sigma: standard deviation of the noise added to it; 0: none.
    """

    radius: float
    sigma: float


def cost_of_step(noises: Sequence[Noise]) -> float:
    """Return sum of C^2/sigma^2, infinite where a noise is missing.

    Example:
        >>> round(cost_of_step([Noise(1.0, 5.0), Noise(0.1, 0.5)]), 9)
        0.08
    """
    if any(noise.sigma == 0.0 for noise in noises):
        return math.inf
    return math.fsum((noise.radius / noise.sigma) ** 2 for noise in noises)


def adaped_rdp(
    alpha: float,
    rounds: float,
    clients: int,
    sampled: int,
    clips: tuple[float, ...],
    sigmas: tuple[float, ...],
) -> float:
    """Return (K/n)^2 6 (T/tau) alpha (C1^2/(K sigma1^2) + C2^2/(K sigma2^2)).

    000 Theorem 4.5.1, for comparison with its tables. It is no bound: steps of a round can align,
    so that with tau >= 4 of them (neighbours replace a client) one round without sampling costs
    more than this; and its constant 6 needs a small K/n and small orders.

    Args:
        alpha: real order > 1.
        rounds: T/tau, communication rounds.
        clients: n.
        sampled: K per round.
        clips: C1, C2 of the quantities sent.
        sigmas: their noises.

    Example:
        >>> round(adaped_rdp(2, 100, 50, 10, (1.0, 1.0), (10.0, 10.0)), 9)
        0.096
    """
    if not (alpha > 1.0 and 1 <= sampled <= clients and rounds >= 0.0 and min(sigmas) > 0.0):
        raise ValueError(
            f"alpha, rounds, clients, sampled, sigmas are {alpha}, {rounds}, {clients}, {sampled}, "
            f"{sigmas}; they must be > 1, >= 0, >= sampled, >= 1, > 0"
        )
    noise = sum((c / s) ** 2 for c, s in zip(clips, sigmas, strict=True)) / sampled
    return (sampled / clients) ** 2 * 6.0 * rounds * alpha * noise


def without_replacement_rdp(order: int, rate: float, multiplier: float) -> float:
    """Bound the divergence of a Gaussian release of a uniform sample; neighbours replace a record.

    Wang, Balle & Kasiviswanathan 2019, Theorem 9, with the Gaussian's divergence: log(1 + C(a, 2)
    q^2 min{4 (e^e(2) - 1), 2 e^e(2)} + sum_j 2 C(a, j) q^j e^((j-1) e(j)))/(a - 1), e(j) = j/(2
    z^2); never more than without sampling.

    Args:
        order: whole, >= 2.
        rate: q, in (0, 1].
        multiplier: z, noise over the sensitivity of replacing one record.

    Example:
        >>> without_replacement_rdp(2, 1.0, 1.0)
        1.0
    """
    whole = order / (2.0 * multiplier**2)
    if rate == 1.0:
        return whole
    j = np.arange(2, order + 1, dtype=np.float64)
    each = j / (2.0 * multiplier**2)
    terms = math.log(2.0) + log_binomials(order)[2:] + j * math.log(rate) + (j - 1.0) * each
    two = float(each[0])
    if two < math.log(2.0):
        # 4 (e^e - 1) is the smaller one up to e = log 2.
        terms[0] += math.log(2.0 * -math.expm1(-two))
    return min(whole, log1p_exp(float(log_sum(np.asarray(terms, dtype=np.float64)))) / (order - 1))
