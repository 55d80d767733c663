"""The divergence of the Gaussian mechanism."""

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.events import GaussianRelease, GaussianReport


class Gaussian(RdpBound):
    """Return alpha/(2 sigma^2), exact, real alpha > 1 (Mironov 2017, Corollary 3).

    Example:
        >>> Gaussian().rdp(GaussianRelease(2.0), 8)
        1.0
    """

    name = "gaussian"
    events = (GaussianRelease, GaussianReport)
    source = "Mironov 2017, Corollary 3"
    real_orders = True
    streams = True

    def one(self, event: GaussianRelease | GaussianReport, alpha: float) -> float:
        """Return the divergence at one order."""
        return alpha / 2.0 / event.noise_multiplier / event.noise_multiplier
