"""Who was charged for what: the account of a run, from which guarantees are computed."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.caps import pure_epsilon
from raydp_sim.privacy.divergences import Divergences
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
from raydp_sim.privacy.filter import ALPHA_MAX, Filter, Mask
from raydp_sim.privacy.numerics import Array
from raydp_sim.privacy.participations import Participations
from raydp_sim.privacy.streaming import event_vector
from raydp_sim.random import Ids

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

    @property
    def amplified(self) -> bool:
        """Whether it is of releases as a whole, not the sum of what single reports cost."""
        return self.bound not in (_LOCAL[0], _CENTRAL[0])


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
    "gained from sampling; given who took part when, which must not depend on the data",
}


@dataclass
class Ledger:
    """Who was charged for what, summed up client by client as it happens.

    Two accounts are kept side by side. Basic composition: epsilons and deltas add up over the
    releases a client took part in. Of releases as a whole (shuffled, or with known noise) Renyi
    divergences add up: either every release is charged to all eligible clients (sampled events) or
    every one to its participants, never a mixture. The smaller guarantee is reported, with the view
    it holds for.

    A charge costs participants times orders, whatever was charged before.

    Attributes:
        clients: how many there are.
        delta: at which divergences are converted.
        charged: how often each event was charged.
        shuffled: how often each release was.

    Example:
        >>> ledger = Ledger(clients=3)
        >>> ledger.charge(LocalReport(0.5), np.array([0, 2], dtype=np.uint32))
        >>> ledger.charge(LocalReport(0.5), np.array([2], dtype=np.uint32))
        >>> ledger.guarantee().epsilon
        1.0
    """

    clients: int
    delta: float = 1e-6
    charged: dict[Event, int] = field(default_factory=dict)
    shuffled: dict[Release, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._taken = Participations(self.clients)
        self._spent = Divergences(self.clients, self.delta)

    def open_view(self, event: Event) -> None:
        """Say which kind of event will be charged, so that an empty account names its view too."""
        self.charged.setdefault(event, 0)

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
        who = None if len(participants) == self.clients else participants
        if (
            self.charged
            and any(self.charged.values())
            and bool(self.shuffled) != (release is not None)
        ):
            raise ValueError("either all releases are known as a whole or none, never some")
        if release is not None:
            sampled = {charged_to_all(known) for known in (*self.shuffled, release)}
            if len(sampled) > 1:
                raise ValueError("a run charges all eligible clients or participants, never both")
            cost, pure = event_vector(release, None, ALPHA_MAX), pure_epsilon(release)
            everyone = sampled == {True}
            paid = times if everyone or len(participants) else 0
            self.shuffled[release] = self.shuffled.get(release, 0) + paid
            if paid:
                self._spent.add(paid * cost, paid * pure, None if everyone else who)
        self.charged[event] = self.charged.get(event, 0) + times
        self._taken.add(event, who, times)

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

    def epsilons(self, exact: bool = False) -> Array:
        """Return every client's epsilon, in the view that `guarantee` reports."""
        found = self.guarantee(exact)
        if not found.amplified:
            return self._taken.epsilons()
        if self._spent.rows is None:
            return np.full(self.clients, found.epsilon)
        return self._spent.each()

    def participations(self) -> NDArray[np.int64]:
        """Return in how many releases each client took part."""
        return self._taken.totals()

    def never(self) -> float:
        """Return the share of clients that nothing was charged to."""
        everyone = any(charged_to_all(known) and times for known, times in self.shuffled.items())
        return 0.0 if everyone else float((self._taken.totals() == 0).mean())

    def able(self, event: Event, release: Release | None, budget: Filter) -> Mask:
        """Say which clients can afford to take part once more.

        Args:
            event: what the next report costs.
            release: what the next release may be at worst, with the smallest batch that is let
                out; None where only reports count.
            budget: of every client.
        """
        if release is None:
            taken = self._taken
            return budget.allows_basic(taken.epsilons(), taken.deltas(), event.epsilon, event.delta)
        cost = event_vector(release, None, ALPHA_MAX)
        return self._spent.able(budget, cost, pure_epsilon(release), release)

    def _composed(self) -> Guarantee:
        kinds = {type(event) for event in self.charged} or {LocalReport}
        if len(kinds) > 1:
            raise ValueError("events of different kinds in one ledger have no common view")
        bound, assumption = _VIEWS[kinds.pop()]
        if honest := [event.n for event in self.charged if isinstance(event, ShuffledRelease)]:
            assumption = assumption.format(n=max(honest))
        return Guarantee(*self._taken.worst(), self._taken.median(), bound, assumption)

    def _amplified(self, exact: bool) -> Guarantee:
        first = next(iter(self.shuffled))
        central = isinstance(first, GaussianRelease | LaplaceRelease)
        view = _CENTRAL[1] if central else _SHUFFLED + _WHO[charged_to_all(first)]
        worst, median = self._spent.worst, self._spent.median()
        found = Guarantee(worst, self.delta, median, "rdp-best", view)
        if exact and worst > 0 and self._spent.rows is None:
            paid = [(event, times) for event, times in self.shuffled.items() if times]
            best = account(paid, self.delta)
            if best.best is not None and best.epsilon < worst:
                return replace(found, epsilon=best.epsilon, median=best.epsilon, bound=best.best)
        return found


def charged_to_all(release: Release | None) -> bool:
    """Say whether everyone who might have been sampled is charged, not only participants."""
    return isinstance(release, _SAMPLED)


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
