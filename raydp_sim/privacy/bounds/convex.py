"""Amplification by sampling through convexity: weak for rare sampling, sharp for frequent."""

import math

import numpy as np

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.bounds.clones import Clones
from raydp_sim.privacy.bounds.numeric import Numeric
from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.events import Shuffle, SubsampledShuffle


class Convex(RdpBound):
    """Bound D_alpha by log(1 + gamma (e^((alpha-1) r) - 1))/(alpha - 1), r of k messages.

    e^((alpha-1) D_alpha) is jointly convex, and given the sample the round is a shuffle of k
    messages that holds the replaced client with probability gamma. r is the lesser of `numeric` and
    `clones`. Real alpha > 1. At k = n it is r itself, where `upper` still has its factor 4.

    Example:
        >>> round(Convex().rdp(SubsampledShuffle(1.0, 100, 100), 5), 10)
        0.0584936927
    """

    name = "convex"
    events = (SubsampledShuffle,)
    source = "joint convexity, on 000 Theorem 5.3.4 and Feldman et al. 2021"
    real_orders = True

    def worth(self, event: SubsampledShuffle) -> bool:
        """Say whether the rate is large enough to gain anything."""
        return event.rate >= 0.1

    def many(self, event: SubsampledShuffle, orders: Array, strict: bool = False) -> Array:
        """Return the bound at ascending orders."""
        shuffle, clones = Shuffle(event.epsilon0, event.sampled), Clones()
        inner = Numeric().many(shuffle, orders)
        swift = orders <= clones.worth_up_to(shuffle)
        inner[swift] = np.minimum(inner[swift], clones.many(shuffle, orders[swift]))
        inner *= orders - 1.0
        small = np.log1p(event.rate * np.expm1(np.minimum(inner, 30.0)))
        large = inner + math.log(event.rate)
        if event.rate < 1.0:
            large = np.logaddexp(large, math.log1p(-event.rate))
        return np.where(inner > 30.0, large, small) / (orders - 1.0)
