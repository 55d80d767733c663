"""The upper bound on the divergence of a shuffle behind `upper1`, evaluated and not estimated."""

import math
from dataclasses import dataclass
from typing import ClassVar

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.curves.others import average_rdp, cached
from raydp_sim.privacy.curves.special import special_ratios
from raydp_sim.privacy.events import Shuffle


@dataclass(frozen=True)
class Numeric(RdpBound):
    """Average the special pair's moment over how many others can be taken to agree.

    000 Theorem 5.3.4 (5.12) with the exact special form (5.33): with j ~ Bin(n - 1, 1/E),
    D_alpha <= log E[E_{j+1}(alpha)]/(alpha - 1) for every epsilon0-LDP randomizer and real
    alpha > 1; never above `upper1`. E_m falls in m (Lemma D.2.1), so a bucket of values of j is
    charged at its smallest: the value errs upwards, by under 1e-3 of itself, 2e-4 where 10^5 hide.

    Attributes:
        buckets: about how many around the mean, where there are more than 1000 values of j.

    Example:
        >>> round(Numeric().rdp(Shuffle(1.0, 100), 5), 10)
        0.0689504294
    """

    name: ClassVar[str] = "numeric"
    events = (Shuffle,)
    source = "000 Theorems 5.3.4 (5.12) and 5.3.5, evaluated"
    real_orders = True
    streams = True
    buckets: int = 96

    def worth_from(self, event: Shuffle) -> float:
        """Return half the order, or less, at which it falls below `clones` on a grid of cases."""
        return 0.2 * event.n * math.exp(-event.epsilon0) / max(1.0, event.epsilon0)

    def many(self, event: Shuffle, orders: Array, strict: bool = False) -> Array:
        """Return the bound at ascending orders."""

        def compute(new: Array) -> Array:
            return average_rdp(event.epsilon0, event.n, new, special_ratios, self.buckets)

        return cached(("numeric", event.epsilon0, event.n, self.buckets), orders, compute)
