"""Generic amplification by uniform sampling on top of the pair that dominates the shuffle."""

from functools import lru_cache

import numpy as np

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.bounds.clones import Clones
from raydp_sim.privacy.bounds.wbk import theorem9
from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import Shuffle, SubsampledShuffle

ORDER_MAX = 256


class WbkClones(RdpBound):
    """Bound D_alpha of a subsampled shuffle from `clones` of its k messages.

    Wang, Balle & Kasiviswanathan 2019, Theorem 9, holds for any bound r(j) on the shuffle; the
    dominating pair's is far below (5.4), which `wbk` takes. Integer alpha from 2 to 256.

    Example:
        >>> round(WbkClones().rdp(SubsampledShuffle(2.0, 10**6, 1000), 2), 10)
        6.95e-08
    """

    name = "wbk_clones"
    events = (SubsampledShuffle,)
    source = "Wang, Balle & Kasiviswanathan 2019, Theorem 9, on Feldman et al. 2021"
    streams = True

    def worth_up_to(self, event: SubsampledShuffle) -> float:
        """Return the largest order computed."""
        return ORDER_MAX

    def one(self, event: SubsampledShuffle, alpha: float) -> float:
        """Return the bound at one order."""
        order = int(alpha)
        if order > ORDER_MAX:
            raise NotApplicable(f"wbk_clones is computed up to order {ORDER_MAX}")
        powers = clone_moments(event.epsilon0, event.sampled, order)
        return theorem9(event.epsilon0, event.rate, powers)


def clone_moments(epsilon0: float, messages: int, order: int) -> Array:
    """Return (j - 1) r(j) for j = 2, ..., order <= 256, r of `clones`.

    Example:
        >>> round(float(clone_moments(1.0, 1000, 3)[0]), 6)
        0.002323
    """
    size = 32
    while size < order:
        size *= 2
    return _log_moments(epsilon0, messages, size)[: order - 1]


@lru_cache(maxsize=64)
def _log_moments(epsilon0: float, messages: int, order: int) -> Array:
    known = _log_moments(epsilon0, messages, order // 2) if order > 32 else np.zeros(0)
    orders = np.arange(len(known) + 2.0, order + 1.0)
    new = Clones(buckets=64).many(Shuffle(epsilon0, messages), orders) * (orders - 1.0)
    return np.append(known, new)
