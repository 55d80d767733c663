"""Several messages per client in closed form: the linear bound and the noise it asks for.

s messages per client, each two-valued randomized response with p = (1 - sqrt(u^2/(u^2 + 4)))/2 and
u = v/s, so that (1 - 2p)^2/(p(1 - p)) = u^2; 000 Section 3.3, 003 Section VII.
"""

import math
from typing import Literal

from raydp_sim.privacy.bound import check_delta
from raydp_sim.privacy.bounds.fmt23 import fmt23_limit
from raydp_sim.privacy.composition.conversion import linear_rdp_simple
from raydp_sim.privacy.errors import NotApplicable

Constant = Literal[48, 768]
"""c_F: 48 of 000 (3.7) or 768 of 003 (26)."""


def message_loss(v: float, messages: int) -> float:
    """Return log((1 - p)/p) of each message, which is at most v/messages (000 Lemma 2.4.1).

    Example:
        >>> round(message_loss(1.0, 4), 9)
        0.249353494
    """
    # (1 - 2p)/(2 sqrt(p (1-p))) = u/2 = sinh(loss/2).
    return 2.0 * math.asinh(v / messages / 2.0)


def linear_rho(v: float, messages: int, n: int, constant: Constant = 48) -> float:
    """Return the rho of D_alpha <= rho alpha over all messages.

    Example:
        >>> linear_rho(1.0, 4, 10_000)
        0.0012
    """
    return constant * v * v / (messages * n)


def linear_epsilon(v: float, messages: int, n: int, delta: float, constant: Constant = 48) -> float:
    """Return 3 max{rho L, sqrt(rho L)}, L = log(1/delta), for delta <= 1/e.

    Raises:
        NotApplicable: if the order it needs, 1 + sqrt(L/rho), exceeds the closed form's limit.

    Example:
        >>> round(linear_epsilon(1.0, 4, 100_000, 1e-6), 6)
        0.122151
    """
    rho = linear_rho(v, messages, n, constant)
    if rho == 0.0:
        return 0.0
    epsilon = linear_rdp_simple(rho, delta)
    order = 1.0 + math.sqrt(-math.log(delta) / rho)
    limit = fmt23_limit(message_loss(v, messages), n, constant)
    if order > limit:
        raise NotApplicable(f"the linear form needs order {order:g}, but holds up to {limit:g}")
    return epsilon


def linear_calibration(
    epsilon: float,
    delta: float,
    messages: int,
    n: int,
    constant: Constant = 48,
    printed: bool = False,
) -> float:
    """Return the v for which `linear_epsilon` is at most epsilon.

    v^2 = s n min{epsilon^2, epsilon}/(9 c_F L): 432 for c_F = 48, 6912 for 768. The sources print
    3 c_F, 144 and 2304, with which epsilon is exceeded for epsilon < 3.

    Args:
        epsilon: > 0.
        delta: in (0, 1/e].
        messages: s >= 1.
        n: clients.
        constant: c_F.
        printed: True for the constant as printed, for comparison only.

    Example:
        >>> v = linear_calibration(0.5, 1e-6, 4, 100_000)
        >>> round(linear_epsilon(v, 4, 100_000, 1e-6), 9)
        0.5
    """
    check_delta(delta)
    if not epsilon > 0.0:
        raise ValueError(f"epsilon is {epsilon}; it must be > 0")
    factor = (3.0 if printed else 9.0) * constant
    return math.sqrt(messages * n * min(epsilon**2, epsilon) / (-factor * math.log(delta)))
