"""The divergence of the pair that dominates every shuffle."""

import math
from dataclasses import dataclass
from typing import ClassVar

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.curves.others import average_rdp, cached
from raydp_sim.privacy.curves.special import clone_ratios
from raydp_sim.privacy.events import Shuffle


@dataclass(frozen=True)
class Clones(RdpBound):
    """Return D_alpha of the pair of Feldman, McMillan and Talwar's reduction, for real alpha > 1.

    Feldman et al. 2021, "Hiding among the clones": each other client is a clone of one of the two
    inputs with probability 1/E, which dominates every epsilon0-LDP randomizer. A further clone is
    post-processing, so buckets of clones are charged at their fewest: errs upwards by under 1e-3,
    by 2e-4 where 10^5 are clones.

    Attributes:
        buckets: about how many around the mean, where there are more than 1000 values.

    Example:
        >>> round(Clones().rdp(Shuffle(1.0, 100), 5), 10)
        0.0584936927
    """

    name: ClassVar[str] = "clones"
    events = (Shuffle,)
    source = "Feldman et al. 2021, Theorem 3.1 and its dominating pair"
    real_orders = True
    streams = True
    buckets: int = 96

    def worth_up_to(self, event: Shuffle) -> float:
        """Return the order beyond which every count matters, and `numeric` is less anyway."""
        if event.epsilon0 == 0.0 or event.n < 1000:
            return math.inf
        return max(64.0, 0.25 * event.n * math.exp(-event.epsilon0) / event.epsilon0)

    def many(self, event: Shuffle, orders: Array, strict: bool = False) -> Array:
        """Return the bound at ascending orders."""

        def compute(new: Array) -> Array:
            return average_rdp(event.epsilon0, event.n, new, clone_ratios, self.buckets)

        return cached(("clones", event.epsilon0, event.n, self.buckets), orders, compute)
