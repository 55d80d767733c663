"""How far an estimate may be off for all active actions at once.

<a, theta - theta*> is a sum over rewards with weights a' V^+ a_k, whose squares add up to the
leverage of a and whose largest is at most the largest leverage l. With L = log(4 |A_i| T^2) every
one of the two terms below fails for some active action with probability 1/(2 T^2) at most, so with
at most T batches all hold in all of them but with probability 1/T.
"""

import math
from typing import Literal

from raydp_sim.errors import bad_field

RadiusName = Literal["paper", "corrected"]
NoiseOn = Literal["nothing", "sums", "reports"]


def log_term(active: int, horizon: int) -> float:
    """Return L = log(4 |A_i| T^2).

    Example:
        >>> round(log_term(10, 10**6), 6)
        31.319901
    """
    return math.log(4.0 * active) + 2.0 * math.log(horizon)


def laplace_tail(scale: float, squares: float, largest: float, log_inverse: float) -> float:
    """Return t beyond which a weighted sum of Laplace noise is with probability 2 e^-L at most.

    Replaces 000 Lemma E.1.2, whose moment generating function is not Laplace's: with 1/(1 - x) <=
    e^(2x) for x <= 1/2 in place of it, exp(-t^2/(8 s^2 c2)) up to 2 sqrt(2) s c2/l and
    exp(c2/l^2 - t/(sqrt(2) s l)) beyond.

    Args:
        scale: s of the noise.
        squares: c2, at least the sum of the squared weights.
        largest: l, at least the largest weight.
        log_inverse: L.
    """
    if log_inverse <= squares / largest**2:
        return scale * math.sqrt(8.0 * squares * log_inverse)
    return math.sqrt(2.0) * scale * (largest * log_inverse + squares / largest)


def confidence_radius(
    kind: RadiusName,
    noise_on: NoiseOn,
    leverage: float,
    active: int,
    horizon: int,
    chosen: int,
    reports: int,
    scale: float,
) -> float:
    """Return gamma_i.

    Args:
        kind: `paper`, as printed in steps 5, 12 and 19 of 000's algorithms, with the scale in place
            of 1/epsilon and the size of the core set in place of B d; `corrected`, the one with
            which the confidence 1 - 1/T is proved.
        noise_on: which variables have Laplace noise.
        leverage: l, of every active action at most; 2d/q^i by the plan.
        active: |A_i|.
        horizon: T.
        chosen: actions with rewards, |C_i| by the plan.
        reports: n_i.
        scale: of the noise.

    Example:
        >>> q12 = 297170.103
        >>> round(confidence_radius("paper", "sums", 4 / q12, 10, 10**6, 2, 297172, 1.0), 9)
        0.029485555
    """
    L = log_term(active, horizon)
    rewards = math.sqrt(2.0 * leverage * L)
    if noise_on == "nothing" or scale == 0.0:
        return rewards
    if kind == "paper":
        on_sums = noise_on == "sums"
        return rewards + scale * leverage * (chosen + L if on_sums else math.sqrt(reports * L))
    if kind != "corrected":
        raise bad_field("radius", kind, "choose paper or corrected")
    squares = min(chosen * leverage**2, leverage) if noise_on == "sums" else leverage
    return rewards + laplace_tail(scale, squares, leverage, L)
