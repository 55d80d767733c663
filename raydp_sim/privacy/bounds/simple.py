"""The simplified upper bound on the divergence of a shuffle, for small orders only."""

import math

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.curves.numerics import log1p_exp, log_expm1
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import Shuffle


class Simple(RdpBound):
    """Bound D_alpha by log(1 + 4 C(alpha, 2) (E - 1)^2/n)/(alpha - 1).

    000 Corollary 5.3.1 (5.5), integer alpha with alpha^4 e^(5 epsilon0) < n/9, strictly.

    Example:
        >>> round(Simple().rdp(Shuffle(0.5, 10**6), 2), 12)
        1.683356e-06
    """

    name = "simple"
    events = (Shuffle,)
    source = "000 Corollary 5.3.1 (5.5)"

    def one(self, event: Shuffle, alpha: float) -> float:
        """Return the bound at one order."""
        if not 4.0 * math.log(alpha) + 5.0 * event.epsilon0 < math.log(event.n / 9.0):
            raise NotApplicable(
                f"simple needs alpha^4 e^(5 epsilon0) < n/9; alpha is {alpha:g}, epsilon0 is "
                f"{event.epsilon0:g}, n is {event.n}"
            )
        bracket = math.log(2.0 * alpha * (alpha - 1.0) / event.n) + 2.0 * log_expm1(event.epsilon0)
        return log1p_exp(bracket) / (alpha - 1.0)
