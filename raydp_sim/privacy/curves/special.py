"""Two pairs whose likelihood ratio is a function of a binomial count, with proved moments.

The special pair: everybody alike but one; its divergence is exact, and largest for 2RR. The clone
pair: one of m fair coins is the victim's. The integrands of their moments, as functions of the
count, say which atoms (atoms.py) bound the average:

* special: f = (1 + y)^a with y linear in the count; f'' >= 0, and for a >= 2 also f''' >= 0.
* clones: f = (1 + u)^a (1 - u)^(1-a) with u linear in the count, |u| < 1; f'' = 4a (a-1)
  (1+u)^(a-2) (1-u)^(-a-1) >= 0, and f''' = f'' (2a - 1 + 3u)/(1 - u^2) >= 0 for a >= 2.

In either case f - 1 less its linear part at 0 is averaged, which is never negative. Any window of
counts is valid, because what is outside of it is charged; these leave little outside.
"""

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from raydp_sim.privacy.curves.atoms import Kind, count_atoms, piece
from raydp_sim.privacy.curves.binomials import bernstein, log_binomial_at, log_tail_below
from raydp_sim.privacy.curves.local import constants
from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.curves.ratios import NO_EDGES, Ratios
from raydp_sim.privacy.errors import NotApplicable

# Pieces per standard deviation: two moments, and one.
_FINE = {"above": 16.0, "below": 16.0, "ends": 64.0, "mean": 64.0}
_Number = TypeVar("_Number", float, Array)
# More counts than this are not summed.
_MOST = 1 << 26


def special_ratios(
    messages: int, epsilon0: float, top: float, kind: Kind, rate: float = 1.0
) -> Ratios:
    """Return the law of 1 + rate X, X = (s0/m)(K - m p0), K ~ Bin(m, p0), for orders up to `top`.

    000 Section 5.3 (5.33) and Theorem 5.3.3: the ratio of the two laws of m shuffled messages, of
    (d, ..., d, d') against (d, ..., d), is 1 + X for 2RR, and no epsilon0-LDP randomizer has a
    larger moment. Left of the window |y| < 1. Right of it w (1 + y)^a is log-concave, so at most
    geometric with the ratio at the window's end.

    Args:
        messages: m >= 1.
        epsilon0: > 0.
        top: largest order that the window is meant for; all orders are valid.
        kind: which side moments err to, and for which orders (atoms.py).
        rate: multiplies X, in (0, 1].

    Example:
        >>> law = special_ratios(1, 1.0, 32.0, "above")
        >>> round(math.exp(law.log_excess(np.array([2.0]), upward=True)[0]), 9)
        1.08616127
    """
    c = constants(epsilon0)
    mean, slope = messages * c.p0, rate * c.s0 / messages

    def rise(k: float) -> float:
        return top * slope / (1.0 + slope * (k - mean))

    peak = _peak(messages, c.p0, rise)
    bend = rise(peak) ** 2 / top
    width = (1.0 / peak + 1.0 / max(messages - peak, 1.0) + bend) ** -0.5
    # Beyond, e^-30 of the least moment that there is, about rate^2 v0/m.
    small = math.log(messages) - c.log_v0 - 2.0 * math.log(rate)
    reach = bernstein(messages, c.p0, 30.0 + max(0.0, small))
    high = min(messages, math.ceil(max(mean + reach, peak + 9.0 * width)) + 10)
    low = max(0, math.floor(mean - reach))
    at, logs = _counts(messages, c.p0, low, high, width, kind)
    y, edges = slope * (high - mean), NO_EDGES
    if high < messages:
        here = log_binomial_at(float(messages), c.p0, float(high))
        ratio = _log_ratio(high, messages, c.p0)
        edges = np.array([[here, math.log1p(y), ratio, math.log1p(slope / (1.0 + y))]])
    return Ratios(slope * (at - mean), logs, log_tail_below(low, messages, c.p0), edges)


