"""The divergence of a shuffle that clients join by their own coins, the count visible."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.bounds.upper import log_brackets
from raydp_sim.privacy.curves.binomials import rounding
from raydp_sim.privacy.curves.local import local_rdp
from raydp_sim.privacy.curves.numerics import log1p_exp, log_add, log_expm1, log_sum
from raydp_sim.privacy.curves.windows import central, window
from raydp_sim.privacy.events import SelfSampledShuffle

_EXACT = 1500  # counts each for itself, up to so many
_TERMS = 1 << 20  # a count costs as many terms as the order; with more, counts share buckets


@dataclass(frozen=True)
class PoissonMixture(RdpBound):
    """Average `upper`, capped by one message's own divergence, over the visible count K.

    Given K = k the round is exactly the subsampled shuffle of k of n clients, and K ~ Bin(n, gamma)
    is the same for neighbours. Integer alpha >= 2, any epsilon0-LDP randomizer, replace-one. Counts
    beyond the window are charged at the cap, and a bucket of counts at the larger rate and the
    fewer messages of its ends (`upper` rises with the one and falls with the other); rounding of
    the probabilities is added. So the value errs upwards.

    Example:
        >>> round(PoissonMixture().rdp(SelfSampledShuffle(1.0, 10**6, 0.001), 2), 12)
        2.358e-08
    """

    name: ClassVar[str] = "poisson_mixture"
    events = (SelfSampledShuffle,)
    source = "000 Theorem 5.4.1, mixed over the visible count"
    streams = True
    buckets: int = 96

    def one(self, event: SelfSampledShuffle, alpha: float) -> float:
        """Return the bound at one order."""
        e0, n, order = event.epsilon0, event.clients, int(alpha)
        if e0 == 0.0:
            return 0.0
        low, high = window(n, event.probability)
        most = min(_EXACT, _TERMS // order)
        buckets = max(8, min(self.buckets, most // 2))
        pieces = central(n, event.probability, None if high - low <= most else buckets)
        cap = log_expm1((alpha - 1.0) * local_rdp(e0, alpha))
        fewest = np.maximum(pieces.low, 1.0)
        losses = np.minimum(cap, log_brackets(e0, fewest, pieces.high / n, order))
        inside = float(log_sum(pieces.log_mass + losses))
        rest = log_add(pieces.log_below, pieces.log_above) + cap
        return log1p_exp(log_add(inside, rest) + rounding(n)) / (alpha - 1.0)
