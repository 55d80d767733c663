"""The divergence of the Gaussian mechanism."""

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.events import (
    GaussianRelease,
    GaussianReport,
    GaussianShuffle,
    SelfSampledGaussianRelease,
    SubsampledGaussianRelease,
    SubsampledGaussianShuffle,
)

_Noise = (
    GaussianRelease
    | GaussianReport
    | GaussianShuffle
    | SubsampledGaussianShuffle
    | SubsampledGaussianRelease
    | SelfSampledGaussianRelease
)


class Gaussian(RdpBound):
    """Return alpha/(2 sigma^2), exact, real alpha > 1 (Mironov 2017, Corollary 3).

    Of shuffled reports it is what one report alone has: the shuffle is a post-processing, and a
    sample a mixture, of which a divergence is at most the largest of its parts' (they are jointly
    quasi-convex).

    Example:
        >>> Gaussian().rdp(GaussianRelease(2.0), 8)
        1.0
    """

    name = "gaussian"
    events = (
        GaussianRelease,
        GaussianReport,
        GaussianShuffle,
        SubsampledGaussianShuffle,
        SubsampledGaussianRelease,
        SelfSampledGaussianRelease,
    )
    source = "Mironov 2017, Corollary 3"
    real_orders = True
    streams = True

    def one(self, event: _Noise, alpha: float) -> float:
        """Return the divergence at one order."""
        return alpha / 2.0 / event.noise_multiplier / event.noise_multiplier
