"""What a long run of 2RR costs at least: each round says yes or no, and the analyst counts.

Any post-processing of the rounds bounds epsilon from below. Here every round becomes one bit, which
is 1 with probability a under P and b < a under Q, so that T rounds are Bin(T, a) against Bin(T, b)
and delta(epsilon) is at least Pr_P[X >= k] - e^epsilon Pr_Q[X >= k] for every k. Tails begin with a
probability by log-gammas of 60 digits and go on by ratios in extended precision. Where they
stop only less is counted.
"""

import math
from dataclasses import dataclass

import mpmath
import numpy as np

Long = np.longdouble


@dataclass(frozen=True)
class Bits:
    """T bits, of probability a under P and b under Q; numbers of many digits."""

    times: int
    a: mpmath.mpf
    b: mpmath.mpf

    def delta(self, epsilon: float) -> float:
        """Return at most the true delta at epsilon."""
        a = float(self.a)
        with mpmath.workdps(60):
            rise = float(mpmath.log(self.a / self.b) - mpmath.log((1 - self.a) / (1 - self.b)))
            start = float(self.times * mpmath.log((1 - self.a) / (1 - self.b)))
        # The first k whose loss, start + k rise, exceeds epsilon; any other would do as well.
        k = min(max(0, math.floor((epsilon - start) / rise) + 1), self.times)
        reach = 12.0 * math.sqrt(self.times * a * (1.0 - a)) + 200.0
        count = min(self.times - k, int(reach))
        # Products and sums of `count` terms, each off by a few units.
        error = 8.0 * (count + 64) * float(np.finfo(Long).eps)
        p, q = (self._tail(k, count, x) for x in (self.a, self.b))
        return p * (1.0 - error) - math.exp(epsilon) * q * (1.0 + error)

    def _tail(self, k: int, count: int, chance: mpmath.mpf) -> float:
        """Return Pr[k <= X <= k + count]."""
        t = self.times
        with mpmath.workdps(60):
            choose = mpmath.loggamma(t + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(t - k + 1)
            log = choose + k * mpmath.log(chance) + (t - k) * mpmath.log(1 - chance)
            odds = Long(mpmath.nstr(chance / (1 - chance), 25))
            first = float(mpmath.exp(log))
        i = np.arange(k, k + count, dtype=np.float64).astype(Long)
        terms = np.cumprod(np.append(Long(1.0), (t - i) / (i + 1) * odds))
        return first * float(terms.sum())

    def epsilon(self, delta: float) -> float:
        """Return an epsilon that the true one exceeds, to 1e-5 of the best that bits show."""
        low, high = 0.0, 1.0
        if self.delta(0.0) <= delta:
            return 0.0
        while self.delta(high) > delta:
            low, high = high, 2.0 * high
        while high - low > 1e-5 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return low


def two_rr_bits(epsilon0: float, n: int, clients: int | None, times: int) -> Bits:
    """Return the bit "some message is 1" of rounds where the victim holds 1 or 0, all others 0.

    With clients, n of them are sampled in secret, the victim with probability n/clients.
    """
    with mpmath.workdps(60):
        lie = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon0)))
        rate = mpmath.mpf(n) / (n if clients is None else clients)
        b = 1 - (1 - lie) ** n
        a = rate * (1 - lie * (1 - lie) ** (n - 1)) + (1 - rate) * b
        return Bits(times, a, b)
