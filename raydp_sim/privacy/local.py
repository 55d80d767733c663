"""One epsilon0-LDP message: its constants, and its own Renyi divergence as a cap on any bound."""

import math
from dataclasses import dataclass
from functools import lru_cache

from raydp_sim.privacy.numerics import log_expm1


@dataclass(frozen=True)
class Constants:
    """What the formulas call E, s0, v0, p0, with the logs of those that may be tiny."""

    E: float
    s0: float
    v0: float
    p0: float
    log_s0: float
    log_v0: float


@lru_cache(maxsize=1024)
def constants(epsilon0: float) -> Constants:
    """Return E = e^eps0, s0 = E - 1/E, v0 = (E - 1)^2/E and p0 = 1/(E + 1).

    Example:
        >>> round(constants(1.0).v0, 6)
        1.086161
    """
    log_s0 = log_expm1(2.0 * epsilon0) - epsilon0
    log_v0 = 2.0 * log_expm1(epsilon0) - epsilon0
    return Constants(
        math.exp(epsilon0),
        2.0 * math.sinh(epsilon0),
        math.exp(log_v0),
        1.0 / (math.exp(epsilon0) + 1.0),
        log_s0,
        log_v0,
    )


def bar(count: int, epsilon0: float, chernoff: float = 0.5) -> int:
    """Return floor((1 - c)(count - 1)/E) + 1, the messages that a Chernoff bound leaves.

    Example:
        >>> bar(1000, 1.0)
        184
    """
    return math.floor((1.0 - chernoff) * (count - 1) / math.exp(epsilon0)) + 1


def local_rdp(epsilon0: float, alpha: float) -> float:
    """Return the largest order-alpha divergence of any epsilon0-LDP message: that of 2RR.

    Real alpha > 1; 000 (A.5). Shuffling is post-processing, so this caps every shuffled bound.

    Example:
        >>> round(local_rdp(1.0, 2.0), 9)
        0.735325664
    """
    if epsilon0 == 0.0:
        return 0.0
    # With x = e^{-eps0}: p0^a q0^(1-a) + p0^(1-a) q0^a - 1, first power excess by excess.
    stays, flips = 1.0 / (1.0 + math.exp(-epsilon0)), 1.0 / (1.0 + math.exp(epsilon0))
    up, down = (alpha - 1.0) * epsilon0, -(alpha - 1.0) * epsilon0
    if up > 30.0:
        return epsilon0 + (math.log(stays) + math.log1p(math.exp(down - up) * flips / stays)) / (
            alpha - 1.0
        )
    bracket = stays * math.expm1(up) + flips * math.expm1(down)
    return min(epsilon0, math.log1p(bracket) / (alpha - 1.0))
