"""The largest local loss that keeps a run's epsilon within a target, in few evaluations."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_TOLERANCE = 1e-6

Told = Callable[[float, float], None]
"""Called with every epsilon0 that was tried, and the run's epsilon that it gives."""

_TELL: ContextVar[Told | None] = ContextVar("_TELL", default=None)


@contextmanager
def watched(tell: Told) -> Iterator[None]:
    """Tell of every try of the searches made inside, for whoever waits for their result.

    Example:
        >>> tries = []
        >>> with watched(lambda loss, epsilon: tries.append((loss, epsilon))):
        ...     found = largest_within(lambda x: x * x, 2.0, 1e-6, 20.0)
        >>> len(tries) < 25, (found, found * found) in tries
        (True, True)
    """
    before = _TELL.set(tell)
    try:
        yield
    finally:
        _TELL.reset(before)


def largest_within(
    epsilon: Callable[[float], float], target: float, least: float, most: float
) -> float:
    """Return the largest epsilon0 in [least, most] whose epsilon is within the target, or 0.

    The value returned was itself evaluated and met the target; where epsilon rises with epsilon0
    the true optimum is at most 2e-6 of it above.

    Args:
        epsilon: of the run, given epsilon0; inf where its bound is silent.
        target: > 0.
        least: > 0, smallest to try.
        most: largest to try.

    Example:
        >>> round(largest_within(lambda x: x * x, 2.0, 1e-6, 20.0), 5)
        1.41421
    """
    seen: dict[float, float] = {}

    from scipy.optimize import brentq  # here: most actors never search

    def excess(log_loss: float) -> float:
        """Return the logarithm of epsilon over its target, within finite limits."""
        if log_loss not in seen:
            found = epsilon(math.exp(log_loss))
            if (tell := _TELL.get()) is not None:
                tell(math.exp(log_loss), found)
            ratio = found / target
            seen[log_loss] = math.log(min(max(ratio, 1e-12), 1e12))
        return seen[log_loss]

    low, high = math.log(least), math.log(most)
    if excess(low) > 0.0:
        return 0.0
    # Most answers are near 1, and large losses are the slowest to evaluate.
    middle = min(max(0.0, low), high)
    while middle < high and excess(middle) <= 0.0:
        low, middle = middle, min(high, middle + 0.7)
    if excess(middle) <= 0.0:
        return math.exp(middle)
    high = middle
    while high - 0.7 > low and excess(high - 0.7) > 0.0:
        high -= 0.7
    low = max(low, high - 0.7)
    if high - low > _TOLERANCE:
        brentq(excess, low, high, xtol=_TOLERANCE, rtol=4e-15 + _TOLERANCE / 10.0)
    inside = max(x for x, value in seen.items() if value <= 0.0)
    outside = min((x for x, value in seen.items() if value > 0.0 and x > inside), default=high)
    # The root finder stops beside the root, on either side; from afar only halving gets there.
    probe = outside - _TOLERANCE
    while outside - inside > 2.0 * _TOLERANCE:
        if excess(probe) <= 0.0:
            inside = probe
        else:
            outside = probe
        probe = 0.5 * (inside + outside)
    return math.exp(inside)
