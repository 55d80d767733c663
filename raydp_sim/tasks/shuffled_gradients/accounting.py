"""What shuffled gradients cost when only the last iterate is released.

Privacy amplification by iteration (Feldman et al. 2018; 004 Theorem 4.3.9): with non-expansive
steps and noise N(0, (eta sigma)^2) in each, the record of step j of an epoch costs
2 alpha G^2/(sigma^2 (n-j+1)) of Renyi divergence in that epoch. Epochs compose. Steps are
non-expansive up to eta = 2/L*, L* the largest smoothness of all records that are used; beyond that
the bound fails.
"""

import math

import numpy as np
import scipy

from raydp_sim.errors import bad_field
from raydp_sim.privacy.curves.iteration import secret_rdp
from raydp_sim.tasks.shuffled_gradients.plan import Epoch, private_epochs, tail


def check_step(step: float, smoothest: float) -> None:
    """Refuse a step size for which nothing is proved.

    Lemma 4.5.2 prints 1/L with the average smoothness; its proof needs the largest, L*, and 2/L* is
    enough.

    Example:
        >>> check_step(3.0, 1.0)
        Traceback (most recent call last):
            ...
        raydp_sim.errors.InputError: step_size is 3.0; the bound holds up to 2/L* = 2, L* the \
largest smoothness of a record
    """
    if not 0.0 < step <= 2.0 / smoothest:
        raise bad_field(
            "step_size",
            step,
            f"the bound holds up to 2/L* = {2.0 / smoothest:g}, L* the largest smoothness of a "
            "record",
        )


def divergence(clip: float, sigma: float, epochs: int, tail: int) -> float:
    """Return c of the Renyi divergence c alpha of a run: 2 G^2 E / (sigma^2 tail).

    Args:
        clip: G, the largest gradient of a private record.
        sigma: of the noise of a step, in units of the gradient.
        epochs: E that use private records.
        tail: noisy steps from the last private record of an epoch on, itself included.
    """
    return 2.0 * clip**2 * epochs / (sigma**2 * tail)


def epsilon(coefficient: float, delta: float) -> float:
    """Return the epsilon of a divergence c alpha: c + 2 sqrt(c log(1/delta)), at the best order.

    Table 4.3's order is the best one less 1.

    Example:
        >>> round(epsilon(divergence(10.0, 756.6014, 50, 1), 1e-6), 6)
        1.0
    """
    return coefficient + 2.0 * math.sqrt(coefficient * -math.log(_delta(delta)))


def sigma_for(target: float, delta: float, clip: float, epochs: int, tail: int) -> float:
    """Return the least noise of (epsilon, delta).

    sigma = G sqrt(2 E / (tail c)), c = (sqrt(L + epsilon) - sqrt(L))^2, L = log(1/delta).

    Example:
        >>> round(sigma_for(1.0, 1e-6, 10.0, 50, 501), 4)
        33.8025
    """
    if not 0.0 < target < math.inf:
        raise bad_field("epsilon", target, "it must be finite and > 0")
    log_inverse = -math.log(_delta(delta))
    # Without the difference of two roots that are nearly equal at small epsilon.
    root = target / (math.sqrt(log_inverse + target) + math.sqrt(log_inverse))
    return clip * math.sqrt(2.0 * epochs / tail) / root


def secret_divergence(
    order: float, clip: float, sigma: float, records: int, private: int, epochs: int = 1
) -> float:
    """Return the Renyi divergence of epochs played in one secret order; see `secret_rdp`.

    Args:
        order: alpha > 1.
        clip: G.
        sigma: of the noise of a step.
        records: n, steps of an epoch.
        private: n_d of them along private records.
        epochs: that have this order: 1 where it is drawn anew, K where it is drawn once.
    """
    return secret_rdp(order, sigma / (2.0 * clip), records, private, epochs)


def secret_epsilon(
    delta: float,
    clip: float,
    sigma: float,
    records: int,
    private: int,
    epochs: int,
    once: bool = False,
) -> float:
    """Return the epsilon of a run with secret orders, at about the best Renyi order.

    They are fresh in every epoch; or one for all of them, drawn `once`.
    """
    log_inverse = -math.log(_delta(delta))
    alike, times = (epochs, 1) if once else (1, epochs)

    def at(log_above: float) -> float:
        above = math.exp(log_above)
        spent = secret_divergence(1.0 + above, clip, sigma, records, private, alike)
        return times * spent + log_inverse / above

    # Every order is valid; a grid finds the valley, and a line search its floor.
    grid = np.linspace(math.log(1e-3), math.log(1e4), 60)
    lowest = int(np.argmin([at(float(point)) for point in grid]))
    around = float(grid[max(lowest - 1, 0)]), float(grid[min(lowest + 1, len(grid) - 1)])
    found = scipy.optimize.minimize_scalar(
        at, bounds=around, method="bounded", options={"xatol": 1e-6}
    )
    return min(float(found.fun), at(float(grid[lowest])))


def secret_sigma_for(
    target: float,
    delta: float,
    clip: float,
    records: int,
    private: int,
    epochs: int,
    once: bool = False,
) -> float:
    """Return the least noise of (epsilon, delta) with secret orders, fresh or drawn `once`.

    Example:
        >>> round(secret_sigma_for(5.0, 1e-6, 10.0, 1000, 1000, 50), 2)
        28.75
    """
    high = sigma_for(target, delta, clip, epochs, records + 1 - private)

    def over(log_sigma: float) -> float:
        sigma = math.exp(log_sigma)
        return secret_epsilon(delta, clip, sigma, records, private, epochs, once) - target

    low = math.log(high) - 1.0
    while over(low) < 0.0:
        low -= 1.0
    found = scipy.optimize.brentq(over, low, math.log(high) + 1e-9, xtol=1e-10)
    return math.exp(float(found) + 1e-9)


def calibrated(
    target: float,
    delta: float,
    clip: float,
    plan: tuple[Epoch, ...],
    records: int,
    secret: bool = False,
    *,
    once: bool = False,
    every_step: bool = False,
) -> float:
    """Return the least noise at which a run of these epochs is (epsilon, delta)-DP.

    Args:
        target: epsilon.
        delta: that goes with it.
        clip: G.
        plan: of the epochs.
        records: n, steps of an epoch.
        secret: whether orders are uniform and unknown to whoever sees the result.
        once: whether one order is drawn for all epochs.
        every_step: whether every iterate is seen, so that later noise hides nothing.

    Example:
        >>> from raydp_sim.tasks.shuffled_gradients.plan import epochs
        >>> round(calibrated(5.0, 1e-6, 10.0, epochs("interleaved", 50, 1000), 1000), 4)
        7.1971
    """
    used = private_epochs(plan)
    if secret and used:
        most = max(epoch.private for epoch in plan)
        return secret_sigma_for(target, delta, clip, records, most, used, once)
    return sigma_for(target, delta, clip, used, 1 if every_step else tail(plan, records))


def descent_epsilon(delta: float, clip: float, sigma: float, records: int, steps: int) -> float:
    """Return the epsilon of DP-GD, for reference: steps along the mean gradient of all records.

    Noise N(0, sigma^2 I) on the mean, which one record moves by 2 G/n: 2 alpha G^2 T/(n^2 sigma^2).
    """
    return epsilon(divergence(clip / records, sigma, steps, 1), delta)


def _delta(delta: float) -> float:
    if not 0.0 < delta < 1.0:
        raise bad_field("delta", delta, "it must lie in (0, 1)")
    return delta
