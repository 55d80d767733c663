"""Every client's Renyi divergences on the grid of orders, and the epsilon that follows."""

import math
from collections.abc import Hashable, Iterator

import numpy as np

from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.ledger.filter import ORDERS, Filter, Mask
from raydp_sim.random import Ids

_BLOCK = 2048  # rows at a time, so that the work on them stays in the cache
# Sums are raised by this, relatively: those of a million charges err by less (1.1e-16 each).
_ROUNDING = 2e-10
_Part = Ids | slice


class Divergences:
    """Sums per client and order; a charge costs participants times orders, whatever came before.

    What is charged to everyone is one vector for all. Only where clients are charged differently
    has each a row of its own. Sums are made in the order of the charges, so that the same charges
    in the same order give the same numbers bit for bit.

    Attributes:
        rows: (clients, orders), None while all are charged alike.
        pure: each client's sum of pure losses, which caps epsilon; the shared part is apart.
        epsilons: each client's epsilon at delta, with what is shared.
        worst: the largest of them; divergences only grow, so it needs no search.

    Example:
        >>> spent = Divergences(clients=3, delta=1e-6)
        >>> spent.add(0.01 * ORDERS, math.inf, np.array([1], dtype=np.uint32))
        >>> spent.each().round(3).tolist(), spent.median()
        ([0.0, 0.622, 0.0], 0.0)
    """

    def __init__(self, clients: int, delta: float) -> None:
        self.clients = clients
        # Converted at each order (000 Lemma 2.1.3): epsilon is the divergence plus this.
        self.offset = np.log1p(-1 / ORDERS) - (np.log(ORDERS) + math.log(delta)) / (ORDERS - 1)
        self.shared = np.zeros(len(ORDERS))
        self.shared_pure = 0.0
        self.rows: Array | None = None
        self.pure = self.epsilons = np.zeros(0)
        self.worst = 0.0
        # The median last found, and how many clients' epsilons do not exceed it.
        self._middle, self._at_most = 0.0, 0
        self._asked: tuple[Hashable, Filter, Array, float] | None = None
        self._able: Mask = np.zeros(0, np.bool_)

    def add(self, cost: Array, pure: float, participants: Ids | range | None = None) -> None:
        """Charge participants, in increasing order, or everyone.

        Args:
            cost: divergences by order.
            pure: loss without a delta; inf if there is none.
            participants: None for all clients.
        """
        if participants is None:
            self.shared = self.shared + cost
            self.shared_pure += pure
            if self.rows is None:
                self.worst = float(self._converted(self.shared[None], np.zeros(1))[0])
                return
            for part in _parts(range(self.clients)):
                self._settle(part, self.rows[part])
            return
        if self.rows is None:
            self._part_ways()
        assert self.rows is not None
        for part in _parts(participants):
            spent = self.rows[part] + cost
            self.rows[part] = spent
            self.pure[part] += pure
            self._settle(part, spent)

    def each(self) -> Array:
        """Return every client's epsilon."""
        return np.full(self.clients, self.worst) if self.rows is None else self.epsilons.copy()

    def median(self) -> float:
        """Return the epsilon of the median client, the lower one of two.

        Epsilons only grow, so it stays what it was until too many have passed it; all clients are
        looked at only then.
        """
        if self.rows is None:
            return self.worst
        middle = (self.clients - 1) // 2
        if self._at_most <= middle:
            self._middle = float(np.partition(self.epsilons, middle)[middle])
            self._at_most = int(np.count_nonzero(self.epsilons <= self._middle))
        return self._middle

    def able(self, budget: Filter, cost: Array, pure: float, name: Hashable) -> Mask:
        """Say who can afford a cost. Asked for the same again, only what changed is computed.

        Args:
            budget: of every client.
            cost: divergences of the next participation at most.
            pure: its pure loss.
            name: of the cost.
        """
        if self.rows is None:
            one = budget.allows(self.shared[None], np.array([self.shared_pure]), cost, pure)
            return np.full(self.clients, bool(one[0]))
        if self._asked is None or self._asked[:2] != (name, budget):
            self._asked = (name, budget, cost, pure)
            self._able = np.zeros(self.clients, np.bool_)
            for part in _parts(range(self.clients)):
                self._settle(part, self.rows[part])
        return self._able.copy()

    def _part_ways(self) -> None:
        # The operating system gives memory to pages that are written to, and only to those.
        self.rows = np.zeros((self.clients, len(ORDERS)))
        self.pure = np.zeros(self.clients)
        self.epsilons = np.full(self.clients, self.worst)
        self._middle, self._at_most = self.worst, self.clients
        self._asked = None

    def _settle(self, part: _Part, spent: Array) -> None:
        """Compute anew what follows from some clients' divergences."""
        spent = spent + self.shared
        pure = self.pure[part]
        epsilons = self._converted(spent, pure)
        passed = (self.epsilons[part] <= self._middle) & (epsilons > self._middle)
        self._at_most -= int(np.count_nonzero(passed))
        self.epsilons[part] = epsilons
        self.worst = max(self.worst, float(epsilons.max()))
        if self._asked is not None:
            _, budget, cost, pure_cost = self._asked
            self._able[part] = budget.allows(spent, pure + self.shared_pure, cost, pure_cost)

    def _converted(self, spent: Array, pure: Array) -> Array:
        best = np.maximum((spent * (1.0 + _ROUNDING) + self.offset).min(axis=1), 0.0)
        return np.asarray(np.minimum(best, pure + self.shared_pure))


def _parts(participants: Ids | range) -> Iterator[_Part]:
    for start in range(0, len(participants), _BLOCK):
        part = participants[start : start + _BLOCK]
        yield slice(part.start, part.stop) if isinstance(part, range) else part
