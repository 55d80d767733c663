"""From a report's epsilon to the loss of each of its binary messages."""

import math
from typing import Literal

import numpy as np

from raydp_sim.mechanisms.base import Floats

Calibration = Literal["tight", "seed"]

# Losses are stated this much (relatively) above the arithmetic, so that rounding errs upwards.
SLACK = 1e-12
_STEPS = 200


def message_losses(
    epsilon: float, shares: Floats, coordinates: int, filled: int, calibration: Calibration
) -> Floats:
    """Return the exact loss of one message at each level.

    With budget v, level k's messages have the loss 2 asinh(share_k v / (2 coordinates)) (Girgis &
    Diggavi 2024, Lemma 6), and a report loses the sum over levels and the `filled` blocks. "seed"
    takes v = epsilon, which never exceeds epsilon; "tight" takes the largest v that does not.

    Example:
        >>> message_losses(1.0, np.array([0.5, 0.5]), 1, 1, "seed").sum().round(6)
        np.float64(0.989866)
    """
    if calibration == "seed":
        return _losses(math.log(epsilon), shares, coordinates)
    allowed = epsilon * (1.0 - SLACK)
    if len(shares) == 1:
        return np.array([allowed / filled])
    # In log v, so that no epsilon is too large. The loss is at most v filled / coordinates, and
    # the largest level alone may not exceed what is allowed.
    low = math.log(allowed * coordinates / filled)
    high = _log_sinh(allowed / (2 * filled)) + math.log(2 * coordinates / shares.max())
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if filled * _losses(middle, shares, coordinates).sum() <= allowed:
            low = middle
        else:
            high = middle
    return _losses(low, shares, coordinates)


def _losses(log_v: float, shares: Floats, coordinates: int) -> Floats:
    return np.array([_loss(log_v + math.log(share / (2 * coordinates))) for share in shares])


def _loss(log_x: float) -> float:
    # 2 asinh(x), which is 2 log(2 x) where x is too large to be squared.
    return 2.0 * (math.asinh(math.exp(log_x)) if log_x < 300.0 else log_x + math.log(2.0))


def _log_sinh(x: float) -> float:
    return x + math.log(-math.expm1(-2.0 * x) / 2.0)
