"""Which of the filters of a budget lets clients take part most often: decided before the run."""

import math

import numpy as np

from raydp_sim.privacy.composition.streaming import event_vector
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import Release
from raydp_sim.privacy.ledger.filter import ALPHA_MAX, Filter, preferred_limits
from raydp_sim.privacy.spent import spent

# Searches for a number of participations end when it is known to this share.
_CLOSE = 1.0 / 32.0


def planned_filter(
    epsilon: float, delta: float, worst: Release, usual: Release, times: int
) -> Filter:
    """Return the filter of a budget that should allow most, from what is known before the run.

    Divergences tell a large batch from a small one, loss distributions are sharper and take every
    batch for the smallest. So participations are counted if, at the price of the smallest batch,
    they reach as far as divergences do in usual batches, or to the end of the plan. All that
    decides is known in advance; whichever is chosen holds, so a poor choice only costs some
    participations.

    Args:
        epsilon: of the budget, > 0.
        delta: of the budget, in [0, 1).
        worst: the costliest participation.
        usual: what one costs in the batch that is expected.
        times: participations that a client can have at most.

    Example:
        >>> from raydp_sim.privacy.events import Shuffle
        >>> small, large = Shuffle(1.0, 500, "2rr"), Shuffle(1.0, 2000, "2rr")
        >>> planned_filter(1.0, 1e-6, small, small, times=1000).count
        17
        >>> planned_filter(1.0, 1e-6, small, large, times=1000).count
        0
    """
    if delta == 0.0:
        return Filter(epsilon)
    limits = preferred_limits(epsilon, delta)
    dearest, each = (event_vector(event, None, ALPHA_MAX) for event in (worst, usual))
    # At the last one even the costliest must have been affordable.
    reach = 1.0 + (limits - dearest) / np.maximum(each, 1e-300)
    best = int(np.argmax(reach))
    needed = min(times, max(1, math.floor(float(reach[best]))))
    count = _counted(epsilon, delta, worst, needed, times)
    if count:
        return Filter(epsilon, delta, count=count)
    return Filter(epsilon, delta, preferred=best if reach[best] >= 1.0 else None)


def _counted(epsilon: float, delta: float, worst: Release, needed: int, times: int) -> int:
    """Return how often `worst` is within the budget, up to `times`; 0 if not `needed` times."""

    def within(count: int) -> bool:
        try:
            return spent([(worst, count)], delta).epsilon <= epsilon
        except NotApplicable:
            return False

    if not within(needed):
        return 0
    if within(times):
        return times
    low, high = needed, min(times, 2 * needed)
    while high < times and within(high):
        low, high = high, min(times, 2 * high)
    while high - low > max(1.0, _CLOSE * low):
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low
