"""How often each client took part, and what that costs by basic composition."""

import numpy as np
from numpy.typing import NDArray

from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.events import Event
from raydp_sim.random import Ids


class Participations:
    """Counts per client; epsilons and deltas add up over the releases it took part in.

    While all events are the same, counts are all that is needed and sums are exact multiples. From
    the second kind of event on every client has a sum of its own, in the order of the charges.

    Example:
        >>> from raydp_sim.privacy.events import LocalReport
        >>> taken = Participations(3)
        >>> taken.add(LocalReport(0.5), np.array([0, 2], dtype=np.uint32), 2)
        >>> taken.add(LocalReport(0.5), None, 1)
        >>> taken.epsilons().tolist()
        [1.5, 0.5, 1.5]
    """

    def __init__(self, clients: int) -> None:
        # The operating system gives memory to pages that are written to, and only to those.
        self.counts: NDArray[np.int32] = np.zeros(clients, np.int32)
        self.with_count = np.array([clients])  # how many clients have each count
        self.everyone = 0  # releases with all clients, counted apart
        self.most = 0
        self.event: Event | None = None
        self.sums: Array | None = None  # epsilons and deltas, where events differ
        self.shared = np.zeros(2)

    def add(self, event: Event, participants: Ids | range | None, times: int) -> None:
        """Count participants, or everyone."""
        if self.event is None:
            self.event = event
        elif self.sums is None and event != self.event:
            self.sums = np.stack([self.epsilons(), self.deltas()])
        loss = np.array([event.epsilon, event.delta])
        if participants is None:
            self.everyone += times
            if self.sums is not None:
                self.shared += times * loss
            return
        where = _index(participants)
        if len(participants):
            before = self.counts[where]
            after = before + np.int32(times)
            self.most = max(self.most, int(after.max()))
            moved = np.bincount(after, minlength=self.most + 1)
            moved -= np.bincount(before, minlength=self.most + 1)
            self.counts[where] = after
            moved[: len(self.with_count)] += self.with_count
            self.with_count = moved
        if self.sums is not None:
            self.sums[:, where] += times * loss[:, None]

    def any(self, participants: Ids | range) -> bool:
        """Say whether one of some clients has taken part."""
        return self.everyone > 0 or bool(self.counts[_index(participants)].any())

    def epsilons(self) -> Array:
        """Return each client's sum of epsilons."""
        if self.sums is not None:
            return np.asarray(self.sums[0] + self.shared[0])
        return self._multiples(0.0 if self.event is None else self.event.epsilon)

    def deltas(self) -> Array:
        """Return each client's sum of deltas."""
        if self.sums is not None:
            return np.asarray(self.sums[1] + self.shared[1])
        return self._multiples(0.0 if self.event is None else self.event.delta)

    def totals(self) -> NDArray[np.int64]:
        """Return how often each client took part."""
        return np.asarray(self.counts.astype(np.int64) + self.everyone)

    def worst(self) -> tuple[float, float]:
        """Return the largest sum of epsilons and the largest sum of deltas."""
        if self.sums is not None:
            epsilon, delta = self.sums.max(axis=1) + self.shared
            return float(epsilon), float(delta)
        most = self.everyone + self.most
        if self.event is None or most == 0:
            return 0.0, 0.0
        return most * self.event.epsilon, most * self.event.delta

    def highest(self) -> int:
        """Return how often the client that took part most often did."""
        return self.everyone + self.most

    def middle(self) -> int:
        """Return how often the median client took part, the lower one of two."""
        rank = (len(self.counts) + 1) // 2
        return self.everyone + int(np.searchsorted(np.cumsum(self.with_count), rank))

    def different(self) -> list[int]:
        """Return the different numbers of times that clients took part."""
        return [int(count) + self.everyone for count in np.flatnonzero(self.with_count)]

    def median(self) -> float:
        """Return the median of the sums of epsilons."""
        if self.sums is not None:
            return float(np.median(self.epsilons()))
        below = np.cumsum(self.with_count)
        size = len(self.counts)
        middle = np.searchsorted(below, ((size + 1) // 2, size // 2 + 1))
        times = self.everyone + float(middle.mean())
        return 0.0 if self.event is None or times == 0 else times * self.event.epsilon

    def _multiples(self, loss: float) -> Array:
        totals = self.totals()
        # Nothing times an infinite loss is nothing.
        return np.where(totals > 0, np.maximum(totals, 1) * loss, 0.0)


def _index(participants: Ids | range) -> Ids | slice:
    if isinstance(participants, range):
        return slice(participants.start, participants.stop)
    return participants


def gini(counts: NDArray[np.int64]) -> float:
    """Return the Gini coefficient: 0 if all are equal, near 1 if one has everything.

    Example:
        >>> gini(np.array([0, 0, 0, 4]))
        0.75
    """
    total, size = int(counts.sum()), len(counts)
    if total == 0:
        return 0.0
    # By groups of equals, in increasing order: who has `value` and the ranks that they take up.
    values, members = np.unique(counts, return_counts=True)
    last = np.cumsum(members)
    ranks = members * (2 * last - members + 1)  # twice the sum of the ranks of the group
    return (
        float(np.dot(ranks.astype(float), values.astype(float)) / (size * total))
        - (size + 1) / size
    )
