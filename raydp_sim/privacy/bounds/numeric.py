"""The upper bound on the divergence of a shuffle behind `upper1`, evaluated and not estimated."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raydp_sim.privacy.bounds.base import RdpBound
from raydp_sim.privacy.events import Shuffle
from raydp_sim.privacy.local import local_rdp
from raydp_sim.privacy.numerics import Array
from raydp_sim.privacy.special import log_special_excess
from raydp_sim.privacy.windows import Buckets, below, central, window

# What a cut end may add, relative to the sum: e^-25.
_NEGLIGIBLE = -25.0
_EXACT = 1000


@dataclass(frozen=True)
class Numeric(RdpBound):
    """Average the special pair's moment over how many others can be taken to agree.

    000 Theorem 5.3.4 (5.12) with the exact special form (5.33): with j ~ Bin(n - 1, 1/E),
    D_alpha <= log E[E_{j+1}(alpha)]/(alpha - 1) for every epsilon0-LDP randomizer and real
    alpha > 1; never above `upper1`. E_m falls in m (Lemma D.2.1), so a bucket of values of j is
    charged at its smallest: the value errs upwards, by about 1e-5 of itself.

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
    buckets: int = 192

    def many(self, event: Shuffle, orders: Array, strict: bool = False) -> Array:
        """Return the bound at ascending orders."""
        if event.epsilon0 == 0.0:
            return np.zeros(len(orders))
        n, p = event.n - 1, math.exp(-event.epsilon0)
        low, high = window(n, p)
        pieces = central(n, p, None if high - low < _EXACT else self.buckets)
        sums = _average(event.epsilon0, pieces, orders)
        caps = np.array([(a - 1.0) * local_rdp(event.epsilon0, a) for a in orders])
        cut = pieces.log_below + caps > sums + _NEGLIGIBLE
        if np.any(cut) and pieces.low[0] > 0:
            # At large orders few agreeing others, though rare, carry the moment.
            first = int(pieces.low[0]) - 1
            more = below(n, p, first, exact=first < _EXACT)
            sums[cut] = np.logaddexp(sums[cut], _average(event.epsilon0, more, orders[cut]))
            rest = np.where(cut, more.log_below, pieces.log_below)
        else:
            rest = np.full(len(orders), pieces.log_below)
        logs: Array = np.logaddexp(0.0, np.logaddexp(sums, rest + caps))
        return logs / (orders - 1.0)


def _average(epsilon0: float, pieces: Buckets, orders: Array) -> Array:
    total = np.full(len(orders), -math.inf)
    masses = pieces.log_mass.copy()
    masses[-1] = np.logaddexp(masses[-1], pieces.log_above)  # further right E_m is smaller still
    for low, mass in zip(pieces.low, masses, strict=True):
        excess = log_special_excess(int(low) + 1, epsilon0, orders, upward=True)
        total = np.logaddexp(total, mass + excess)
    return total
