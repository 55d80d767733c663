"""The ternary divergence of a shuffle, and what it says of a subsampled one."""

import math
from collections.abc import Callable

import numpy as np

from raydp_sim.privacy.curves.local import bar, constants
from raydp_sim.privacy.curves.numerics import (
    log1p_exp,
    log_add,
    log_binomials,
    log_expm1,
    log_sum,
    order_rounding,
)


def log_ternary(epsilon0: float, messages: int, order: int, sharp: bool = False) -> float:
    """Return the log of a bound on E_{D''} |(M(D) - M(D'))/M(D'')|^j.

    D, D', D'' differ in one and the same client.

    000 Theorem 5.4.4 (5.43) = 002 Theorem 4 (11), with k-bar in the denominators. For k >= 1
    messages and integer j >= 2.

    Args:
        epsilon0: local loss, > 0.
        messages: k.
        order: j.
        sharp: E - 1 for s0 (see `bounds.upper`).

    Example:
        >>> round(math.exp(log_ternary(0.5, 100, 2)), 6)
        0.033533
    """
    c, left = constants(epsilon0), bar(messages, epsilon0)
    log_s = log_expm1(epsilon0) if sharp else c.log_s0
    tail = order * log_s - (messages - 1) / (8.0 * c.E)
    if order == 2:
        return log_add(math.log(4.0) + c.log_v0 - math.log(left), tail)
    half = 0.5 * order
    body = math.log(order) + math.lgamma(half) + half * (math.log(2.0 / left) + 2.0 * log_s)
    return log_add(body, tail)


def ternary_rdp(log_zeta: Callable[[int], float], rate: float, alpha: int) -> float:
    """Return D_alpha of the subsampled mechanism from its ternary divergences.

    000 Lemma 5.4.1 = 002 Lemma 2: log(1 + sum_j C(alpha, j) gamma^j zeta(j)^j)/(alpha - 1).

    Args:
        log_zeta: j -> log zeta(j)^j.
        rate: gamma.
        alpha: integer >= 2.

    Example:
        >>> round(ternary_rdp(lambda j: log_ternary(0.5, 100, j), 0.1, 5), 6)
        0.000964
    """
    j = np.arange(2, alpha + 1)
    zetas = np.array([log_zeta(int(i)) for i in j])
    terms = log_binomials(alpha)[2:] + j * math.log(rate) + zetas
    return log1p_exp(float(log_sum(terms)) + order_rounding(alpha)) / (alpha - 1.0)
