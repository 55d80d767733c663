"""The lower bound on the worst divergence of a shuffle, with or without subsampling."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.curves.binomials import rounding
from raydp_sim.privacy.curves.numerics import Array, log1p_exp
from raydp_sim.privacy.curves.others import order_class
from raydp_sim.privacy.curves.special import special_ratios
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import Shuffle, SubsampledShuffle


class Lower(RdpBound):
    """Return D_alpha of 2RR when all clients but one agree; the worst randomizer has no less.

    000 Theorem 5.3.3 (5.9) and 5.4.2, real alpha > 1. It bounds the worst epsilon0-LDP randomizer
    from below, not every one, and is not even the worst dataset of 2RR. One message: `local_rdp`.
    Counts outside of the window are left out and rounding is taken off, so the value errs
    downwards, by under 1e-4 of itself.

    Example:
        >>> round(Lower().rdp(Shuffle(0.5, 100), 32), 6)
        0.038752
    """

    name = "lower"
    status = "lower"
    events = (Shuffle, SubsampledShuffle)
    source = "000 Theorems 5.3.3 (5.9) and 5.4.2"
    real_orders = True

    def many(
        self, event: Shuffle | SubsampledShuffle, orders: Array, strict: bool = False
    ) -> Array:
        """Return the bound at ascending orders."""
        if event.epsilon0 == 0.0 or len(orders) == 0:
            return np.zeros(len(orders))
        try:
            logs = self._logs(event, orders)
        except NotApplicable:
            if strict:
                raise
            return np.full(len(orders), math.inf)
        return np.array([log1p_exp(float(x)) for x in logs]) / (orders - 1.0)

    def _logs(self, event: Shuffle | SubsampledShuffle, orders: Array) -> Array:
        messages, rate = _SHAPE[type(event)](event)
        first, top = int(np.searchsorted(orders, 2.0)), order_class(orders)
        logs = np.empty(len(orders))
        if first > 0:
            law = special_ratios(messages, event.epsilon0, top, "mean", rate)
            logs[:first] = law.log_excess(orders[:first], upward=False)
        if first < len(orders):
            law = special_ratios(messages, event.epsilon0, top, "below", rate)
            logs[first:] = law.log_excess(orders[first:], upward=False)
        # Rounding of probabilities, and of powers.
        return logs - (rounding(messages) + 1e-15 * (1.0 + event.epsilon0) * orders)


_SHAPE: dict[type, Callable[[Any], tuple[int, float]]] = {
    Shuffle: lambda event: (event.n, 1.0),
    SubsampledShuffle: lambda event: (event.sampled, event.rate),
}
