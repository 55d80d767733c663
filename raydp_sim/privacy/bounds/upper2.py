"""The upper bound on the divergence of a shuffle that also holds for real orders."""

import math

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.curves.local import bar
from raydp_sim.privacy.curves.numerics import log_add, log_expm1
from raydp_sim.privacy.events import Shuffle


class Upper2(RdpBound):
    """Bound D_alpha of n shuffled messages of any epsilon0-LDP randomizer, for real alpha > 1.

    000 Theorem 5.3.2 (5.7) with its exponents as in the proof (5.16). Diverges as alpha falls to 1.

    Example:
        >>> round(Upper2().rdp(Shuffle(0.1, 10_000), 2), 10)
        9.7798e-06
    """

    name = "upper2"
    events = (Shuffle,)
    source = "000 Theorem 5.3.2 (5.7)"
    real_orders = True

    def one(self, event: Shuffle, alpha: float) -> float:
        """Return the bound at one order."""
        e0, n = event.epsilon0, event.n
        power = 0.0 if e0 == 0.0 else math.exp(2.0 * log_expm1(e0)) * alpha**2 / bar(n, e0)
        return log_add(power, e0 * alpha - (n - 1) / (8.0 * math.exp(e0))) / (alpha - 1.0)
