"""The lower bound's leading term, in closed form."""

import math

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.curves.local import constants
from raydp_sim.privacy.curves.numerics import log1p_exp
from raydp_sim.privacy.events import Shuffle


class SimpleLower(RdpBound):
    """Return log(1 + C(alpha, 2) v0/n)/(alpha - 1), which is at most `lower`.

    000 Corollary 5.3.2 (5.10), integer alpha: the odd central moments of Bin(n, p0) are
    not negative for p0 <= 1/2 (the printed argument by Jensen fails, the statement holds).

    Example:
        >>> round(SimpleLower().rdp(Shuffle(1.0, 100), 2), 9)
        0.010803049
    """

    name = "simple_lower"
    status = "lower"
    events = (Shuffle,)
    source = "000 Corollary 5.3.2 (5.10)"

    def one(self, event: Shuffle, alpha: float) -> float:
        """Return the bound at one order."""
        pairs = math.log(alpha * (alpha - 1.0) / 2.0)
        bracket = pairs + constants(event.epsilon0).log_v0 - math.log(event.n)
        return log1p_exp(bracket) / (alpha - 1.0)
