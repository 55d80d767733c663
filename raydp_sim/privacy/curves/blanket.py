"""The blanket pair: how far a victim's two laws are apart, and how much of the others hides them.

Setting. n clients each send one message of a randomizer R and the messages are shuffled; neighbours
replace one client's input. W is a measure with W <= R(x) for every input x, of mass g (the
blanket), and R(x) <= p W for every x, p = e^epsilon0. W = inf_x R(x) always qualifies for an
epsilon0-LDP randomizer, since R(x) <= p R(x') for all x'.

Theorem. Let u = (1/g - 1)/(p - 1) <= 1/2. Draw M ~ Bin(n-1, g) and reveal it. Draw M + 1 balls,
each "first" with probability u, "second" with u and "neutral" otherwise, and weigh the outcome by
g (p N0 + N1 + V)/(M + 1) under one input of the victim, by g (N0 + p N1 + V)/(M + 1) under the
other, where N0, N1, V count the balls. Every f-divergence between neighbouring shuffles, in both
directions, is at most that of these two laws.

Proof. (1) Every other client draws from W/g with probability g and from a rest otherwise. Reveal
who does and all rest draws, which are the same under both inputs; M + 1 messages remain. Their
multiset has, with respect to M + 1 independent draws y_i of W/g, the densities g mean_i f(y_i) and
g mean_i f'(y_i), where f = P0/W and f' = P1/W lie in [1, p] and have mean 1/g. An f-divergence is E
phi(mean f, mean f') with phi convex and homogeneous of degree 1. (2) For convex phi the expectation
does not decrease if one (f, f') is replaced by a random pair with that mean: split f and f'
independently between 1 and p. Now Pr[f = p] = Pr[f' = p] = u. (3) A homogeneous convex phi has
phi_uv = -(u/v) phi_uu <= 0, so it is submodular (the hockey stick (f - c f')_+ directly, as convex
function of f - c f'), and so is phi after adding the other, fixed, terms. Among laws on {1, p}^2
with these marginals the expectation is then largest for the least probability of (p, p), which is 0
as u <= 1/2. One ball at a time, (2) and (3) give the three classes. QED

Generalisation. Only (1)-(3) were used, so known classes may be stated directly: `share` is the
probability of "first" and of "second", `neutral` the common weight of the rest. If neutral
balls have weights 1 and p, a ball of weight 1 may be split into weight p (probability 1/p) and
weight 0 (dropped, revealed): a spread as in (2).

Evaluation. Given M and t = N0 + N1, the victim is one of the t with probability w = (p+1) t /((p+1)
t + 2 neutral V), the same under both inputs: this is the tilted coin pair (tilted.py) with t
coins and tilt w tanh(epsilon0/2). Adding a ball is a post-processing, so M may be bucketed at its
least element. t is bucketed at its least element too, with w split between its two ends so that its
mean is kept, which convexity in the tilt allows. t is B or, if the victim is among the t, B + 1, B
~ Bin(M, 2 share), so with S = Pr[low <= B < end] and D = Pr[B = low - 1] - Pr[B = end - 1] a bucket
has mass S + inside D and its mean of w is inside (S + D)/(S + inside D). Rounding moves that mean
by r (1 + |x|/(1 + x)), x = D/S, times a constant below 50, r = `rounding(M)`: it is raised by so
much. Where S is too small for differences, all of a bucket stands at its larger w.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from raydp_sim.privacy.curves.binomials import (
    Buckets,
    Floats,
    binomial_buckets,
    bucket_starts,
    log_between,
    log_binomial,
    rounding,
)
from raydp_sim.privacy.curves.clones import clone_pair
from raydp_sim.privacy.curves.tilted import TiltedCoins

# Logarithm of the least probability that differences give.
_SURE = math.log(1e-240)


@dataclass(frozen=True)
class Blanket:
    """What the theorem needs to know about a randomizer.

    Attributes:
        epsilon0: log p, >= 0.
        mass: g, the probability that another client hides the victim.
        share: probability that a hiding ball is "first" (and that it is "second"), in (0, 1/2].
        neutral: weight of the other balls under both inputs.
    """

    epsilon0: float
    mass: float
    share: float
    neutral: float = 1.0

    @property
    def variation(self) -> float:
        """Total variation distance of the two laws of the victim's message.

        Example:
            >>> round(Blanket(1.0, 3 / (math.e + 2), 1 / 3).variation, 6)
            0.364175
        """
        return self.mass * self.share * math.expm1(self.epsilon0)

    def pair(self, others: int, count: int = 60) -> TiltedCoins:
        """Return the dominating pair of a victim among `others` clients.

        `count` is the number of buckets of M around its mean; t gets twice as many.

        Example:
            >>> round(Blanket(1.0, 3 / (math.e + 2), 1 / 3).pair(999).epsilon(1e-6), 4)
            0.131
        """
        if self.share == 0.5:
            clones = 6000 if count >= 60 else 750 if count >= 24 else 160  # of one dimension only
            return clone_pair(self.epsilon0, others, self.mass, clones)
        return _pair(self, others, count)

    def pair_given(self, hiding: Buckets, count: int = 120) -> TiltedCoins:
        """Return the dominating pair if the number M of hiding clients has this law.

        Buckets of M stand at their least element, so a law that is stochastically smaller than the
        true one is allowed.

        Example:
            >>> alone = Buckets(np.zeros(1), np.zeros(1))
            >>> round(Blanket(1.0, 3 / (math.e + 2), 1 / 3).pair_given(alone).delta(0.0), 6)
            0.364175
        """
        parts = [
            self._given(float(m), float(log_mass), count)
            for m, log_mass in zip(hiding.low, hiding.log_mass, strict=True)
        ]
        coins, tilt, log_mass = (np.concatenate(column) for column in zip(*parts, strict=True))
        kept = (coins > 0) & (tilt > 0) & (log_mass > -math.inf)
        return TiltedCoins(coins[kept], tilt[kept], log_mass[kept], self.epsilon0)

    def _given(self, m: float, log_mass: float, count: int) -> tuple[Floats, Floats, Floats]:
        """Return coins, tilt and log mass of the components for M = m hiding clients."""
        p = math.exp(self.epsilon0)
        # The victim's ball is first or second, or it is neutral.
        inside = self.mass * self.share * (p + 1.0)
        outside = self.mass * self.neutral * (1.0 - 2.0 * self.share)
        low, end, log_all, mean = _buckets(int(m), 2.0 * self.share, inside, outside, count)

        def within(t: Floats) -> Floats:
            return (p + 1.0) * t / ((p + 1.0) * t + 2.0 * self.neutral * (m + 1.0 - t))

        w0, w1 = within(low), within(end - 1.0)
        h = math.tanh(0.5 * self.epsilon0)
        gap = np.maximum(w1 - w0, 1e-300)
        # Rounding of the two ends counts against their distance.
        to_high = np.clip((mean - w0 + 1e-15 * w1) / gap, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            logs = [np.log1p(-to_high), np.log(to_high)]
        return (
            np.concatenate([low, low]),
            h * np.concatenate([w0, w1]),
            log_mass + np.concatenate([log_all + part for part in logs]),
        )


def _buckets(
    m: int, p: float, inside: float, outside: float, count: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return first t, first t beyond, log mass and mean of w of the buckets of t, both rounded up.

    See the module: t is B with probability `outside` and B + 1 with `inside`, B ~ Bin(m, p).
    """
    if m == 0:
        low, end = np.array([0.0, 1.0]), np.array([1.0, 2.0])
        return low, end, np.log([outside, inside]), np.array([0.0, 1.0])
    low = bucket_starts(m + 1, p, count, growth=1.3)
    end = np.append(low[1:], m + 2.0)
    log_out, log_in = log_between(m, p, low, end), log_between(m, p, low - 1.0, end - 1.0)
    here = np.where(np.isfinite(log_out), log_out, np.inf)
    x = np.exp(log_binomial(m, p, low - 1.0) - here) - np.exp(log_binomial(m, p, end - 1.0) - here)
    sure = (log_out > _SURE) & (log_in > _SURE) & (x > -1.0 + 1e-6) & (x < 1e6)
    x = np.where(sure, x, 0.0)
    error = 50.0 * rounding(m) * (1.0 + np.abs(x) / (1.0 + x))
    mean = np.where(sure, inside * (1.0 + x) / (1.0 + inside * x) * (1.0 + error), 1.0)
    mean = np.where(end == 1.0, 0.0, mean)  # with t = 0 the victim is not among the t
    either = np.logaddexp(log_in + math.log(inside), log_out + math.log(outside))
    log_all = np.where(sure, log_out + np.log1p(inside * x), either)
    return low, end, log_all, mean


@lru_cache(maxsize=32)
def _pair(blanket: Blanket, others: int, count: int) -> TiltedCoins:
    hiding = binomial_buckets(others, blanket.mass, count, growth=1.3)
    return blanket.pair_given(hiding, 2 * count)
