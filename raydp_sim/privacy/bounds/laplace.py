"""The divergence of the Laplace mechanism."""

import math

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.events import LaplaceRelease


class Laplace(RdpBound):
    """Return the exact D_alpha of Laplace noise of scale 1/epsilon, real alpha > 1.

    Mironov 2017, Proposition 6.

    Example:
        >>> round(Laplace().rdp(LaplaceRelease(1.0), 2), 9)
        0.61912363
    """

    name = "laplace"
    events = (LaplaceRelease,)
    source = "Mironov 2017, Proposition 6"
    real_orders = True
    streams = True

    def one(self, event: LaplaceRelease, alpha: float) -> float:
        """Return the divergence at one order."""
        up, down = (alpha - 1.0) * event.epsilon, -alpha * event.epsilon
        share = alpha / (2.0 * alpha - 1.0)
        if up > 30.0:
            rest = math.log(share) + math.log1p((1.0 / share - 1.0) * math.exp(down - up))
            return event.epsilon + rest / (alpha - 1.0)
        # The linear parts cancel exactly, so they are left out.
        bracket = share * _beyond_linear(up) + (1.0 - share) * _beyond_linear(down)
        return math.log1p(bracket) / (alpha - 1.0)


def _beyond_linear(x: float) -> float:
    """Return e^x - 1 - x."""
    if abs(x) > 1e-2:
        return math.expm1(x) - x
    return x * x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0 * (1.0 + x / 5.0 * (1.0 + x / 6.0))))
