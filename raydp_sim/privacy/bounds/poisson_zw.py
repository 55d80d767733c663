"""The general bound for Poisson sampling applied to a shuffle: a heuristic of the literature."""

import math

import numpy as np

from raydp_sim.privacy.bound import RdpBound
from raydp_sim.privacy.bounds.wbk import log_moments
from raydp_sim.privacy.curves.numerics import Array, log1p_exp, log_binomials, log_sum
from raydp_sim.privacy.events import SubsampledShuffle


class PoissonZw(RdpBound):
    """Return Zhu & Wang's 2019 bound on top of (5.4) at k = gamma n messages.

    000 Fig. 5.5. Heuristic: the theorem is for neighbours that add or remove a record, for which a
    shuffle whose count is visible has no finite divergence. For coins use `poisson_mixture`.

    Example:
        >>> f"{PoissonZw().rdp(SubsampledShuffle(1.0, 10**6, 1000), 2):.11e}"
        '5.90305036100e-09'
    """

    name = "poisson_zw"
    status = "heuristic"
    events = (SubsampledShuffle,)
    source = "Zhu & Wang 2019, on 000 (5.4)"

    def one(self, event: SubsampledShuffle, alpha: float) -> float:
        """Return the value at one order."""
        order, rate = int(alpha), event.rate
        powers = log_moments(event.epsilon0, event.sampled, order)
        c = np.where(np.arange(2, order + 1) == 2, 1.0, 3.0)
        # Cancellation-free: what the (1-g)^(alpha-1)(...) term lacks to 1 is given to the others.
        with np.errstate(divide="ignore"):
            exact = np.log(c * np.expm1(np.minimum(powers, 30.0)) + c - 1.0)
        large = powers + np.log(c) - np.exp(-np.maximum(powers, 30.0)) / c
        logs = np.where(powers > 30.0, large, exact)
        left = np.arange(order - 2, -1, -1, dtype=np.float64)
        stay = left * math.log1p(-rate) if rate < 1.0 else np.where(left == 0, 0.0, -math.inf)
        j = np.arange(2, order + 1, dtype=np.float64)
        terms: Array = log_binomials(order)[2:] + j * math.log(rate) + stay + logs
        return log1p_exp(float(log_sum(terms))) / (order - 1.0)
