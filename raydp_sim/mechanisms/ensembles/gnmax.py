"""Noisy votes of teachers that are not private themselves (PATE's GNMax), the baseline of 004.

argmax_i (n_i + N(0, sigma^2)) is (lambda, lambda/sigma^2)-RDP for one teacher's votes.
"""

import math

import numpy as np
import scipy
from numpy.typing import ArrayLike

from raydp_sim.errors import bad_field


def least_sigma(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the smallest noise with (epsilon, delta) for one query, and the order that shows it.

    It minimises lambda / (epsilon - L/(lambda - 1)), L = log(1/delta): lambda - 1 =
    (L + sqrt(L^2 + epsilon L))/epsilon. (Table B.2 prints other orders beside the right sigmas.)

    Example:
        >>> [round(x, 2) for x in least_sigma(0.2676, 0.0003)]
        [21.46, 62.12]
    """
    if not 0.0 < epsilon < math.inf:
        raise bad_field("epsilon", epsilon, "it must be finite and > 0")
    if not 0.0 < delta < 1.0:
        raise bad_field("delta", delta, "it must lie in (0, 1)")
    log_inverse = -math.log(delta)
    above = (log_inverse + math.sqrt(log_inverse**2 + epsilon * log_inverse)) / epsilon
    order = above + 1.0
    return math.sqrt(order / (epsilon - log_inverse / above)), order


def accuracy(sigma: float, margin: float) -> float:
    """Return how often two classes are told apart, with `margin` votes more for the right one.

    Example:
        >>> round(accuracy(21.46, 11), 3)
        0.641
    """
    return math.exp(float(scipy.special.log_ndtr(margin / (math.sqrt(2.0) * sigma))))


def data_dependent_rdp(votes: ArrayLike, sigma: float, order: float) -> float:
    """Return the RDP of one query given its votes (Algorithm 11, as in Papernot et al. 2018).

    It depends on the votes: such an epsilon must not be published without smoothing. Where the
    theorem does not apply it is lambda/sigma^2.

    Args:
        votes: per class.
        sigma: of the noise.
        order: lambda > 1.

    Example:
        >>> data_dependent_rdp([11, 0], 21.46, 62.12) == 62.12 / 21.46**2
        True
    """
    everywhere = order / sigma**2
    counts = np.sort(np.asarray(votes, dtype=np.float64))
    q = 0.5 * float(scipy.special.erfc((counts[-1] - counts[:-1]) / (2.0 * sigma)).sum())
    if not 0.0 < q < 1.0:
        return everywhere
    mu2 = sigma * math.sqrt(-math.log(q))
    mu1 = mu2 + 1.0
    loss1, loss2 = mu1 / sigma**2, mu2 / sigma**2
    if not (mu1 >= order and mu2 > 1.0 and math.log(q) + loss2 < 0.0):
        return everywhere
    bound = (mu2 - 1.0) * loss2 - mu2 * math.log(mu1 / (mu1 - 1.0) * mu2 / (mu2 - 1.0))
    if math.log(q) > bound:
        return everywhere
    log_a = math.log1p(-q) - math.log(-math.expm1((math.log(q) + loss2) * (mu2 - 1.0) / mu2))
    log_b = loss1 - math.log(q) / (mu1 - 1.0)
    mixed = np.logaddexp(
        math.log1p(-q) + (order - 1.0) * log_a, math.log(q) + (order - 1.0) * log_b
    )
    # Below rounding a divergence may come out negative.
    return min(max(float(mixed) / (order - 1.0), 0.0), everywhere)
