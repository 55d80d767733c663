"""Divergences of noisy epochs of which only the end is seen: amplification by iteration.

Privacy amplification by iteration (Feldman et al. 2018; Jiang 2025, Theorem 4.3.9): with
non-expansive steps and noise N(0, (eta sigma)^2 I) in each, the record of step j of n costs
2 alpha G^2/(sigma^2 (n-j+1)) = alpha/(2 z^2 (n-j+1)) of Renyi divergence, z = sigma/(2 G).
"""

import math

import numpy as np


def iterated_rdp(order: float, multiplier: float, tail: int) -> float:
    """Return the divergence of a record that has so many noisy steps from its own on.

    Args:
        order: alpha > 1.
        multiplier: z, noise of a step over how far one record moves it.
        tail: noisy steps, its own included.

    Example:
        >>> iterated_rdp(2.0, 1.0, 4)
        0.25
    """
    return order / 2.0 / multiplier / multiplier / tail


def secret_rdp(order: float, multiplier: float, steps: int, private: int, epochs: int = 1) -> float:
    """Return the divergence of epochs that are played in one uniform and secret order.

    Joint convexity (Jiang 2025, Lemma C.2.1): a record is equally likely to be in any place, of
    which n - n_d are not used. The text approximates it by 2 alpha G^2/sigma^2 - log n, which is
    neither the limit (that has - log n/(alpha - 1)) nor close where the exponents are small.

    Args:
        order: alpha > 1.
        multiplier: z.
        steps: n of an epoch.
        private: n_d of them along private records.
        epochs: that have this order: 1 where it is drawn anew, K where it is drawn once.
    """
    if private == 0:
        return 0.0
    tails = np.arange(steps + 1 - private, steps + 1, dtype=np.float64)
    above = order - 1.0
    exponents = above * epochs * iterated_rdp(order, multiplier, 1) / tails
    # log(1 + mean(e^x - 1)): most exponents are tiny, and a sum of e^x would lose them.
    if exponents.max() < 600.0:
        return math.log1p(math.fsum(np.expm1(exponents)) / steps) / above
    log_sum = np.logaddexp.reduce(exponents)
    if steps > private:
        log_sum = np.logaddexp(log_sum, math.log(steps - private))
    return (float(log_sum) - math.log(steps)) / above
