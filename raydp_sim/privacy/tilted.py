"""Mixtures of tilted coin pairs: the common form of all shuffle bounds here, and its divergences.

A tilted coin pair (m, h), m >= 1 coins and 0 <= h < 1, is P = R (1 + h t) against Q = R (1 - h t)
with R = Bin(m, 1/2) the law of the number x of heads and t = (2x - m)/m. It is what remains of a
shuffle once one knows how many messages look like either of the victim's two (clones.py,
variation.py): one of m coins is the victim's, and heads has probability (1 + h)/2 or (1 - h)/2.
Exchanging heads and tails exchanges P and Q, so both directions have the same divergences.

Facts used to err upwards. (1) With m + 1 coins the divergence is no larger: adding a fair coin
is a post-processing. (2) It is convex in h and 0 at h = 0, so it does not decrease with h, and
mass at h between h0 and h1 may be split to the two ends in proportion.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc

from raydp_sim.privacy.binomials import Floats, log_binomial

# Rounding of the special functions is charged to the bound, relatively.
_ROUNDING = 1e-11
# What may underflow in the sums is charged to delta.
_UNDERFLOW = 1e-305
# Charged to sums over x.
_SERIES = 1e-9
# Components that are decided on together, and array elements at a time.
_BLOCK = 256
_ELEMENTS = 1 << 18


@dataclass(frozen=True)
class TiltedCoins:
    """A mixture of tilted coin pairs whose component is revealed.

    Mass that is missing from 1 has no loss (components with h = 0).

    Attributes:
        coins: m >= 1 of each component.
        tilt: h in [0, 1) of each component.
        log_mass: logarithm of (an upper bound on) its probability.
        most: largest loss, 2 atanh(max h) or a bound on it; the pair is (most, 0)-DP.
    """

    coins: Floats
    tilt: Floats
    log_mass: Floats
    most: float

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on the hockey-stick divergence at epsilon >= 0.

        In one component the best event is x >= k, k the first value at which P > e^epsilon Q, and
        the sum of R(x) t over x >= k is (k/m) R(k), hence

            delta = h (1 + e^epsilon) (k/m) R(k) - (e^epsilon - 1) Pr[x >= k].

        Example:
            >>> one = TiltedCoins(np.ones(1), np.full(1, math.tanh(0.5)), np.zeros(1), 1.0)
            >>> round(one.delta(0.0), 9)
            0.462117157
        """
        if not epsilon >= 0.0:
            raise ValueError(f"epsilon is {epsilon}; it must be >= 0")
        if epsilon >= self.most:
            return 0.0
        # Close to 1 (a loss above 27) a tilt has no digits left and counts as 1.
        tilt = np.where(self.tilt > 1.0 - 1e-12, 1.0, self.tilt)
        ratio = math.tanh(0.5 * epsilon) / np.maximum(tilt, 1e-300)
        seen = (ratio < 1.0) | (tilt == 1.0)
        m, h = self.coins[seen], tilt[seen]
        # Rounding could give k = m + 1 where the exact term is below 1e-15 of R(m).
        k = np.minimum(np.floor(0.5 * m * (1.0 + ratio[seen])) + 1.0, m)
        at_k = np.exp(log_binomial(m, 0.5, k))
        gain = h * (2.0 + math.expm1(epsilon)) * (k / m) * at_k
        cost = math.expm1(epsilon) * betainc(k, m - k + 1.0, 0.5)
        value = np.maximum(gain * (1.0 + _ROUNDING) - cost * (1.0 - _ROUNDING), 0.0)
        total = float(np.exp(self.log_mass[seen]) @ value)
        return min(1.0, total * (1.0 + _ROUNDING) + _UNDERFLOW)

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon, rounded up, at which `delta` is enough.

        Example:
            >>> one = TiltedCoins(np.ones(1), np.full(1, math.tanh(0.5)), np.zeros(1), 1.0)
            >>> round(one.epsilon(0.1), 6)
            0.852905
        """
        if not 0.0 < delta < 1.0:
            raise ValueError(f"delta is {delta}; it must be in (0, 1)")
        if self.most == 0.0 or self.delta(0.0) <= delta:
            return 0.0
        target = math.log(delta)

        def excess(epsilon: float) -> float:
            value = self.delta(epsilon)
            return (math.log(value) if value > 0.0 else -800.0) - target

        if excess(self.most * (1.0 - 1e-9)) > 0.0:
            return self.most
        high = self.most
        while excess(0.5 * high) <= 0.0:
            high *= 0.5
        root = float(brentq(excess, 0.5 * high, high, xtol=1e-9 * high, rtol=1e-9))
        while excess(root) > 0.0:
            root = min(self.most, root * (1.0 + 2e-9))
        return root

    def rdp(self, alpha: float) -> float:
        """Return an upper bound on the Renyi divergence of order alpha > 1.

        It is log(1 + E sum_x R(x) (phi(t) - 1))/(alpha - 1), phi = (1+ht)^alpha (1-ht)^(1-alpha).
        A component is replaced by its largest value phi(1) only where that is e^-40 of the rest.

        Example:
            >>> one = TiltedCoins(np.ones(1), np.full(1, math.tanh(0.5)), np.zeros(1), 1.0)
            >>> round(one.rdp(2.0), 6)
            0.735326
        """
        if not 1.0 < alpha < math.inf:
            raise ValueError(f"alpha is {alpha}; it must be finite and > 1")
        if np.max(self.tilt, initial=0.0) > 1.0 - 1e-12:
            return self.most  # epsilon0 above 27: 1 - h has no digits left
        order = np.argsort(-self.log_mass)
        log_mass, h, m = self.log_mass[order], self.tilt[order], self.coins[order]
        largest = _largest(h, alpha)
        bracket, done = -math.inf, 0
        while done < len(m):
            # Components come by falling mass, so that most of the last ones need no sum.
            block = slice(done, done + _BLOCK)
            rare = log_mass[block] + largest[block] <= bracket - 40.0
            logs = np.where(rare, log_mass[block] + largest[block], -np.inf)
            if not rare.all():
                full = ~rare
                values = _log_excess(m[block][full], h[block][full], alpha)
                logs[full] = log_mass[block][full] + values
            bracket = float(np.logaddexp(bracket, np.logaddexp.reduce(logs)))
            done += _BLOCK
        value = float(np.logaddexp(0.0, bracket)) / (alpha - 1.0)
        return min(value * (1.0 + _SERIES), self.most)


def _largest(h: Floats, alpha: float) -> Floats:
    """Return log phi(1), the most a component can contribute."""
    return (alpha - 1.0) * 2.0 * np.arctanh(h) + np.log1p(h)


def _log_excess(m: Floats, h: Floats, alpha: float) -> Floats:
    """Return log sum_x R(x) (phi(t) - 1) of components, from above.

    Away from the ends the sum over x is taken with a step of sd/4: by Poisson summation the
    trapezoidal sum of a weight with the binomial's local width, at least 0.43 sd where x <= 0.95 m,
    errs by less than e^-50, relatively.
    """
    sd = 0.5 * np.sqrt(m)
    # Past t = sqrt(2 (B + 60)/m) the whole tail is below e^-60 of 1, B the largest exponent.
    reach = np.ceil(sd * np.sqrt(2.0 * (_largest(h, alpha) + 60.0)))
    low = np.maximum(0.0, np.floor(0.5 * m) - reach)
    high = np.minimum(m, np.ceil(0.5 * m) + reach)
    step = np.where(high <= 0.95 * m, np.maximum(1.0, np.floor(sd / 4.0)), 1.0)
    points = np.ceil((high - low) / step).astype(np.int64) + 1
    out = np.empty_like(m)
    # Components with about as many points share an array.
    groups = np.floor(2.0 * np.log2(points))
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        size = int(points[members].max())
        for part in np.array_split(members, math.ceil(len(members) * size / _ELEMENTS)):
            out[part] = _sum_terms(m[part], h[part], low[part], step[part], size, alpha)
    return out


def _sum_terms(m: Floats, h: Floats, low: Floats, step: Floats, size: int, alpha: float) -> Floats:
    """Return the logarithm of each component's sum over x = low + i step, i < size, x <= m."""
    x = low[:, None] + step[:, None] * np.arange(size)
    u = h[:, None] * np.clip((2.0 * x - m[:, None]) / m[:, None], -1.0, 1.0)
    bend = alpha * _log_bend(u) - (alpha - 1.0) * _log_bend(-u)
    exponent = (2.0 * alpha - 1.0) * u + bend
    weight = log_binomial(m[:, None], 0.5, x) + np.log(step[:, None])
    top = np.maximum(np.max(weight + exponent, axis=1, keepdims=True), 0.0)
    # The sum of R t is 0, so the linear part of phi is left out: nothing cancels. Large exponents
    # are taken in logs, without the -1.
    plain = exponent < 600.0
    excess = np.where(plain, _exp_bend(np.where(plain, exponent, 0.0)) + bend, 0.0)
    terms = excess * np.exp(weight - top)
    terms += np.where(plain, 0.0, np.exp(weight + exponent - top))
    total = np.maximum(terms.sum(axis=1), 0.0) * (1.0 + _SERIES)
    floor = np.exp(np.maximum(math.log(1e-300) - top[:, 0], -700.0))
    return np.asarray(top[:, 0] + np.log(total + floor), dtype=np.float64)


def _log_bend(u: Floats) -> Floats:
    """Return log(1 + u) - u, by its series where that cancels."""
    v = np.where(np.abs(u) < 1e-2, u, 0.0)
    series = -v * v * (1 / 2 - v * (1 / 3 - v * (1 / 4 - v * (1 / 5 - v * (1 / 6 - v / 7)))))
    return np.where(np.abs(u) < 1e-2, series, np.log1p(u) - u)


def _exp_bend(e: Floats) -> Floats:
    """Return exp(e) - 1 - e, by its series where that cancels."""
    v = np.where(np.abs(e) < 1e-2, e, 0.0)
    series = v * v * (1 / 2 + v * (1 / 6 + v * (1 / 24 + v * (1 / 120 + v * (1 / 720 + v / 5040)))))
    return np.where(np.abs(e) < 1e-2, series, np.expm1(e) - e)
