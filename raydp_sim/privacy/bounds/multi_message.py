"""The divergence of several messages per client, each to a shuffler of its own."""

from collections import Counter

import numpy as np

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.bounds.numeric import Numeric
from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.events import MultiMessageShuffle, Shuffle


class MultiMessage(RdpBound):
    """Add `numeric` over the messages: independent shufflers compose; real alpha > 1.

    Example:
        >>> event = MultiMessageShuffle((1.0, 1.0), 100)
        >>> round(MultiMessage().rdp(event, 5) / Numeric().rdp(Shuffle(1.0, 100), 5), 9)
        2.0
    """

    name = "multi_message"
    events = (MultiMessageShuffle,)
    source = "000 Lemma 2.1.4 on Theorem 5.3.4"
    real_orders = True
    streams = True

    def many(self, event: MultiMessageShuffle, orders: Array, strict: bool = False) -> Array:
        """Return the bound at ascending orders."""
        total = np.zeros(len(orders))
        for loss, times in Counter(event.losses).items():
            total += times * Numeric().many(Shuffle(loss, event.n), orders)
        return total
