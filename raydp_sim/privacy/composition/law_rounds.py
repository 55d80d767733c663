"""Shuffles of a known law, of all clients or of a secret sample, by the blanket, sample and all.

Theorem. k of N clients, chosen uniformly without replacement and in secret, each send one message
of R, and the messages are shuffled; g, f, f' as in laws.py, c = e^epsilon and q = k/N. Let B_i be
1 with probability g and 0 otherwise, (f_i, f'_i) draws of (f, f') under W/g, all independent, and
S = sum over i <= k of B_i (f_i - c f'_i). For two inputs of the victim, and any of the others,

    H(epsilon) <= q E (S/k - (1 - q)(c - 1)/q)_+.

Proof. Every other client draws from W/g with probability g ("hides") and from a rest of its own
otherwise. Let m be the number of messages that hide, the victim's counted among them if it is
there; reveal m, the multiset y of these messages, and all the others. Without the victim m is
Bin(k, g), y are m draws of W/g, and the others are rest draws of k - m clients that are a uniform
subset of the N - 1. With the victim m - 1 is Bin(k - 1, g), y has the density (g/m) sum_i f(y_i)
with respect to m draws of W/g, and the others are again rest draws of a uniform subset of k - m of
the N - 1, whatever y. So all but (m, y) is drawn alike given m, and adds to no divergence. As
Bin(k - 1, g)(m - 1) = Bin(k, g)(m) m/(k g), the density of (m, y) with respect to a batch without
the victim is (1/k) sum_i f(y_i) if the victim is in it and 1 if not: 1 - q + (q/k) sum_i f(y_i) in
all, and with f' in place of f for its other input. QED

If W is 0 where R(x) is not, f is the density of the rest of R(x) only; what is left of it is added
to H, q times (`Law.beyond`, normal_laws.py).

With q = 1 this is the blanket's bound of Balle, Bell, Gascon & Nissim 2019, "The privacy blanket of
the shuffle model" (Lemma 5.3); no other decomposition has a better one (Su, Cheng & Wang 2025,
arXiv 2504.07414). With q < 1 it is more than amplification of that: the batch without the victim
is itself a cover for its message, while advanced joint convexity (pld.py) compares only with a
batch that has another client in the victim's place.

Messages may be randomized by slot (message i by a randomizer of slot i, on a client drawn for it)
if the law is `clones`: given m, which slots hide, and of which of the two kinds, is uniform in both
cases. Both directions have the same divergence, as (f, f') and (f', f) have the same law, or the
first is no smaller (`coins` on a lattice). Other laws are refused.
"""

import math
from dataclasses import dataclass

import numpy as np

from raydp_sim.privacy.composition.direct import spaced
from raydp_sim.privacy.composition.losses import LossLaw, Profile, connect, convex
from raydp_sim.privacy.curves.binomials import Floats
from raydp_sim.privacy.curves.excess import mean_excess
from raydp_sim.privacy.laws import Law

# Knots of a round's law, and looks before they are chosen: each is a sum over all messages.
KNOTS, LOOKS = 96, 41
_UP, _DOWN = 1.0 + 1e-13, 1.0 - 1e-13


@dataclass(frozen=True)
class LawRound:
    """Rounds that shuffle n messages of one law.

    Attributes:
        messages: the law of one message.
        n: messages per round, >= 1.
        times: rounds, >= 1.
        rate: n/N in (0, 1]; below 1 the n clients are secret and uniform.

    Example:
        >>> from raydp_sim.privacy.laws import two_valued
        >>> round(LawRound(two_valued(1.0, 0.1), 10_000).epsilon(1e-8), 3)
        0.031
    """

    messages: Law
    n: int
    times: int = 1
    rate: float = 1.0

    @property
    def most(self) -> float:
        """Largest loss of the pair of densities, rounded up: where all messages are alike."""
        if self.rate == 1.0:
            return self.messages.most
        law, q = self.messages, self.rate
        rise = q * (law.first - law.second) / (1.0 - q + q * law.second)
        return max(0.0, math.log1p(float(rise.max()))) * _UP

    def profile(self, epsilons: Floats) -> Floats:
        """Return upper bounds on the divergence at epsilons >= 0.

        Example:
            >>> from raydp_sim.privacy.laws import two_valued
            >>> LawRound(two_valued(1.0, 0.5), 1).profile(np.array([0.0, 1.0])).round(9).tolist()
            [0.462117157, 0.0]
        """
        found = np.full(len(epsilons), self.rate * self.messages.beyond * _UP)
        seen = epsilons < self.most
        rise = np.expm1(epsilons[seen])
        law = self.messages
        cost = (1.0 + rise[:, None]) * law.second
        # Raised by their rounding, and that of the ratios.
        values = law.first - cost + 2e-15 * (law.first + cost)
        # Rounded down: a lower threshold is exceeded by more.
        thresholds = rise * (1.0 - self.rate) / self.rate * _DOWN
        excess = mean_excess(values, law.mass * law.weights, self.n, thresholds)
        found[seen] += self.rate * excess * _UP
        return np.asarray(np.minimum(found, 1.0))

    def law(self, floor: float) -> LossLaw:
        """Return a law of losses whose profile is at least the round's; below `floor` infinite.

        Example:
            >>> from raydp_sim.privacy.laws import two_valued
            >>> LawRound(two_valued(1.0, 0.5), 10).law(1e-9).infinite < 1e-9
            True
        """
        knots = spaced(self.profile, self.most, floor, KNOTS, LOOKS)
        values = self.profile(np.append(0.0, knots))
        # How much they err upwards differs from knot to knot.
        return connect(knots, convex(knots, values))

    def epsilon(self, delta: float) -> float:
        """Return an epsilon at which one round needs at most delta, within 1e-7 of the least."""
        if self.most == 0.0:
            return 0.0
        if self.rate * self.messages.beyond * _UP > delta:
            return math.inf
        return least_within(self.profile, self.most, delta)


def least_within(profile: Profile, most: float, delta: float) -> float:
    """Return about the least epsilon at which a profile is at most delta; at `most` it has to be.

    Example:
        >>> round(least_within(lambda e: np.maximum(0.5 - e, 0.0), 0.5, 0.2), 6)
        0.3
    """
    if profile(np.zeros(1))[0] <= delta:
        return 0.0
    low, high = math.log(most) - 40.0, math.log(most)
    while high - low > 1e-7:
        looked = np.linspace(low, high, 14)[1:]
        enough = np.append(profile(np.exp(looked[:-1])) <= delta, True)
        step = (high - low) / 13.0
        high = float(looked[np.argmax(enough)])
        low = high - step
    return min(most, math.exp(high) * _UP)
