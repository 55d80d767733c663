"""Who was charged for what: the account of a run, from which guarantees are computed."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from raydp_sim.privacy.events import CentralRelease, Event, LocalReport
from raydp_sim.random import Ids


@dataclass(frozen=True)
class Guarantee:
    """What the accounting so far proves, for the worst and the median client.

    Attributes:
        epsilon: of the client that was charged most.
        delta: that goes with it; 0 for pure guarantees.
        median: epsilon of the median client.
        bound: name of the bound that gave it.
        assumption: what has to hold for it, and against whom it holds.
    """

    epsilon: float
    delta: float
    median: float
    bound: str
    assumption: str


_VIEWS = {
    LocalReport: (
        "local-composition",
        "each client's released reports, against anyone who sees them, the server included; "
        "nothing is assumed of sampling, of other clients or of the shuffler's permutation, only "
        "that batches it withholds are dropped unseen",
    ),
    CentralRelease: (
        "basic-composition",
        "the released estimates, against anyone who sees them, if the aggregator that holds the "
        "raw values is trusted; neighbours replace one client's data",
    ),
}


@dataclass
class _Participations:
    """How often each client was charged one event; releases with everyone are counted apart."""

    counts: NDArray[np.int32]
    everyone: int = 0
    most: int = 0
    median: float = 0.0

    def add(self, participants: Ids | range) -> None:
        if isinstance(participants, range):
            if len(participants) == len(self.counts):
                self.everyone += 1
                return
            self.counts[participants.start : participants.stop] += 1
        else:
            self.counts[participants] += 1
        self.most, self.median = int(self.counts.max()), _median(self.counts)


@dataclass
class Ledger:
    """Participations per client and event. Basic composition: epsilons and deltas add up.

    Nothing smaller than the sum of the local guarantees is claimed here.

    Example:
        >>> ledger = Ledger(clients=3)
        >>> ledger.charge(LocalReport(0.5), np.array([0, 2], dtype=np.uint32))
        >>> ledger.charge(LocalReport(0.5), np.array([2], dtype=np.uint32))
        >>> ledger.guarantee().epsilon
        1.0
    """

    clients: int
    charged: dict[Event, _Participations] = field(default_factory=dict)

    def open_view(self, event: Event) -> None:
        """Say which kind of event will be charged, so that an empty account names its view too."""
        if event not in self.charged:
            self.charged[event] = _Participations(np.zeros(self.clients, np.int32))

    def charge(self, event: Event, participants: Ids | range) -> None:
        """Charge one event to clients in increasing order; refuse unknown ones first."""
        if len(participants) and int(participants[-1]) >= self.clients:
            raise ValueError(f"client {int(participants[-1])} is not among {self.clients}")
        self.open_view(event)
        self.charged[event].add(participants)

    def guarantee(self) -> Guarantee:
        """Return what has been proved for the worst and the median client."""
        kinds = {type(event) for event in self.charged} or {LocalReport}
        if len(kinds) > 1:
            raise ValueError("local and central events in one ledger have no common view")
        bound, assumption = _VIEWS[kinds.pop()]
        if len(self.charged) == 1:
            (event, taken), *_ = self.charged.items()
            most, median = taken.everyone + taken.most, taken.everyone + taken.median
            spent = (most * event.epsilon, most * event.delta, median * event.epsilon)
        else:
            epsilons, deltas = np.zeros(self.clients), np.zeros(self.clients)
            for event, taken in self.charged.items():
                epsilons += (taken.everyone + taken.counts) * event.epsilon
                deltas += (taken.everyone + taken.counts) * event.delta
            spent = (float(epsilons.max()), float(deltas.max()), float(np.median(epsilons)))
        return Guarantee(*spent, bound, assumption)


def _median(counts: NDArray[np.int32]) -> float:
    """Return the median of small whole numbers; counting them is faster than sorting."""
    below = np.cumsum(np.bincount(counts))
    middle = np.searchsorted(below, ((len(counts) + 1) // 2, len(counts) // 2 + 1))
    return float(middle.mean())
