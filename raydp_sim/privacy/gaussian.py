"""The Gaussian mechanism's exact privacy curve, and the least noise for a guarantee."""

import math

from scipy.special import erfcx, log_ndtr, ndtr

# The noise is stated this much above the root, so that rounding errs towards privacy.
_SLACK = 1e-12
_STEPS = 200


def gaussian_delta(epsilon: float, sigma: float, sensitivity: float = 1.0) -> float:
    """Return the least delta at which noise N(0, sigma^2 I) gives (epsilon, delta)-DP.

    Balle & Wang 2018, "Improving the Gaussian mechanism for differential privacy", Theorem 8, with
    `sensitivity` the largest l2 distance between neighbouring outputs.

    Example:
        >>> round(gaussian_delta(1.0, sigma=1.0), 6)
        0.126937
    """
    ratio = sensitivity / sigma
    a, b = ratio / 2.0 - epsilon / ratio, -ratio / 2.0 - epsilon / ratio
    if a > 0.0:
        return float(ndtr(a) - math.exp(epsilon + log_ndtr(b)))
    # b^2/2 - epsilon = a^2/2: taking it out of both terms leaves a difference without cancellation.
    scaled = erfcx(-a / math.sqrt(2.0)) - erfcx(-b / math.sqrt(2.0))
    return float(0.5 * math.exp(-0.5 * a * a) * scaled)


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the least sigma that gives (epsilon, delta)-DP, rounded up.

    Args:
        epsilon: > 0; there is no upper limit, unlike in the classical calibration.
        delta: in (0, 1).
        sensitivity: largest l2 distance between neighbouring outputs.

    Example:
        >>> round(gaussian_sigma(1.0, 1e-5), 4)
        3.7306
    """
    if not (epsilon > 0.0 and 0.0 < delta < 1.0 and sensitivity > 0.0):
        raise ValueError(
            f"epsilon, delta, sensitivity are {epsilon}, {delta}, {sensitivity}; they must be > 0, "
            "in (0, 1) and > 0"
        )
    low = high = 1.0
    while gaussian_delta(epsilon, high) > delta:
        high *= 2.0
    while gaussian_delta(epsilon, low) <= delta:
        low /= 2.0
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if gaussian_delta(epsilon, middle) <= delta:
            high = middle
        else:
            low = middle
    return sensitivity * high * (1.0 + _SLACK)
