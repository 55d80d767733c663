"""The divergence of a round that samples clients, and then points of each."""

import math

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.bounds.upper import log_bracket
from raydp_sim.privacy.curves.numerics import log1p_exp
from raydp_sim.privacy.events import CldpRound


class Cldp(RdpBound):
    """Bound D_alpha of a CLDP-SGD round, neighbours differing in one point, integer alpha >= 2.

    With one point per client: `upper` at rate k/(m r) and k messages. With s > 1: 1 + (k/m) B, B
    the bracket of `upper` at rate s/r and k s messages, by joint convexity over the client's being
    sampled. Both checked by enumeration.

    Example:
        >>> bool(Cldp().rdp(CldpRound(1.0, 3, 2, 2, 1), 2) > 0.0597118)
        True
    """

    name = "cldp"
    events = (CldpRound,)
    source = "000 Theorem 5.4.1, extended to two-stage sampling"
    streams = True

    def one(self, event: CldpRound, alpha: float) -> float:
        """Return the bound at one order."""
        k, s, order = event.sampled_clients, event.sampled_points, int(alpha)
        if s == 1:
            bracket = log_bracket(event.epsilon0, k, event.rate, order)
        else:
            bracket = log_bracket(event.epsilon0, k * s, s / event.points, order)
            bracket += math.log(k / event.clients)
        return log1p_exp(bracket) / (alpha - 1.0)
