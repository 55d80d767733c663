"""The special pair: everybody alike but one. Its divergence is exact, and largest for 2RR."""

import math

import numpy as np

from raydp_sim.privacy.local import constants
from raydp_sim.privacy.numerics import (
    Array,
    log_binomial_pmf,
    log_mean_excesses,
    log_tail_below,
)


def log_special_excess(
    messages: int, epsilon0: float, orders: Array, rate: float = 1.0, upward: bool = False
) -> Array:
    """Return log(E[(1 + rate X)^alpha] - 1) per order, X = (s0/m)(K - m p0), K ~ Bin(m, p0).

    000 Section 5.3 (5.33) and Theorem 5.3.3: the ratio of the two laws of m shuffled messages, of
    (d, ..., d, d') against (d, ..., d), is 1 + X for 2RR, and no epsilon0-LDP randomizer has a
    larger moment. X has mean 0, so the non-negative excess over the linear part is averaged.

    Args:
        messages: m >= 1.
        epsilon0: > 0.
        orders: real, > 1, ascending.
        rate: multiplies X, in (0, 1].
        upward: add what the window of K cuts away, so that the value errs upwards; without it the
            value errs downwards, as a lower bound should.

    Example:
        >>> round(float(np.exp(log_special_excess(1, 1.0, np.array([2.0]))[0])), 9)
        1.08616127
    """
    c = constants(epsilon0)
    mean = messages * c.p0
    peak, tilted_sd = _peak(messages, c.p0, float(orders[-1]), rate * c.s0 / messages)
    # Beyond so many standard deviations less than e^-30 of the sum, itself > v0/m, is left.
    z = math.sqrt(2.0 * (30.0 + max(0.0, math.log(messages) - 2.0 * math.log(rate) - c.log_v0)))
    reach = z * math.sqrt(mean * (1.0 - c.p0)) + 60.0
    right = 9.0 * tilted_sd + 60.0
    low = max(0, math.floor(mean - reach))
    high = min(messages, math.ceil(max(mean + reach, peak + right)))
    # Every step-th count stands for step of them: the binomial's characteristic function, tilted by
    # whatever order, is below e^-300 at the frequencies that this folds onto 0 (Poisson summation).
    step = max(1, math.floor(min(math.sqrt(mean * (1.0 - c.p0)), tilted_sd) / 8.0))
    counts = np.arange(low, high + 1, step, dtype=np.float64)
    weights = log_binomial_pmf(counts, float(messages), c.p0) + math.log(step)
    y = (rate * c.s0 / messages) * (counts - mean)
    found = log_mean_excesses(weights, y, orders)
    if upward:
        left = log_tail_below(low, messages, c.p0)  # there the excess is at most alpha |y| < alpha
        ends = [_right_tail(weights, y, float(alpha), step, high == messages) for alpha in orders]
        found = np.logaddexp(np.logaddexp(found, left + np.log(orders)), ends)
    return found


def _peak(messages: int, p: float, alpha: float, slope: float) -> tuple[float, float]:
    """Return where w (1 + y)^alpha is largest, rounded right, and its width there.

    Its log is concave in K; smaller orders have their peak further left.
    """
    mean = messages * p
    low, high = mean, float(messages)
    odds = math.log(p / (1.0 - p))
    for _ in range(30):
        middle = 0.5 * (low + high)
        rise = alpha * slope / (1.0 + slope * (middle - mean))
        if math.log((messages - middle) / middle) + odds + rise > 0.0:
            low = middle
        else:
            high = middle
        if high - low <= 1.0:
            break
    room = max(messages - high, 1.0)
    curvature = 1.0 / high + 1.0 / room + alpha * (slope / (1.0 + slope * (high - mean))) ** 2
    return high, curvature**-0.5


def _right_tail(weights: Array, y: Array, alpha: float, step: int, nothing_left: bool) -> float:
    """Bound what lies right of the window: w (1 + y)^alpha is log-concave, so geometric or less."""
    if nothing_left:
        return -math.inf
    last, before = (float(weights[i] + alpha * np.log1p(y[i])) for i in (-1, -2))
    # The window ends right of the peak by construction, so it falls from one count to the next.
    fall = (last - before) / step
    return last + fall - math.log(-math.expm1(fall))


def log_clone_excess(messages: int, epsilon0: float, orders: Array) -> Array:
    """Return log(E_Q[(P/Q)^alpha] - 1) per order for the clone pair of m = C + 1 messages, upwards.

    x ~ Bin(m, 1/2), u = tanh(epsilon0/2) (2x - m)/m, P = R (1 + u), Q = R (1 - u); y = P/Q - 1 has
    mean 0 under Q.

    Example:
        >>> round(float(np.exp(log_clone_excess(1, 1.0, np.array([2.0]))[0])), 9)
        1.08616127
    """
    most = float(orders[-1]) * epsilon0
    # Beyond, with probability 2 e^-(most + 60) by Hoeffding, the ratio's power is at most e^most.
    reach = math.ceil(math.sqrt(0.5 * messages * (most + 60.0)))
    low = max(0, math.floor(0.5 * messages) - reach)
    high = min(messages, math.ceil(0.5 * messages) + reach)
    # As above; tilted towards one end the law narrows, so there every count is taken.
    step = max(1, math.floor(math.sqrt(messages) / 16.0)) if high <= 0.95 * messages else 1
    counts = np.arange(low, high + 1, step, dtype=np.float64)
    u = math.tanh(0.5 * epsilon0) * (2.0 * counts - messages) / messages
    weights = log_binomial_pmf(counts, float(messages), 0.5) + np.log1p(-u) + math.log(step)
    found = log_mean_excesses(weights, 2.0 * u / (1.0 - u), orders)
    if low > 0:
        found = np.logaddexp(found, math.log(2.0) - 60.0)
    return found
