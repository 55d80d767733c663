"""One batch of reports as the schedule makes it, and the rule by which it closes."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from raydp_sim.random import Ids

Floats = NDArray[np.float64]


def _nobody() -> Ids:
    return np.empty(0, np.uint32)


@dataclass(frozen=True, eq=False)
class Cohort:
    """Whose reports are in a batch, in increasing order of ids.

    Attributes:
        ids: the clients.
        staleness: how many releases were made between a client's ask and this one.
        repeated: those of them whose report arrived twice.
        unused: clients, not among them, whose report arrives too late or was one too many.
        lost: clients, not among them, who were asked and whose report never arrives.
        slots: of each client, where the ask has slots; nobody but the shuffler and that client
            knows it.
    """

    ids: Ids
    staleness: NDArray[np.int64]
    repeated: Ids = field(default_factory=_nobody)
    unused: Ids = field(default_factory=_nobody)
    lost: Ids = field(default_factory=_nobody)
    slots: NDArray[np.int64] | None = None

    @property
    def asked(self) -> Ids:
        """Everyone who was asked, in increasing order; of rounds and of batches with slots."""
        if not len(self.unused) and not len(self.lost):
            return self.ids
        return np.sort(np.concatenate([self.ids, self.unused, self.lost]))

    def slots_of(self, clients: Ids) -> NDArray[np.int64]:
        """Return the slots of some of the clients, where the ask has slots."""
        assert self.slots is not None
        return np.asarray(self.slots[np.searchsorted(self.ids, clients)])


Cohorts = Cohort | dict[int, Cohort] | None
"""Of one release, or of several by their numbers; None where each client decides for itself."""


def cohort_of(release: int, cohorts: Cohorts) -> Cohort | None:
    """Return the cohort of one release."""
    return cohorts[release] if isinstance(cohorts, dict) else cohorts


@dataclass(frozen=True)
class Timing:
    """What the schedule knows of a batch besides who is in it.

    Attributes:
        opened: when it began to take reports in.
        closed: when it was closed.
        due: when the next one may open.
        asked: clients that began to work in that time; None where each client decides for itself
            and only the receipts tell.
        missing: reports that are not in the batch although they were asked for; those that are
            still under way to a later batch do not count.
        dropped: reports that were lost meanwhile.
        late: reports and copies that came after the close of the batch they were meant for.
        repeated: reports that came twice before the close.
        discarded: reports that came in time but answer an ask of another mechanism.
        staleness: mean over the batch of how many releases a report's ask is behind.
        stalest: the largest of them.
        weight: mean weight of the batch's reports.
        oldest: the oldest ask that a client still works on after the close; None if none does.
    """

    opened: float
    closed: float
    due: float
    asked: int | None
    missing: int = 0
    dropped: int = 0
    late: int = 0
    repeated: int = 0
    discarded: int = 0
    staleness: float = 0.0
    stalest: int = 0
    weight: float = 1.0
    oldest: int | None = None

    def after(self, opened: float, due: float) -> "Timing":
        """Return the same of a batch that opened earlier, or after which nothing is due yet."""
        return replace(self, opened=opened, due=due)


def closing(arrivals: Floats, wanted: int, limit: float, least: int, wait: bool) -> float:
    """Return when a batch closes, given all arrivals in order; infinity if never.

    At the `wanted`-th arrival, or at `limit` if by then `least` have arrived. If they have not, it
    closes at the limit all the same, unless it is to wait: then at the `least`-th arrival.

    Example:
        >>> closing(np.array([1.0, 2.0, 9.0]), wanted=3, limit=5.0, least=2, wait=False)
        5.0
        >>> closing(np.array([1.0, 2.0, 9.0]), wanted=3, limit=1.5, least=2, wait=True)
        2.0
    """
    if wanted <= len(arrivals) and arrivals[wanted - 1] <= limit:
        return float(arrivals[wanted - 1])
    if math.isinf(limit):
        return math.inf
    on_time = int(np.searchsorted(arrivals, limit, side="right"))
    if on_time >= least or not wait:
        return limit
    return float(arrivals[least - 1]) if least <= len(arrivals) else math.inf
