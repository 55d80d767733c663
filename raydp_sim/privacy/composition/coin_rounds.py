"""Shuffles of those who joined by their own coins, number by number, by the laws of law_rounds.py.

Theorem. Each of N clients joins with probability p, by a secret coin of its own; the K who did send
one message each, and these are shuffled, so K is seen. Let H(q, n) be the bound of law_rounds.py
for n messages at rate q. Then the round's divergence at every epsilon >= 0 is at most the sum over
k >= 1 of Pr[Bin(N, p) = k] H(k/N, k).

Proof. K does not depend on the data, so the divergence is the mean of those given K. Given K = k
those who joined are a uniform subset of k, which is what law_rounds.py is about; given K = 0
nothing is seen. QED

Numbers are put together: H(q, n) = E (q (S_n/n + c - 1) - (c - 1))_+ rises with q, since what is
in the bracket does wherever it counts, and falls with n, since the mean S_n/n given S_{n+1}/(n+1)
is that, and (x)_+ is convex. So H(k/N, k) <= H(b/N, a) for all k from a to b. What is left of the
binomial law counts as an infinite loss.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from raydp_sim.privacy.composition.direct import spaced
from raydp_sim.privacy.composition.law_rounds import LawRound
from raydp_sim.privacy.composition.losses import LossLaw, connect
from raydp_sim.privacy.curves.binomials import Floats
from raydp_sim.privacy.laws import Law

_KNOTS, _LOOKS = 96, 41
# Numbers that are put together differ by this ratio, or more where there would be too many groups.
_RATIO, _GROUPS = 1.01, 48
_UP = 1.0 + 1e-13


@dataclass(frozen=True)
class CoinRound:
    """Rounds that shuffle the messages, of one law, of those who joined.

    Attributes:
        messages: the law of one message.
        clients: N >= 1.
        probability: of joining, in (0, 1].
        times: rounds, >= 1.

    Example:
        >>> from raydp_sim.privacy.laws import two_valued
        >>> rounds = CoinRound(two_valued(1.0, 0.1), 60_000, 1 / 6)
        >>> round(float(rounds.law(1e-9).profile(np.array([0.0]))[0]), 6)
        0.000476
    """

    messages: Law
    clients: int
    probability: float
    times: int = 1

    @property
    def most(self) -> float:
        """Largest loss of one round: where everyone has joined."""
        return LawRound(self.messages, self.clients).most

    def law(self, floor: float) -> LossLaw:
        """Return a law of losses whose profile is at least the round's; below `floor` infinite."""
        groups, left = numbers(self.clients, self.probability, 0.1 * floor)
        parts = [(w, LawRound(self.messages, a, 1, b / self.clients)) for a, b, w in groups]

        def profile(epsilons: Floats) -> Floats:
            found = sum((w * part.profile(epsilons) for w, part in parts), np.zeros(len(epsilons)))
            return np.minimum(found * _UP + left, 1.0)

        most = max(part.most for _, part in parts)
        knots = spaced(profile, most, floor, _KNOTS, _LOOKS)
        return connect(knots, np.minimum.accumulate(profile(np.append(0.0, knots))))


@lru_cache(maxsize=64)
def numbers(
    clients: int, probability: float, rare: float, groups: int = _GROUPS
) -> tuple[tuple[tuple[int, int, float], ...], float]:
    """Return how many may join, in groups: smallest, largest and chance rounded up; and the rest.

    Args:
        clients: N >= 1, each with a coin.
        probability: of joining.
        rare: chance of numbers that may be left out; theirs is what is left over.
        groups: how many at most, or about.
    """
    law = scipy.stats.binom(clients, probability)
    low = max(1, int(law.ppf(rare / 4.0)) - 1)
    high = min(clients, int(law.isf(rare / 4.0)) + 1)
    # Logarithms of binomials are off by their rounding, relative to the factorials in them.
    slack = 1.0 + 1e-14 * (1.0 + float(scipy.special.gammaln(clients + 1.0)))
    below = 0.0 if low == 1 else float(law.cdf(low - 1))
    left = (below + float(law.sf(high))) * (1.0 + 1e-6) * slack
    ratio = max(_RATIO, math.exp(math.log(high / low) / groups)) if high > low else _RATIO
    chances, found, first = law.pmf(np.arange(low, high + 1)), [], low
    while first <= high:
        last = min(high, max(first, int(first * ratio)))
        chance = float(chances[first - low : last - low + 1].sum()) * slack
        found.append((first, last, chance))
        first = last + 1
    return tuple(found), left
