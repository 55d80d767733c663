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
        "each client's reports, against anyone who sees them, the server included; nothing is "
        "assumed of the shuffler, of sampling or of other clients",
    ),
    CentralRelease: (
        "basic-composition",
        "the released estimates, against anyone who sees them, if the aggregator that holds the "
        "raw values is trusted; neighbours replace one client's data",
    ),
}


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
    charged: dict[Event, NDArray[np.int32]] = field(default_factory=dict)

    def open_view(self, event: Event) -> None:
        """Say which kind of event will be charged, so that an empty account names its view too."""
        self.charged.setdefault(event, np.zeros(self.clients, np.int32))

    def charge(self, event: Event, participants: Ids) -> None:
        """Charge one event to distinct clients; refuse unknown ones before any change."""
        if len(participants) and int(participants.max()) >= self.clients:
            raise ValueError(f"client {int(participants.max())} is not among {self.clients}")
        self.open_view(event)
        if len(participants) == self.clients:
            self.charged[event] += 1  # everyone: ten times faster than by their numbers
        else:
            self.charged[event][participants] += 1

    def guarantee(self) -> Guarantee:
        """Return what has been proved for the worst and the median client."""
        kinds = {type(event) for event in self.charged} or {LocalReport}
        if len(kinds) > 1:
            raise ValueError("local and central events in one ledger have no common view")
        bound, assumption = _VIEWS[kinds.pop()]
        if len(self.charged) == 1:
            (event, counts), *_ = self.charged.items()
            most, median = int(counts.max()), _median(counts)
            spent = (most * event.epsilon, most * event.delta, median * event.epsilon)
        else:
            epsilons, deltas = np.zeros(self.clients), np.zeros(self.clients)
            for event, counts in self.charged.items():
                epsilons += counts * event.epsilon
                deltas += counts * event.delta
            spent = (float(epsilons.max()), float(deltas.max()), float(np.median(epsilons)))
        return Guarantee(*spent, bound, assumption)


def _median(counts: NDArray[np.int32]) -> float:
    """Return the median of small whole numbers; counting them is faster than sorting."""
    below = np.cumsum(np.bincount(counts))
    middle = np.searchsorted(below, ((len(counts) + 1) // 2, len(counts) // 2 + 1))
    return float(middle.mean())
