"""Amplification by sampling clients, in closed form."""

import math

import numpy as np

from raydp_sim.privacy.curves.numerics import log_expm1


def subsample(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """Return (log(1 + q (e^epsilon - 1)), q delta): amplification by sampling at rate q.

    000 Lemma 2.1.1, 001 Lemma 11: uniform without replacement under replace-one, or Poisson.

    Example:
        >>> round(subsample(2.0, 1e-6, 0.001)[0], 9)
        0.006368733
    """
    if not 0.0 < rate <= 1.0:
        raise ValueError(f"rate is {rate}; it must lie in (0, 1]")
    if not epsilon >= 0.0:
        raise ValueError(f"epsilon is {epsilon}; it must be >= 0")
    if epsilon > 30.0:
        return float(np.logaddexp(0.0, math.log(rate) + log_expm1(epsilon))), rate * delta
    return math.log1p(rate * math.expm1(epsilon)), rate * delta
