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
import scipy

from raydp_sim.privacy.curves.binomials import Floats, log_binomial
from raydp_sim.privacy.curves.strides import stride

# Relative rounding of the special functions of m coins is at most _EXACT + _GROWTH sqrt(m): twice
# the worst that was measured against 60 digits up to 10^8 coins (tests/privacy/test_soundness.py).
_EXACT, _GROWTH = 1e-12, 2e-14
# What may underflow in the sums, and in the special functions below 1e-250, is charged to delta.
_UNDERFLOW = 1e-250
# Charged to sums over x, relatively, for rounding, and absolutely, for what strides and windows
# leave out (module `strides`).
_SERIES, _LEFT_OUT = 1e-9, math.exp(-75.0)
# Components that are decided on together, and array elements at a time.
_BLOCK = 256
_ELEMENTS = 1 << 18


@dataclass(frozen=True, eq=False)
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

    def significant(self, tail: float) -> tuple["TiltedCoins", float]:
        """Return the pair without its rarest components, and their probability, at most `tail`.

        Example:
            >>> pair = TiltedCoins(np.ones(2), np.full(2, 0.5), np.log([0.999, 0.001]), 1.2)
            >>> [round(part, 6) for part in (len(pair.significant(0.01)[0].coins), 0.001)]
            [1, 0.001]
        """
        order = np.argsort(self.log_mass)
        total = np.cumsum(np.exp(self.log_mass[order])) * (1.0 + 1e-12)
        dropped = int(np.searchsorted(total, tail))
        kept = np.sort(order[dropped:])
        part = TiltedCoins(self.coins[kept], self.tilt[kept], self.log_mass[kept], self.most)
        return part, float(total[dropped - 1]) if dropped else 0.0

    def losses(self, most: int) -> Floats | None:
        """Return every loss > 0 that the pair can have, 2 atanh(h (2x - m)/m), unless too many.

        Example:
            >>> TiltedCoins(np.full(1, 3.0), np.full(1, 0.5), np.zeros(1), 1.1).losses(9).round(6)
            array([0.336472, 1.098612])
        """
        if self.coins.sum() > 4 * most or np.max(self.tilt, initial=0.0) > 1.0 - 1e-12:
            return None
        heads = [np.arange(np.floor(0.5 * m) + 1.0, m + 1.0) for m in self.coins]
        parts = zip(heads, self.coins, self.tilt, strict=True)
        found = np.concatenate([2.0 * np.arctanh(h * (2.0 * x - m) / m) for x, m, h in parts])
        found = np.unique(found[found > 0.0])
        return found if 0 < len(found) <= most else None

    def profile(self, epsilons: Floats) -> Floats:
        """Return upper bounds on the hockey-stick divergence at each epsilon >= 0.

        In one component the best event is x >= k, k the first value at which P > e^epsilon Q, and
        the sum of R(x) t over x >= k is (k/m) R(k), hence

            delta = h (1 + e^epsilon) (k/m) R(k) - (e^epsilon - 1) Pr[x >= k].

        Example:
            >>> one = TiltedCoins(np.ones(1), np.full(1, math.tanh(0.5)), np.zeros(1), 1.0)
            >>> one.profile(np.array([0.0, 1.0])).round(9).tolist()
            [0.462117157, 0.0]
        """
        if not np.all(epsilons >= 0.0):
            raise ValueError(f"epsilon is {epsilons.min()}; it must be >= 0")
        found = np.zeros(len(epsilons))
        lossy = np.flatnonzero(epsilons < self.most)
        mass = np.exp(self.log_mass)
        rows = max(1, _ELEMENTS // max(1, len(self.coins)))
        for begin in range(0, len(lossy), rows):
            part = lossy[begin : begin + rows]
            found[part] = self._excess(epsilons[part, None]) @ mass
        charged = found[lossy] * (1.0 + _EXACT * 10.0) + _UNDERFLOW
        found[lossy] = np.minimum(charged, 1.0)
        return found

    def _excess(self, epsilon: Floats) -> Floats:
        """Return the components' divergences at a column of epsilons below 700."""
        # Close to 1 (a loss above 27) a tilt has no digits left and counts as 1.
        tilt = np.where(self.tilt > 1.0 - 1e-12, 1.0, self.tilt)
        ratio = np.tanh(0.5 * epsilon) / np.maximum(tilt, 1e-300)
        value = np.zeros(ratio.shape)
        # From a loss of 21 on tanh has no digits left there: better one component too many.
        seen = np.nonzero((ratio < 1.0 + 1e-12) | (tilt == 1.0))
        m, h = self.coins[seen[1]], tilt[seen[1]]
        rise = np.expm1(np.minimum(epsilon, 700.0))[seen[0], 0]
        # A k that rounding moves by one changes the value by less than 1e-15 of the gain.
        k = np.minimum(np.floor(0.5 * m * (1.0 + ratio[seen])) + 1.0, m)
        rounding = _EXACT + _GROWTH * np.sqrt(m)
        gain = h * (2.0 + rise) * (k / m) * np.exp(log_binomial(m, 0.5, k)) * (1.0 + rounding)
        cost = rise * scipy.special.betainc(k, m - k + 1.0, 0.5) * (1.0 - rounding)
        value[seen] = np.maximum(gain - cost, 0.0)
        return value

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on the hockey-stick divergence at epsilon >= 0.

        Example:
            >>> one = TiltedCoins(np.ones(1), np.full(1, math.tanh(0.5)), np.zeros(1), 1.0)
            >>> round(one.delta(0.0), 9)
            0.462117157
        """
        return float(self.profile(np.array([epsilon], dtype=np.float64))[0])

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
        from scipy.optimize import brentq  # here: most actors never search

        target = math.log(delta)
        # What is rare counts as an infinite loss.
        part, rare = self.significant(1e-7 * delta)

        def excess(epsilon: float) -> float:
            value = part.delta(epsilon) + rare
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

    Past |t| = sqrt(2 (B + 80)/m), e^B the largest value of |phi - 1 - linear part| times the step,
    by Hoeffding's bound less than 2 e^-80 is left out; a stride leaves out less than that
    (strides.py). Both are charged.
    """
    step = stride(m, h, alpha)
    sd = 0.5 * np.sqrt(m)
    exponent = np.logaddexp(_largest(h, alpha), math.log(2.0 * alpha + 1.0)) + np.log(step)
    reach = np.ceil(sd * np.sqrt(2.0 * (exponent + 80.0)))
    low = np.maximum(0.0, np.floor(0.5 * m) - reach)
    high = np.minimum(m, np.ceil(0.5 * m) + reach)
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
    floor = np.exp(np.maximum(math.log(_LEFT_OUT) - top[:, 0], -700.0))
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
