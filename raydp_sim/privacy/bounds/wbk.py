"""Generic amplification by uniform sampling on top of the shuffle's own bound."""

import math
from functools import lru_cache

import numpy as np

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.bounds.upper1 import log_bracket
from raydp_sim.privacy.curves.numerics import (
    Array,
    log1p_exp,
    log_binomials,
    log_expm1,
    log_sum,
    order_rounding,
)
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import SubsampledShuffle

ORDER_MAX = 4096
"""Largest order: r(j) for all j up to alpha costs alpha^2 once."""


class Wbk(RdpBound):
    """Bound D_alpha of a subsampled shuffle from `upper1` of its k messages.

    Wang, Balle & Kasiviswanathan 2019, Theorem 9, with r(j) = raw (5.4) at k messages and the
    shuffle's pure loss epsilon0. Integer alpha from 2 to 4096.

    Example:
        >>> round(Wbk().rdp(SubsampledShuffle(1.0, 10**6, 1000), 2), 12)
        2.3612e-08
    """

    name = "wbk"
    events = (SubsampledShuffle,)
    source = "Wang, Balle & Kasiviswanathan 2019, Theorem 9, on 000 (5.4)"
    streams = True

    def one(self, event: SubsampledShuffle, alpha: float) -> float:
        """Return the bound at one order."""
        powers = log_moments(event.epsilon0, event.sampled, int(alpha))
        return theorem9(event.epsilon0, event.rate, powers)


class WbkNaive(RdpBound):
    """As `wbk` with the factor 2 e^((j - 1) r(j)) at every j, as some comparisons used it.

    Example:
        >>> round(WbkNaive().rdp(SubsampledShuffle(1.0, 10**6, 1000), 2), 9)
        2.012e-06
    """

    name = "wbk_naive"
    events = (SubsampledShuffle,)
    source = "Wang, Balle & Kasiviswanathan 2019, Theorem 9, without its minima"

    def one(self, event: SubsampledShuffle, alpha: float) -> float:
        """Return the bound at one order."""
        order = int(alpha)
        powers = log_moments(event.epsilon0, event.sampled, order)
        return _assemble(event.rate, order, powers + math.log(2.0))


def theorem9(pure: float, rate: float, powers: Array) -> float:
    """Return the theorem's bound on a uniform sample without replacement, replace-one.

    Args:
        pure: epsilon of what is done with the sample.
        rate: k/n.
        powers: (j - 1) r(j), j = 2, ..., alpha, r its divergence.

    Example:
        >>> round(theorem9(1.0, 0.001, log_moments(1.0, 1000, 2)), 12)
        2.3612e-08
    """
    order = len(powers) + 1
    if pure == 0.0:
        return 0.0
    j = np.arange(2, order + 1)
    factors = powers + np.minimum(math.log(2.0), j * log_expm1(pure))
    at2 = min(math.log(4.0) + log_expm1(float(powers[0])), float(factors[0]))
    return _assemble(rate, order, np.append(at2, factors[1:]))


def _assemble(rate: float, order: int, factors: Array) -> float:
    j = np.arange(2, order + 1)
    terms = log_binomials(order)[2:] + j * math.log(rate) + factors
    return log1p_exp(float(log_sum(terms)) + order_rounding(order)) / (order - 1.0)


def log_moments(epsilon0: float, messages: int, order: int) -> Array:
    """Return (j - 1) r(j) for j = 2, ..., order, r raw (5.4).

    Example:
        >>> round(float(log_moments(1.0, 1000, 3)[0]), 6)
        0.005886
    """
    if order > ORDER_MAX:
        raise NotApplicable(f"wbk and poisson_zw are computed up to order {ORDER_MAX}")
    size = 64
    while size < order:
        size *= 2
    return _log_moments(epsilon0, messages, size)[: order - 1]


@lru_cache(maxsize=64)
def _log_moments(epsilon0: float, messages: int, order: int) -> Array:
    known = _log_moments(epsilon0, messages, order // 2) if order > 64 else np.zeros(0)
    orders = range(len(known) + 2, order + 1)
    return np.append(known, [log1p_exp(log_bracket(epsilon0, messages, j)) for j in orders])
