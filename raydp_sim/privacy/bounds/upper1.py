"""The general upper bound on the divergence of a shuffle, for integer orders."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.curves.local import bar, constants
from raydp_sim.privacy.curves.numerics import (
    log1p_exp,
    log_add,
    log_binomials,
    log_half_gammas,
    log_sum,
    order_rounding,
)
from raydp_sim.privacy.events import Shuffle

GRID = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


@dataclass(frozen=True)
class Upper1(RdpBound):
    """Bound D_alpha of n shuffled messages of any epsilon0-LDP randomizer.

    000 Theorem 5.3.1 (5.4), integer alpha >= 2, all n and epsilon0; Chernoff parameter c of (5.14).

    Attributes:
        chernoff: c in (0, 1); the theorem has 1/2. None: the best of a fixed grid.

    Example:
        >>> round(Upper1().rdp(Shuffle(0.1, 10_000), 2), 11)
        2.21227e-06
    """

    name: ClassVar[str] = "upper1"
    events = (Shuffle,)
    source = "000 Theorem 5.3.1 (5.4)"
    chernoff: float | None = 0.5

    def one(self, event: Shuffle, alpha: float) -> float:
        """Return the bound at one order."""
        order = int(alpha)
        choices = GRID if self.chernoff is None else (self.chernoff,)
        return min(log1p_exp(log_bracket(event.epsilon0, event.n, order, c)) for c in choices) / (
            order - 1
        )


def log_bracket(epsilon0: float, n: int, order: int, chernoff: float = 0.5) -> float:
    """Return the log of what (5.4) adds to 1 inside of its logarithm, rounded up."""
    c = constants(epsilon0)
    left = bar(n, epsilon0, chernoff)
    tail = epsilon0 * order - chernoff**2 * (n - 1) / (2.0 * c.E)
    second = math.log(order * (order - 1) / 2.0) + c.log_v0 - math.log(left)
    if order == 2 or epsilon0 == 0.0:
        return log_add(second, tail) + order_rounding(order)
    i = np.arange(3, order + 1)
    step = 0.5 * (2.0 * c.log_s0 - math.log(2.0 * left))
    terms = log_binomials(order)[3:] + np.log(i) + log_half_gammas(order)[3:] + i * step
    return log_add(second, float(log_sum(terms)), tail) + order_rounding(order)
