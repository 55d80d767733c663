"""The divergence of the Gaussian mechanism on a Poisson sample."""

import math

import numpy as np

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.curves.numerics import log1p_exp, log_binomials, log_sum, order_rounding
from raydp_sim.privacy.events import SubsampledGaussian


class PoissonGaussian(RdpBound):
    """Return the tight binomial formula, integer alpha >= 2, neighbours add or remove a record.

    Mironov, Talwar & Zhang 2019, "Renyi differential privacy of the sampled Gaussian mechanism",
    Section 3.3: the bracket is 1 + sum over k >= 2 of
    C(alpha, k) q^k (1 - q)^(alpha - k) (e^((k^2 - k)/(2 sigma^2)) - 1).

    Example:
        >>> round(PoissonGaussian().rdp(SubsampledGaussian(1.0, 0.01), 2), 9)
        0.000171813
    """

    name = "subsampled_gaussian"
    events = (SubsampledGaussian,)
    source = "Mironov, Talwar & Zhang 2019, Section 3.3"
    streams = True

    def one(self, event: SubsampledGaussian, alpha: float) -> float:
        """Return the divergence at one order."""
        order, q = int(alpha), event.rate
        k = np.arange(2, order + 1, dtype=np.float64)
        power = (k * k - k) / (2.0 * event.noise_multiplier**2)
        logs = np.log(np.expm1(np.minimum(power, 30.0)))
        logs = np.where(power > 30.0, power + np.log1p(-np.exp(-np.maximum(power, 30.0))), logs)
        left = order - k
        stay = left * math.log1p(-q) if q < 1.0 else np.where(left == 0, 0.0, -math.inf)
        terms = log_binomials(order)[2:] + k * math.log(q) + stay + logs
        return log1p_exp(float(log_sum(terms)) + order_rounding(order)) / (alpha - 1.0)
