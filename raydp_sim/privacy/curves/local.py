"""One epsilon0-LDP message: its constants, and its own Renyi divergence as a cap on any bound."""

import math
from dataclasses import dataclass
from functools import lru_cache

from raydp_sim.privacy.curves.numerics import log_expm1


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

    A quotient within 1e-14 of the next whole number is rounded down: fewer leave a larger bound.

    Example:
        >>> bar(1000, 1.0)
        184
    """
    quotient = (1.0 - chernoff) * (count - 1) / math.exp(epsilon0)
    return math.floor(quotient * (1.0 - 1e-14) if epsilon0 > 0.0 else quotient) + 1


def local_rdp(epsilon0: float, alpha: float) -> float:
    """Return the largest order-alpha divergence of any epsilon0-LDP message: that of 2RR.

    Real alpha > 1; 000 (A.5). Shuffling is post-processing, so this caps every shuffled bound.

    Example:
        >>> round(local_rdp(1.0, 2.0), 9)
        0.735325664
    """
    if epsilon0 == 0.0:
        return 0.0
    # q0^a p0^(1-a) + q0^(1-a) p0^a - 1 = cosh(up) - 1 + tanh(eps0/2) sinh(up): nothing cancels.
    up = (alpha - 1.0) * epsilon0
    if up > 30.0:
        stays, odds = -math.log1p(math.exp(-epsilon0)), math.exp(-epsilon0 - 2.0 * up)
        return min(epsilon0, epsilon0 + (stays + math.log1p(odds)) / (alpha - 1.0))
    bracket = 2.0 * math.sinh(0.5 * up) ** 2 + math.tanh(0.5 * epsilon0) * math.sinh(up)
    return min(epsilon0, math.log1p(bracket) / (alpha - 1.0))
