"""The general upper bound on the divergence of a subsampled shuffle, for integer orders."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.curves.local import bar, constants
from raydp_sim.privacy.curves.numerics import (
    Array,
    log1p_exp,
    log_binomials,
    log_excess,
    log_expm1,
    log_half_gammas,
    log_sum,
    order_rounding,
)
from raydp_sim.privacy.events import SubsampledShuffle


@dataclass(frozen=True)
class Upper(RdpBound):
    """Bound D_alpha of a shuffle of k of n clients' messages, any epsilon0-LDP randomizer.

    000 Theorem 5.4.1 = 002 Theorem 1, integer alpha >= 2; sampling uniform without replacement. At
    k = n it does not become `upper1`: it has a factor 4.

    Attributes:
        sharp: E - 1 for s0 = E - 1/E, as |p' - p''|/p <= E - 1 for any three rows of an
            epsilon0-LDP channel. Not in the sources, checked by enumeration; off by default.

    Example:
        >>> round(Upper().rdp(SubsampledShuffle(2.0, 10**6, 1000), 28), 12)
        5.177537e-06
    """

    name: ClassVar[str] = "upper"
    events = (SubsampledShuffle,)
    source = "000 Theorem 5.4.1 = 002 Theorem 1"
    streams = True
    sharp: bool = False

    def one(self, event: SubsampledShuffle, alpha: float) -> float:
        """Return the bound at one order."""
        bracket = log_bracket(event.epsilon0, event.sampled, event.rate, int(alpha), self.sharp)
        return log1p_exp(bracket) / (alpha - 1.0)


def log_bracket(
    epsilon0: float, messages: int, rate: float, order: int, sharp: bool = False
) -> float:
    """Return the log of what the theorem adds to 1 inside of its logarithm, at rate gamma.

    Example:
        >>> round(math.exp(log_bracket(1.0, 1000, 0.001, 2)), 12)
        2.3612e-08
    """
    one = np.array([messages]), np.array([rate])
    return float(log_brackets(epsilon0, *one, order, sharp)[0])


def log_brackets(
    epsilon0: float, messages: Array, rates: Array, order: int, sharp: bool = False
) -> Array:
    """Return `log_bracket` for several numbers of messages and rates, rounded up.

    It is -inf at rate 0.
    """
    if epsilon0 == 0.0:
        return np.full(len(rates), -math.inf)
    c = constants(epsilon0)
    log_s = log_expm1(epsilon0) if sharp else c.log_s0
    left = np.array([bar(int(k), epsilon0) for k in messages])
    with np.errstate(divide="ignore"):
        log_rates = np.log(rates)
    second = math.log(2.0 * order * (order - 1)) + 2.0 * log_rates + c.log_v0 - np.log(left)
    tail = np.array([log_excess(rate * math.exp(log_s), order) for rate in rates])
    total: Array = np.logaddexp(second, tail - (messages - 1) / (8.0 * c.E))
    total += order_rounding(order)
    if order == 2:
        return total
    j = np.arange(3, order + 1)
    terms = log_binomials(order)[3:] + np.log(j) + log_half_gammas(order)[3:]
    steps = log_rates + 0.5 * np.log(2.0 / left) + log_s
    rows = max(1, (1 << 18) // order)
    sums = [
        log_sum(terms + steps[i : i + rows, None] * j, axis=1) for i in range(0, len(steps), rows)
    ]
    total = np.logaddexp(total, np.concatenate(sums) + order_rounding(order))
    return total
