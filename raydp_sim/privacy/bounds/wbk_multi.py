"""Amplification by uniform sampling of clients that each send several messages."""

import math
from collections import Counter

import numpy as np

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.bounds.wbk import ORDER_MAX, log_moments, theorem9
from raydp_sim.privacy.bounds.wbk_clones import ORDER_MAX as CLONES_MAX
from raydp_sim.privacy.bounds.wbk_clones import clone_moments
from raydp_sim.privacy.curves.local import local_rdp
from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.events import SubsampledMultiMessage


class WbkMulti(RdpBound):
    """Bound D_alpha of a uniform sample of k clients with one message to each shuffler.

    What the sample does is one mechanism: given who was sampled, the shufflers are independent, so
    its divergence is at most the sum of theirs with k messages, and its pure loss at most the sum
    of the messages' losses. Wang, Balle & Kasiviswanathan 2019, Theorem 9, holds for any mechanism
    of a sample without replacement, neighbours replace-one. Each shuffler is taken at the least of
    `clones` (orders to 256), `upper1` and one message's own divergence. Integer alpha to 4096.

    Example:
        >>> event = SubsampledMultiMessage((1.0, 1.0), 10**6, 1000)
        >>> round(WbkMulti().rdp(event, 2), 12)
        1.863e-08
    """

    name = "wbk_multi"
    events = (SubsampledMultiMessage,)
    source = "Wang, Balle & Kasiviswanathan 2019, Theorem 9, on Feldman et al. 2021 per shuffler"
    streams = True

    def worth_up_to(self, event: SubsampledMultiMessage) -> float:
        """Return the largest order computed."""
        return ORDER_MAX

    def one(self, event: SubsampledMultiMessage, alpha: float) -> float:
        """Return the bound at one order."""
        order = int(alpha)
        powers = np.zeros(order - 1)
        for loss, times in Counter(event.losses).items():
            powers += times * _least(loss, event.sampled, order)
        return theorem9(math.fsum(event.losses), event.rate, powers)


def _least(loss: float, messages: int, order: int) -> Array:
    """Return the least (j - 1) r(j) of one shuffler, j = 2, ..., order."""
    if loss == 0.0:
        return np.zeros(order - 1)
    j = np.arange(2.0, order + 1.0)
    least: Array = log_moments(loss, messages, order)
    least = np.minimum(least, (j - 1.0) * np.array([local_rdp(loss, a) for a in j]))
    near = min(order, CLONES_MAX) - 1
    least[:near] = np.minimum(least[:near], clone_moments(loss, messages, near + 1))
    return least
