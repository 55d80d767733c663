"""The lower bound on the worst divergence of a shuffle, with or without subsampling."""

from collections.abc import Callable
from typing import Any

import numpy as np

from raydp_sim.privacy.bounds.base import RdpBound
from raydp_sim.privacy.events import Shuffle, SubsampledShuffle
from raydp_sim.privacy.numerics import Array, log1p_exp
from raydp_sim.privacy.special import log_special_excess


class Lower(RdpBound):
    """Return D_alpha of 2RR when all clients but one agree; the worst randomizer has no less.

    000 Theorem 5.3.3 (5.9) and 5.4.2, real alpha > 1. It bounds the worst epsilon0-LDP randomizer
    from below, not every one, and is not even the worst dataset of 2RR. One message: exactly
    `local_rdp`.

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
        if event.epsilon0 == 0.0:
            return np.zeros(len(orders))
        messages, rate = _SHAPE[type(event)](event)
        logs = log_special_excess(messages, event.epsilon0, orders, rate)
        return np.array([log1p_exp(float(x)) for x in logs]) / (orders - 1.0)


_SHAPE: dict[type, Callable[[Any], tuple[int, float]]] = {
    Shuffle: lambda event: (event.n, 1.0),
    SubsampledShuffle: lambda event: (event.sampled, event.rate),
}