def clone_ratios(messages: int, epsilon0: float, top: float, kind: Kind) -> Ratios:
    """Return the law of P/Q - 1 under Q for the clone pair of m = C + 1 messages.

    x ~ Bin(m, 1/2) has the law R, u = h (2x - m)/m, h = tanh(epsilon0/2), P = R (1 + u), Q = R (1 -
    u), so y = 2u/(1 - u). Left of the window Q |y| = 2 R |u| < 2 R. Right of it f = e^(2 (a - 1)
    atanh u) (1 + u): the exponent is convex, so below its chord to x = m, log(1 + u) is concave, so
    below its tangent, and R's ratios fall: together at most geometric.

    Args:
        messages: m >= 1.
        epsilon0: > 0.
        top: largest order that the window is meant for; all orders are valid.
        kind: "above" for orders >= 2, "ends" for orders > 1.

    Example:
        >>> law = clone_ratios(1, 1.0, 32.0, "above")
        >>> round(math.exp(law.log_excess(np.array([2.0]), upward=True)[0]), 9)
        1.08616127
    """
    mean, slope = 0.5 * messages, 2.0 * math.tanh(0.5 * epsilon0) / messages

    def rise(x: float) -> float:
        u, gap = _tilt(x, messages, epsilon0)
        return slope * (top / (1.0 + u) + (top - 1.0) / gap)

    peak = _peak(messages, 0.5, rise)
    width = (1.0 / peak + 1.0 / max(messages - peak, 1.0)) ** -0.5
    small = -math.log(messages) - 2.0 * math.log(slope)
    reach = bernstein(messages, 0.5, 30.0 + max(0.0, small))
    low = max(0, math.floor(mean - reach))
    high = min(messages, math.ceil(max(mean + reach, peak + 9.0 * width)) + 10)
    u, gap = _tilt(math.floor(peak), messages, epsilon0)
    most = log_binomial_at(float(messages), 0.5, math.floor(peak))
    most += top * math.log1p(u) - (top - 1.0) * math.log(gap)
    edges = NO_EDGES
    while high < messages:
        c, d, s, t = _clone_edge(high, messages, epsilon0)
        fall = s + top * t
        if fall < -1e-3 and c + top * d + fall - math.log(-math.expm1(fall)) <= most - 25.0:
            edges = np.array([[c, d, s, t]])
            break
        # There may be a second peak near x = m.
        high = min(messages, math.ceil(mean + 1.3 * (high - mean)))
    at, logs = _counts(messages, 0.5, low, high, width, kind)
    us, gaps = _tilt(at, messages, epsilon0)
    left = log_tail_below(low, messages, 0.5) + math.log(2.0)
    return Ratios(2.0 * us / gaps, logs + np.log(gaps), left, edges)


def _clone_edge(high: int, messages: int, epsilon0: float) -> tuple[float, float, float, float]:
    """Return a row of `Ratios.edges` for what lies right of `high` < m."""
    u, gap = _tilt(high, messages, epsilon0)
    loss = math.log1p(u) - math.log(gap)  # 2 atanh u = log(1 + y), epsilon0 at the end
    chord = (epsilon0 - loss) / (messages - high)
    tangent = 2.0 * math.tanh(0.5 * epsilon0) / messages / (1.0 + u)
    here = log_binomial_at(float(messages), 0.5, float(high)) + math.log(gap)
    return here, loss, _log_ratio(high, messages, 0.5) + tangent - chord, chord


def _tilt(x: _Number, messages: int, epsilon0: float) -> tuple[_Number, _Number]:
    """Return u and 1 - u, the latter without cancellation where u is near 1."""
    h = math.tanh(0.5 * epsilon0)
    u = h * (2.0 * x - messages) / messages
    return u, 2.0 / (1.0 + math.exp(epsilon0)) + h * 2.0 * (messages - x) / messages


def _counts(
    messages: int, p: float, low: int, high: int, width: float, kind: Kind
) -> tuple[Array, Array]:
    if high - low > _MOST:
        raise NotApplicable(f"sums over {high - low} counts of {messages} messages are not made")
    width = min(width, math.sqrt(messages * p * (1.0 - p)))
    return count_atoms(messages, p, low, high, piece(width, _FINE[kind]), kind)


def _log_ratio(k: float, messages: int, p: float) -> float:
    """Return log(Pr[k + 1]/Pr[k]) for k < messages; it falls in k."""
    return math.log((messages - k) / (k + 1.0) * (p / (1.0 - p)))


def _peak(messages: int, p: float, rise: Callable[[float], float]) -> float:
    """Return a count where the probability's fall overtakes the integrand's rise, rounded right."""
    low, high = messages * p, float(messages)
    odds = math.log(p / (1.0 - p))
    while high - low > 1.0:
        middle = 0.5 * (low + high)
        if math.log((messages - middle) / middle) + odds + rise(middle) > 0.0:
            low = middle
        else:
            high = middle
    return high
