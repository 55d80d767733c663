"""A running account: divergences on a fixed grid of orders, one addition per release."""

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from raydp_sim.privacy.bound import Result, find_rdp, merge
from raydp_sim.privacy.composition.conversion import ALPHA_MAX, best_order, order_grid
from raydp_sim.privacy.curves.caps import (
    best_vector,
    cap_rdp,
    neighbours,
    pure_epsilon,
    refuse_mixed,
)
from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.errors import Contradiction
from raydp_sim.privacy.events import Release
from raydp_sim.privacy.floors.floors import in_words, least_so_far

_COUNTED = 4


@lru_cache(maxsize=512)
def event_vector(event: Release, bound: str | None = None, alpha_max: int = ALPHA_MAX) -> Array:
    """Return one event's divergences, capped, on the grid of orders; computed once per process.

    Args:
        event: what happened.
        bound: name of a proved bound; None: the least of them at each order.
        alpha_max: largest order.

    Example:
        >>> from raydp_sim.privacy.events import GaussianRelease
        >>> float(event_vector(GaussianRelease(1.0))[0])
        1.0
    """
    orders = order_grid(alpha_max)
    if bound is None:
        vector = best_vector(event, orders)
    else:
        caps = np.array([cap_rdp(event, alpha) for alpha in orders])
        vector = np.minimum(find_rdp(bound, event).rdp_vector(event, orders), caps)
    vector.flags.writeable = False
    return vector


@dataclass
class Streaming:
    """Add releases as they happen and ask for epsilon at any time; it pickles to about a kilobyte.

    On the grid epsilon is at most about 2% above the optimum over all whole orders, never below.

    Attributes:
        bound: name of a proved bound on one event's divergence; None: the least of them.
        alpha_max: largest order of the grid.
        counts: of the first few different events, for what they cost at least.

    Example:
        >>> from raydp_sim.privacy.events import SubsampledShuffle
        >>> run = Streaming(bound="upper")
        >>> run.add(SubsampledShuffle(2.0, 10**6, 1000), times=10**5)
        >>> round(run.epsilon(1e-8).epsilon, 4)
        1.0402
    """

    bound: str | None = None
    alpha_max: int = ALPHA_MAX
    total: Array = field(init=False)
    pure: float = field(init=False, default=0.0)
    kinds: frozenset[str] = field(init=False, default=frozenset())
    counts: dict[Release, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.total = np.zeros(len(order_grid(self.alpha_max)))

    def add(self, event: Release, times: int = 1) -> None:
        """Charge an event; a refused one leaves the account as it was."""
        parts = merge([(event, times)])
        kinds = self.kinds | {neighbours(part) for part, _ in parts}
        refuse_mixed(set(kinds))
        vectors = [count * event_vector(part, self.bound, self.alpha_max) for part, count in parts]
        self.kinds = kinds
        for vector, (part, count) in zip(vectors, parts, strict=True):
            self.total = self.total + vector
            self.pure += count * pure_epsilon(part)
            if part in self.counts or len(self.counts) < _COUNTED:
                self.counts[part] = self.counts.get(part, 0) + count

    def epsilon(self, delta: float) -> Result:
        """Return epsilon at delta of everything so far, capped by the sum of pure losses.

        Raises:
            Contradiction: it would be less than what the events counted cost at least
                (privacy.floors), so a bound on their divergences is wrong.
        """
        found = self._converted(delta) if np.any(self.total) else Result(0.0)
        floors = [least_so_far(event, times, delta) for event, times in self.counts.items()]
        if not found.epsilon >= max(floors, default=0.0):
            name, composed = self.bound or "rdp-best", in_words(list(self.counts.items()))
            raise Contradiction(name, found.epsilon, max(floors), delta, composed)
        return found

    def _converted(self, delta: float) -> Result:
        grid = order_grid(self.alpha_max)
        known = dict(zip(grid.tolist(), self.total.tolist(), strict=True))
        best = best_order(
            lambda orders: np.array([known[a] for a in orders]), delta, self.alpha_max, refine=False
        )
        if self.pure <= best.epsilon and math.isfinite(self.pure):
            return Result(self.pure, None, "the sum of pure losses")
        return Result(best.epsilon, best.alpha)
