"""The Gaussian mechanism's exact privacy curve, and the least noise for a guarantee."""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# The noise is stated this much above the root, so that rounding errs towards privacy.
_SLACK = 1e-12
_STEPS = 200
# scipy's error functions err by less, relatively.
_ROUNDING = 2e-15


def gaussian_delta(epsilon: float, sigma: float, sensitivity: float = 1.0) -> float:
    """Return the least delta at which noise N(0, sigma^2 I) gives (epsilon, delta)-DP, rounded up.

    Balle & Wang 2018, "Improving the Gaussian mechanism for differential privacy", Theorem 8, with
    `sensitivity` the largest l2 distance between neighbouring outputs. It is a difference; 2e-15 of
    its first term is added, so that where noise is large the value errs upwards. At most 1.

    Example:
        >>> round(gaussian_delta(1.0, sigma=1.0), 6)
        0.126937
    """
    ratio = sensitivity / sigma
    a, b = ratio / 2.0 - epsilon / ratio, -ratio / 2.0 - epsilon / ratio
    if a > 0.0:
        first = float(scipy.special.ndtr(a))
        return min(
            1.0, first - math.exp(epsilon + float(scipy.special.log_ndtr(b))) + _ROUNDING * first
        )
    # b^2/2 - epsilon = a^2/2: taking it out of both terms leaves a difference of like ones.
    first, second = (float(scipy.special.erfcx(-x / math.sqrt(2.0))) for x in (a, b))
    # The exponent errs in proportion to itself; what underflows is rounded up.
    factor = 0.5 * math.exp(-0.5 * a * a * (1.0 - _ROUNDING))
    return max(5e-324, factor * (first - second + _ROUNDING * first))


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
        if high > 1e14:
            raise ValueError(f"no noise below 1e14 gives epsilon {epsilon} at delta {delta}")
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


def gaussian_epsilon(delta: float, sigma: float, sensitivity: float = 1.0) -> float:
    """Return the least epsilon >= 0 at which the noise gives (epsilon, delta)-DP, rounded up.

    Example:
        >>> round(gaussian_epsilon(1e-5, 3.7306), 4)
        1.0
    """
    if gaussian_delta(0.0, sigma, sensitivity) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while gaussian_delta(high, sigma, sensitivity) > delta:
        low, high = high, 2.0 * high
        if high > 1e12:
            return math.inf
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if gaussian_delta(middle, sigma, sensitivity) <= delta:
            high = middle
        else:
            low = middle
    return high


def gaussian_deltas(epsilons: Floats, sigma: float) -> Floats:
    """Return `gaussian_delta` at several epsilons, sensitivity 1.

    Example:
        >>> gaussian_deltas(np.array([0.0, 1.0]), 1.0).round(6).tolist()
        [0.382925, 0.126937]
    """
    ratio = 1.0 / sigma
    a, b = ratio / 2.0 - epsilons / ratio, -ratio / 2.0 - epsilons / ratio
    near = scipy.special.ndtr(np.maximum(a, 0.0))
    # Where a <= 0 the exponents below are not used; they are kept from overflowing.
    cost = np.exp(np.where(a > 0.0, epsilons + scipy.special.log_ndtr(b), 0.0))
    plain = np.minimum(1.0, near - cost + _ROUNDING * near)
    far = np.minimum(a, 0.0)
    first, second = (scipy.special.erfcx(-x / math.sqrt(2.0)) for x in (far, np.minimum(b, 0.0)))
    factor = 0.5 * np.exp(-0.5 * far * far * (1.0 - _ROUNDING))
    tail = np.maximum(5e-324, factor * (first - second + _ROUNDING * first))
    return np.asarray(np.where(a > 0.0, plain, tail), dtype=np.float64)
