"""The divergence of a shuffle by Erlingsson et al. 2019."""

import math

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.events import Shuffle


class Efm19(RdpBound):
    """Bound D_alpha by alpha 2 e^(4 epsilon0) (E - 1)^2/n, real alpha > 1.

    Erlingsson et al. 2019, Remark 1 (000 (5.8)).

    Example:
        >>> round(Efm19().rdp(Shuffle(0.1, 10_000), 2), 10)
        6.6004e-06
    """

    name = "efm19"
    events = (Shuffle,)
    source = "Erlingsson et al. 2019, Remark 1"
    real_orders = True

    def one(self, event: Shuffle, alpha: float) -> float:
        """Return the bound at one order."""
        return alpha * efm19_rho(event.epsilon0, event.n)


def efm19_rho(epsilon0: float, n: int) -> float:
    """Return the rho of D_alpha <= rho alpha.

    Example:
        >>> round(efm19_rho(1.0, 10_000), 6)
        0.03224
    """
    return 2.0 * math.exp(4.0 * epsilon0) * math.expm1(epsilon0) ** 2 / n
