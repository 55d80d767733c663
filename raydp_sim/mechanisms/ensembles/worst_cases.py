"""What a noise function must satisfy to be private: one linear inequality per worst case.

Lemma 3.4.4 of 004: the release is (m epsilon, delta)-DP if and only if, for all neighbours,

    f = sum_{l > K/2} (alpha_l - e^{m epsilon} alpha'_l) gamma(l)
      - sum_{l < K/2} (alpha_l - e^{m epsilon} alpha'_l) gamma(l)  <=  e^{m epsilon} - 1 + 2 delta.

f is affine in every voter's pair (p_i, p'_i), so its largest value is at corners of the pairs that
an (epsilon, Delta)-DP vote allows, and it does not depend on who has which corner (Lemma 3.6.1):
one row per multiset of K corners. The text splits on delta where it means Delta.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.ensembles.votes import check_voters, tally_law

Floats = NDArray[np.float64]
# Rows above which the whole list is not made: 8-byte numbers of K/2 columns each.
MOST_ROWS = 2_000_000
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Ensemble:
    """K votes of (epsilon, Delta)-DP each, whose majority shall be (multiple epsilon, delta)-DP.

    Attributes:
        voters: K, odd.
        epsilon: of one vote, > 0.
        failure: Delta of one vote.
        multiple: m in [1, K]; it need not be whole.
        delta: of the release, at least Delta.
    """

    voters: int
    epsilon: float
    failure: float
    multiple: float
    delta: float

    def __post_init__(self) -> None:
        check_voters(self.voters)
        if not 0.0 < self.epsilon < math.inf:
            raise bad_field("epsilon", self.epsilon, "it must be finite and > 0")
        if not 0.0 <= self.failure < 1.0:
            raise bad_field("failure", self.failure, "it must lie in [0, 1)")
        if not 1.0 <= self.multiple <= self.voters:
            raise bad_field("multiple", self.multiple, f"it must lie in [1, {self.voters}]")
        # 1 - (1 - Delta)^m at m = 1 is Delta but for rounding.
        if not self.failure * (1.0 - 1e-9) <= self.delta < 1.0:
            raise bad_field(
                "delta", self.delta, f"it must lie in [{self.failure:g}, 1): no less than a vote's"
            )

    @property
    def limit(self) -> float:
        """The right-hand side, e^{m epsilon} - 1 + 2 delta."""
        return math.expm1(self.multiple * self.epsilon) + 2.0 * self.delta

    @property
    def corners(self) -> Floats:
        """Pairs (p, p') at the corners of what one vote may be on neighbours."""
        grown, failure = math.exp(self.epsilon), self.failure
        high, low = (grown + failure) / (grown + 1.0), (1.0 - failure) / (grown + 1.0)
        pairs = [(0.0, 0.0), (1.0, 1.0), (high, low), (low, high)]
        if failure > 0.0:
            pairs += [(0.0, failure), (failure, 0.0), (1.0 - failure, 1.0), (1.0, 1.0 - failure)]
        return np.array(pairs)

    @property
    def rising_corners(self) -> Floats:
        """Those that bind where gamma grows away from a tie: Pr[1 | l] is then non-decreasing.

        f grows with every p_i and falls with every p'_i, so that of the corners only those count
        which no other one dominates.
        """
        grown, failure = math.exp(self.epsilon), self.failure
        middle = ((grown + failure) / (grown + 1.0), (1.0 - failure) / (grown + 1.0))
        return np.array([(failure, 0.0), middle, (1.0, 1.0 - failure)])

    @cached_property
    def rows(self) -> Floats:
        """All worst cases, coefficients of gamma((K+1)/2..K): (C(K+c-1, c-1), (K+1)/2)."""
        return self._rows(self.corners)

    @cached_property
    def rising_rows(self) -> Floats:
        """Worst cases of a noise function that grows away from a tie."""
        return self._rows(self.rising_corners)

    def _rows(self, corners: Floats) -> Floats:
        count = math.comb(self.voters + len(corners) - 1, len(corners) - 1)
        if count > MOST_ROWS:
            raise bad_field(
                "voters", self.voters, f"there are {count:,} worst cases; use method: monotone"
            )
        cases = _multisets(self.voters, len(corners))
        return np.concatenate(
            [self._coefficients(corners, cases[i : i + _BLOCK]) for i in range(0, count, _BLOCK)]
        )

    def _coefficients(self, corners: Floats, cases: NDArray[np.int64]) -> Floats:
        each = np.repeat(np.tile(np.arange(len(corners)), len(cases)), cases.reshape(-1))
        which = each.reshape(len(cases), self.voters)
        here, there = (tally_law(corners[which, side]) for side in (0, 1))
        gap = here - math.exp(self.multiple * self.epsilon) * there
        half = (self.voters + 1) // 2
        return gap[:, half:] - gap[:, :half][:, ::-1]


def _multisets(total: int, kinds: int) -> NDArray[np.int64]:
    """Return all ways to write `total` as an ordered sum of `kinds` counts."""
    if kinds == 1:
        return np.full((1, 1), total, dtype=np.int64)
    bars = np.array(list(combinations(range(total + kinds - 1), kinds - 1)), dtype=np.int64)
    edges = np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), total + kinds - 1)
    return np.diff(np.concatenate(edges, axis=1), axis=1) - 1
