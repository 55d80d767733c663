"""A budget per client: whoever cannot afford the next participation stays home."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from raydp_sim.privacy.composition.conversion import order_grid
from raydp_sim.privacy.curves.numerics import Array

ALPHA_MAX = 1024
ORDERS = order_grid(ALPHA_MAX)
"""Orders at which the ledger adds divergences up."""

# Limits are this much lower, relatively: a sum of 3 million charges errs by less (1.1e-16 each).
_SLACK = 4e-10
# And this much of the terms that they are the sum of.
_ROUNDING = 1e-15
# Share of delta of the preferred order; the others divide the rest.
_PREFERRED = 0.75
# The fixed set: half an octave apart. More orders would cost more in delta than they gain.
_STEPS = 2.0 ** np.arange(1.0, 10.5, 0.5)
_FIXED = np.unique([int(np.argmin(np.abs(ORDERS - step))) for step in _STEPS])

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Filter:
    """Say who may take part once more and still end within (epsilon, delta).

    A finite set of orders is fixed in advance. A client may go on as long as for at least ONE order
    alpha of the set, what it has spent plus what the next participation may cost at most stays
    within B(alpha): the divergence that converts to (epsilon, delta/|orders|) at alpha. Or as long
    as its pure losses stay within epsilon, which is the order infinity and takes no share of delta.
    One order may be preferred: then it has three quarters of delta, and the others share the rest.
    Or, instead of orders, participations are counted, up to a number that is fixed in advance.

    Proof. For one order: stopping before the sum of adaptively chosen divergences exceeds B(alpha)
    makes the whole (alpha, B(alpha))-RDP (Feldman & Zrnic 2021, "Individual privacy accounting via
    a Renyi filter", Theorem 4.3), hence (epsilon, delta/|orders|)-DP; for pure losses (epsilon, 0)
    (Rogers, Roth, Ullman & Vadhan 2016). What a client is charged is at most what was asked for.
    Both that and its decisions follow from what was seen before, so the transcript shows them.
    Over the set: sums only grow and the cost that is asked for is the same each time, so an order
    that has run out never allows anything again. Split the transcripts by the order that is the
    last to run out, or that still allows at the end; among several, the first of the set. On that
    event the client decides at every moment as if it were stopped by that order's filter alone:
    while any order allows, the last one does. So for neighbours P and Q and every set S of
    transcripts P(S, last = alpha) <= e^epsilon Q(S, last = alpha) + delta/|orders|; add up over
    the orders. Only the sum of the orders' shares of delta was used, so they may differ.
    Counted: let (P, Q) dominate the costliest participation, hence, as batches are no smaller than
    its, every one, and let `count` of them be within (epsilon, delta). Then with k participations
    left the hockey-stick divergences of all that may follow are at most those of (P, Q)^k, by
    induction from the last release backwards: a release without the client has one law under both
    neighbours, and averages what follows; one with it is dominated by (P, Q), and what follows by
    (P, Q)^(k-1) whatever it showed (Zhu, Dong & Wang 2022, adaptive composition). When to take
    part, and when to stop, may so depend on all that was released. Together with pure losses: as
    above, with delta for the count.

    Attributes:
        epsilon: of everything that a client ever takes part in, > 0.
        delta: in [0, 1); with 0 only pure losses count.
        preferred: place in ORDERS of the order with most of delta; None: all share it evenly.
        count: participations that loss distributions allow; 0: orders decide.

    Example:
        >>> tight = Filter(1.0, 1e-6)
        >>> spent = np.zeros((2, len(ORDERS)))
        >>> spent[1] = 0.9 * tight.limits.max()
        >>> cost = np.full(len(ORDERS), 0.2 * tight.limits.max())
        >>> tight.allows(spent, np.array([0.0, 5.0]), cost, 1.0).tolist()
        [True, False]
    """

    epsilon: float
    delta: float = 0.0
    preferred: int | None = None
    count: int = 0

    def __post_init__(self) -> None:
        if not self.epsilon > 0.0:
            raise ValueError(f"epsilon is {self.epsilon}; it must be > 0")
        if not 0.0 <= self.delta < 1.0:
            raise ValueError(f"delta is {self.delta}; it must lie in [0, 1)")

    @cached_property
    def limits(self) -> Array:
        """B(alpha) on the ledger's grid of orders; -inf where an order is not of the set.

        Orders of which even nothing would convert to more than epsilon are left out beforehand: it
        follows from the budget alone, and leaves a larger share of delta to the others.
        """
        limits = np.full(len(ORDERS), -math.inf)
        if self.delta > 0.0 and self.count == 0:
            kept = _FIXED[_largest(self.epsilon, self.delta / len(_FIXED), ORDERS[_FIXED]) > 0.0]
            rest = self.delta if self.preferred is None else (1.0 - _PREFERRED) * self.delta
            if len(kept):
                limits[kept] = _largest(self.epsilon, rest / len(kept), ORDERS[kept])
            if self.preferred is not None:
                limits[self.preferred] = preferred_limits(self.epsilon, self.delta)[self.preferred]
        limits.flags.writeable = False
        return limits

    def allows(self, spent: Array, pure: Array, cost: Array, pure_cost: float) -> Mask:
        """Say for each row of divergences spent whether the next participation is affordable.

        Args:
            spent: (clients, orders), on the ledger's grid.
            pure: each client's sum of pure losses; inf if there is none.
            cost: divergences of the next participation at most, by order.
            pure_cost: its pure loss; inf if there is none.
        """
        # A limit of -inf stays so, whatever the cost.
        within: Mask = np.asarray((spent <= self.limits - cost).any(axis=-1))
        return within | (pure + pure_cost <= self.epsilon)

    def allows_basic(
        self, epsilons: Array, deltas: Array, epsilon: float, delta: float = 0.0
    ) -> Mask:
        """Say who stays within the budget when epsilons and deltas are added up.

        For mechanisms of which no divergences are known. The same split as above with one rule
        only, by the filter of basic composition (Rogers et al. 2016).
        """
        within: Mask = (epsilons + epsilon <= self.epsilon) & (deltas + delta <= self.delta)
        return within


def preferred_limits(epsilon: float, delta: float) -> Array:
    """Return B(alpha) of every order of the grid if it were the preferred one."""
    return _largest(epsilon, _PREFERRED * delta, ORDERS)


def _largest(epsilon: float, delta: float, orders: Array) -> Array:
    """Return the divergence that converts to (epsilon, delta): 000 Lemma 2.1.3 solved for it.

    Rounded down, so that neither its rounding nor that of the sums compared with it allows more.
    """
    share = (math.log(delta) + np.log(orders)) / (orders - 1.0)
    found = epsilon - np.log1p(-1.0 / orders) + share
    error = _ROUNDING * (
        epsilon + 1.0 + (np.abs(math.log(delta)) + np.log(orders)) / (orders - 1.0)
    )
    return np.asarray(found - _SLACK * np.abs(found) - error)
