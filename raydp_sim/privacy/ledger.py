"""Who was charged for what: the account of a run, from which guarantees are computed."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.caps import pure_epsilon
from raydp_sim.privacy.conversion import order_grid
from raydp_sim.privacy.events import (
    CentralRelease,
    Event,
    GaussianRelease,
    LaplaceRelease,
    LocalReport,
    MultiMessageShuffle,
    Release,
    Shuffle,
    ShuffledRelease,
    SubsampledMultiMessage,
    SubsampledShuffle,
)
from raydp_sim.privacy.streaming import event_vector
from raydp_sim.random import Ids

_ALPHA_MAX = 1024
_SAMPLED = (SubsampledShuffle, SubsampledMultiMessage)


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


_LOCAL = (
    "local-composition",
    "each client's released reports, against anyone who sees them, the server included; "
    "given who took part in which release; nothing is assumed of sampling, of other clients or of "
    "the shuffler's permutation, only that batches it withholds are dropped unseen",
)
_CENTRAL = (
    "basic-composition",
    "the released estimates, against anyone who sees them, if the aggregator that holds the "
    "raw values is trusted; neighbours replace one client's data",
)
_TOGETHER = (
    "basic-composition",
    "the shuffled messages of all releases, against a server that sees nothing else, if the "
    "shuffler is honest and so are at least {n} clients of every batch; a report alone is not "
    "protected, not even from the shuffler; neighbours replace one client's data; those who took "
    "part are charged",
)
_VIEWS = {LocalReport: _LOCAL, CentralRelease: _CENTRAL, ShuffledRelease: _TOGETHER}
_SHUFFLED = (
    "the shuffled messages of all releases, against a server that sees nothing else, if the "
    "shuffler is honest and so are the clients counted; neighbours replace one client's data; "
)
_WHO = {
    True: "every eligible client is charged, and each cohort is uniform, secret and independent "
    "of the data",
    False: "those who took part are charged, with the batch that really formed and nothing "
    "gained from sampling",
}


@dataclass
class _Participations:
    """How often each client was charged one event; releases with everyone are counted apart."""

    counts: NDArray[np.int32]
    everyone: int = 0
    most: int = 0
    median: float = 0.0

    def add(self, participants: Ids | range, times: int) -> None:
        if isinstance(participants, range):
            if len(participants) == len(self.counts):
                self.everyone += times
                return
            self.counts[participants.start : participants.stop] += times
        else:
            self.counts[participants] += times
        self.most, self.median = int(self.counts.max()), _median(self.counts)


@dataclass
class Ledger:
    """Participations per client and event.

    Two accounts are kept side by side. Basic composition: epsilons and deltas add up over the
    releases a client took part in. Of releases as a whole (shuffled, or with known noise) Renyi
    divergences add up: either every release is charged to all eligible clients (sampled events) or
    every one to its participants, never a mixture. The smaller guarantee is reported, with the view
    it holds for.

    Example:
        >>> ledger = Ledger(clients=3)
        >>> ledger.charge(LocalReport(0.5), np.array([0, 2], dtype=np.uint32))
        >>> ledger.charge(LocalReport(0.5), np.array([2], dtype=np.uint32))
        >>> ledger.guarantee().epsilon
        1.0
    """

    clients: int
    delta: float = 1e-6
    charged: dict[Event, _Participations] = field(default_factory=dict)
    shuffled: dict[Release, _Participations] = field(default_factory=dict)

    def open_view(self, event: Event) -> None:
        """Say which kind of event will be charged, so that an empty account names its view too."""
        if event not in self.charged:
            self.charged[event] = _Participations(np.zeros(self.clients, np.int32))

    def charge(
        self,
        event: Event,
        participants: Ids | range,
        release: Release | None = None,
        times: int = 1,
    ) -> None:
        """Charge clients in increasing order; a refused charge leaves the ledger as it was.

        Args:
            event: what one report, or the release of a trusted aggregator, costs a participant.
            participants: who took part.
            release: what the release as a whole was, if more is known than the reports.
            times: how often.
        """
        if len(participants) and int(participants[-1]) >= self.clients:
            raise ValueError(f"client {int(participants[-1])} is not among {self.clients}")
        if release is not None:
            sampled = {isinstance(known, _SAMPLED) for known in (*self.shuffled, release)}
            if len(sampled) > 1:
                raise ValueError("a run charges all eligible clients or participants, never both")
            if release not in self.shuffled:
                fresh = np.zeros(0 if isinstance(release, _SAMPLED) else self.clients, np.int32)
                self.shuffled[release] = _Participations(fresh)
            everyone = isinstance(release, _SAMPLED)
            self.shuffled[release].add(range(0) if everyone else participants, times)
        self.open_view(event)
        self.charged[event].add(participants, times)

    def guarantee(self, exact: bool = False) -> Guarantee:
        """Return what has been proved for the worst and the median client.

        Args:
            exact: take every bound into account where all clients are charged alike, which costs
                up to a second; otherwise Renyi divergences on a grid of orders, which costs little.
        """
        local = self._composed()
        if not self.shuffled:
            return local
        amplified = self._amplified(exact)
        if amplified.epsilon < local.epsilon:
            return amplified
        # Where the sum of local losses is smaller it holds in the shuffled view too.
        return local

    def _composed(self) -> Guarantee:
        kinds = {type(event) for event in self.charged} or {LocalReport}
        if len(kinds) > 1:
            raise ValueError("events of different kinds in one ledger have no common view")
        bound, assumption = _VIEWS[kinds.pop()]
        if honest := [event.n for event in self.charged if isinstance(event, ShuffledRelease)]:
            assumption = assumption.format(n=max(honest))
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

    def _amplified(self, exact: bool) -> Guarantee:
        sampled = isinstance(next(iter(self.shuffled)), _SAMPLED)
        rows, weights = self._histories()
        epsilons = self._rdp_epsilons(rows)
        order = np.argsort(epsilons)
        middle = np.searchsorted(np.cumsum(weights[order]), (weights.sum() + 1) // 2)
        worst, median = float(epsilons.max()), float(epsilons[order[middle]])
        central = isinstance(next(iter(self.shuffled)), GaussianRelease | LaplaceRelease)
        view = _CENTRAL[1] if central else _SHUFFLED + _WHO[sampled]
        found = Guarantee(worst, self.delta, median, "rdp-best", view)
        if exact and len(rows) == 1:
            counted = [(event, int(n)) for event, n in zip(self.shuffled, rows[0], strict=True)]
            best = account(counted, self.delta)
            if best.best is not None and best.epsilon < worst:
                return replace(found, epsilon=best.epsilon, median=best.epsilon, bound=best.best)
        return found

    def _histories(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the distinct rows of how often each event was charged, and how many have each."""
        everyone = np.array([taken.everyone for taken in self.shuffled.values()])
        taken = list(self.shuffled.values())
        if not any(part.most for part in taken):
            return everyone[None], np.array([self.clients])
        # A client's history as one number, which sorts faster than a row; ranked anew after every
        # event, so that it stays below clients * releases and can never wrap around.
        code = np.zeros(self.clients, np.int64)
        for part in taken:
            code = code * (part.most + 1) + part.counts
            _, first, code, weights = np.unique(
                code, return_index=True, return_inverse=True, return_counts=True
            )
        return np.stack([part.counts[first] for part in taken], axis=1) + everyone, weights

    def _rdp_epsilons(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Convert every history's sum of divergences at the best order (000 Lemma 2.1.3)."""
        orders = order_grid(_ALPHA_MAX).astype(np.float64)
        vectors = np.array([event_vector(event, None, _ALPHA_MAX) for event in self.shuffled])
        pure = np.array([pure_epsilon(event) for event in self.shuffled])
        gain = (orders - 1) * np.log1p(-1 / orders) - np.log(orders) - math.log(self.delta)
        converted = (rows @ vectors + gain / (orders - 1)).min(axis=1)
        added = np.where(rows > 0, rows * np.where(np.isinf(pure), 1e300, pure), 0.0).sum(axis=1)
        spent = np.minimum(np.maximum(converted, 0.0), added)
        return np.asarray(np.where(rows.any(axis=1), spent, 0.0))


def rounded(event: Release) -> Release:
    """Round a batch down to one of few sizes, so that releases of nearly one size share a vector.

    A batch of n hides no less than a batch of fewer: the others' messages are independent of the
    victim's, so whoever sees fewer can add them. Steps of a quarter of an octave cost little.

    Example:
        >>> rounded(Shuffle(1.0, 1000)).n
        861
    """
    if not isinstance(event, Shuffle | MultiMessageShuffle) or event.n < 8:
        return event
    step = math.floor(4 * math.log2(event.n))
    size = math.floor(2 ** (step / 4))
    while size > event.n:  # rounding of the logarithm
        size -= 1
    return replace(event, n=size)


def _median(counts: NDArray[np.int32]) -> float:
    """Return the median of small whole numbers; counting them is faster than sorting."""
    below = np.cumsum(np.bincount(counts))
    middle = np.searchsorted(below, ((len(counts) + 1) // 2, len(counts) // 2 + 1))
    return float(middle.mean())
