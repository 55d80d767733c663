"""Who was charged for what: the account of a run, from which guarantees are computed."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from raydp_sim.privacy.composition.streaming import event_vector
from raydp_sim.privacy.curves.caps import pure_epsilon
from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.errors import Contradiction
from raydp_sim.privacy.events import (
    EnsembleRelease,
    Event,
    LocalReport,
    Release,
    ShuffledRelease,
)
from raydp_sim.privacy.floors.floors import in_words, least_so_far, refuse_below
from raydp_sim.privacy.ledger.divergences import Divergences
from raydp_sim.privacy.ledger.filter import ALPHA_MAX, Filter, Mask
from raydp_sim.privacy.ledger.laws import Laws
from raydp_sim.privacy.ledger.participations import Participations
from raydp_sim.privacy.ledger.sizes import rounded
from raydp_sim.privacy.ledger.views import (
    BUDGET,
    NONE,
    ONCE,
    OPEN_ENDED,
    PARALLEL,
    SEEN,
    VIEWS,
    Guarantee,
    charged_to_all,
    of_items,
    view_of,
)
from raydp_sim.privacy.spent import Spent, rounded_up, spent
from raydp_sim.random import Ids

Rule = Literal["laws", "divergences", "plan", "once"]
"""How a client's charges are added up; see `Ledger`."""
Agreed = tuple[tuple[Event, Release | None, int], ...]
"""What a client in every release is charged at most: report, release, and how often."""

HISTORIES = 64
"""Different histories of clients beyond which divergences are added instead of loss laws."""
# Of so many different releases divergences are added as they are; of more, rounded to 16 sizes an
# octave, or to 4 where they stand back behind loss laws.
_EXACT, _SIZES, _FEWER = 24, 16, 4
# Of so many different releases the floors are asked for.
_FLOORS = 64

Collector = Literal["shuffler", "server"]


@dataclass
class Ledger:
    """Who was charged for what, summed up client by client as it happens.

    Two accounts are kept side by side. Basic composition: epsilons and deltas add up over the
    releases a client took part in. Of releases as a whole (shuffled, or with known noise) either
    every one is charged to all eligible clients (sampled events) or every one to its participants,
    never a mixture. The smaller guarantee is reported, with the view it holds for.

    How releases as a whole are added up:

    * "laws": by the best bound on the whole sequence, loss distributions included (`laws`), up to
      `HISTORIES` different histories; beyond that, or where divergences say less, by those. Only
      where what was released decides neither what is released next nor when it ends.
    * "divergences": Renyi divergences, order by order, as budgets are kept (`filter`).
    * "plan": what a client in every planned release is charged, from the first release on: where
      what was released may end the run, when it ended tells something too.
    * "once": every client is charged once at most, and refused otherwise. Then releases have
      disjoint clients, and whatever decides on later ones, a client's data are protected as its own
      release protects them: parallel composition. The dearest release that the plan allows is what
      the run costs, and a dearer one is refused.

    A charge costs participants times orders, whatever was charged before.

    Attributes:
        clients: how many there are.
        delta: at which divergences are converted.
        charged: how often each event was charged.
        shuffled: how often each release was.
        collector: who receives the reports, for the words about a sum of local losses.
        rule: how releases as a whole are added up.
        plan: what a client in every release is charged at most.
        kept_within: epsilon that a filter keeps every client within, at this delta or a smaller
            one: no more than that is reported.
        caveat: what breaks a condition of the guarantee, said with every one; empty if nothing.

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
    collector: Collector = "shuffler"
    rule: Rule = "divergences"
    plan: Agreed = ()
    kept_within: float = math.inf
    caveat: str = ""

    def __post_init__(self) -> None:
        self._taken = Participations(self.clients)
        self._spent = Divergences(self.clients, self.delta)
        planned: dict[Release, int] = {}
        for _, release, times in self.plan:
            if release is not None:
                planned[release] = planned.get(release, 0) + times
        self._planned = planned
        self._laws = Laws(self.delta, planned)
        # What the client that paid most was charged at least: for releases that everyone paid, all
        # of them; for others one. Those since it was last asked for are counted then.
        self._floor = 0.0
        self._by_everyone: dict[Release, int] = {}
        self._unasked: set[Release] = set()

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
        if (wrong := self.refuses(event, release)) is not None:
            raise ValueError(wrong)
        if isinstance(event, EnsembleRelease):
            # A record is protected, which may be behind every vote, whoever voted this time.
            participants = range(self.clients)
        who = None if len(participants) == self.clients else participants
        if self.rule == "once" and self._taken.any(participants):
            raise ValueError("a client is charged twice, in a run whose clients serve once")
        if release is not None:
            everyone = charged_to_all(release)
            paid = times if everyone or len(participants) else 0
            self.shuffled[release] = self.shuffled.get(release, 0) + paid
            if paid:
                if self.rule != "once":  # where one charge is all there is to a client
                    cost, pure = self._cost(release), pure_epsilon(release)
                    self._spent.add(paid * cost, paid * pure, None if everyone else who)
                    self._laws.add(release, paid)
                everybody = paid if everyone or who is None else 0
                self._by_everyone[release] = self._by_everyone.get(release, 0) + everybody
                if release in self._unasked or len(self._by_everyone) <= _FLOORS:
                    self._unasked.add(release)
        self.charged[event] = self.charged.get(event, 0) + times
        self._taken.add(event, who, times)

    def refuses(self, event: Event, release: Release | None = None) -> str | None:
        """Return why a charge does not go with those before it; None if it does."""
        if (dear := self._too_dear(event, release)) is not None:
            return dear
        before = [known for known, times in self.charged.items() if times]
        units = {known.unit for known in (*before, event, *self.shuffled)}
        if release is not None:
            units.add(release.unit)
        if len(units) > 1:
            return "guarantees of items and of clients are never added up"
        if before and bool(self.shuffled) != (release is not None):
            return "either all releases are known as a whole or none, never some"
        if release is None:
            bare = {math.isinf(known.epsilon) for known in (*before, event)}
            several = "releases with and without a guarantee are never added up"
            return several if len(bare) > 1 else None
        if len({charged_to_all(known) for known in (*self.shuffled, release)}) > 1:
            return "a run charges all eligible clients or participants, never both"
        return None

    def _too_dear(self, event: Event, release: Release | None) -> str | None:
        """Return that a release costs more than any that is planned, where clients serve once."""
        if self.rule != "once" or not self.plan:
            return None
        if release is None:
            cost, most = event.epsilon, self.plan[0][0].epsilon
        else:
            cost, most = pure_epsilon(release), self._dearest.epsilon
            if cost > most:  # else it is known without asking any bound
                cost = spent([(release, 1)], self.delta).epsilon
        if cost <= most * (1.0 + 1e-9):
            return None
        return f"it costs epsilon {cost:.6g}, and no release was to cost more than {most:.6g}"

    def guarantee(self) -> Guarantee:
        """Return what has been proved for the worst and the median client.

        Raises:
            Contradiction: it would be less than what the client that paid most was charged at
                least (privacy.floors), so the bound that gave it is wrong.
        """
        found = self._best()
        return replace(found, assumption=found.assumption + self.caveat)

    def _best(self) -> Guarantee:
        local = self._composed()
        if not self.shuffled:
            return local
        amplified = self._amplified()
        # Where the sum of local losses is smaller it holds in the shuffled view too; that of
        # reports with a delta may have too large a one.
        smaller = local.epsilon <= amplified.epsilon and local.delta <= self.delta
        found = local if smaller else amplified
        # A task may charge more than what happened; the reports' own losses then may be less.
        if found.amplified and found.delta <= self.delta:
            self._refuse_below(found)
        return found

    def epsilons(self) -> Array:
        """Return every client's epsilon, in the view that `guarantee` reports."""
        found, counts = self.guarantee(), self.participations()
        if self.rule == "once" and found.amplified:
            return np.where(counts > 0, found.epsilon, 0.0)
        if self.rule == "plan":
            everyone = found.amplified and self._spent.rows is None
            return np.where(everyone | (counts > 0), found.epsilon, 0.0)
        if not found.amplified:
            return self._taken.epsilons()
        if self._spent.rows is None:
            return np.full(self.clients, found.epsilon)
        if self._by_laws() is None:
            return np.minimum(self._spent.each(), self.kept_within)
        values, place = np.unique(counts, return_inverse=True)
        return np.array([self._laws.of(int(count)).epsilon for count in values])[place]

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
            release: what the next release may be at worst, with the smallest batch that is
                released; None where only reports count.
            budget: of every client.
        """
        if self.rule == "once":
            return np.asarray(self._taken.totals() == 0)
        if release is None:
            taken = self._taken
            return budget.allows_basic(taken.epsilons(), taken.deltas(), event.epsilon, event.delta)
        cost = event_vector(release, None, ALPHA_MAX)
        able = self._spent.able(budget, cost, pure_epsilon(release), release)
        if budget.count:
            able |= self._taken.totals() < budget.count
        if able.any():
            refuse_below("budget", budget.epsilon, [(release, 1)], budget.delta)
        return able

    def _cost(self, release: Release) -> Array:
        """Return divergences of a release, of few different sizes in all."""
        if self.rule == "laws":
            release = rounded(release, _FEWER)
        elif release not in self.shuffled and len(self.shuffled) >= _EXACT:
            release = rounded(release, _SIZES)
        return event_vector(release, None, ALPHA_MAX)

    def _refuse_below(self, found: Guarantee) -> None:
        for release in self._unasked:
            times = max(1, self._by_everyone[release])
            self._floor = max(self._floor, least_so_far(release, times, self.delta))
        self._unasked.clear()
        if not found.epsilon >= self._floor:
            paid = [(event, times) for event, times in self.shuffled.items() if times]
            raise Contradiction(found.bound, found.epsilon, self._floor, self.delta, in_words(paid))

    def _composed(self) -> Guarantee:
        kinds = {type(event) for event in self.charged} or {LocalReport}
        if len(kinds) > 1:
            raise ValueError("events of different kinds in one ledger have no common view")
        kind = kinds.pop()
        bound, assumption = VIEWS[kind]
        if kind is LocalReport and self.collector == "server":
            assumption = SEEN
        if not self.shuffled and any(math.isinf(event.epsilon) for event in self.charged):
            bound, assumption = NONE
        elif any(event.unit == "item" for event in self.charged):
            assumption = of_items(assumption)
        if votes := [event for event in self.charged if isinstance(event, EnsembleRelease)]:
            assumption = view_of(votes[0])
        if honest := [event.n for event in self.charged if isinstance(event, ShuffledRelease)]:
            assumption = assumption.format(n=max(honest))
        if self.rule == "plan" and any(self.charged.values()):
            epsilon = math.fsum(times * event.epsilon for event, _, times in self.plan)
            delta = math.fsum(times * event.delta for event, _, times in self.plan)
            median = epsilon if self._taken.middle() else 0.0
            return Guarantee(epsilon, delta, median, bound, assumption + OPEN_ENDED)
        assumption += ONCE if self.rule == "once" else ""
        return Guarantee(*self._taken.worst(), self._taken.median(), bound, assumption)

    def _amplified(self) -> Guarantee:
        found = self._added_up()
        if found.epsilon <= self.kept_within:
            return found
        kept, median = self.kept_within, min(found.median, self.kept_within)
        return replace(found, epsilon=kept, median=median, bound=BUDGET)

    def _added_up(self) -> Guarantee:
        view = view_of(next(iter(self.shuffled)), self.collector)
        if self.rule in ("plan", "once"):
            whole = Spent(0.0, "pure")
            once = self.rule == "once"
            if any(self.shuffled.values()):
                whole = self._dearest if once else self._of_plan
            everyone = (self._spent.rows is None and not once) or self._taken.middle() > 0
            median = whole.epsilon if everyone else 0.0
            view += ONCE if once else OPEN_ENDED
            return Guarantee(whole.epsilon, self.delta, median, whole.bound, view)
        if (found := self._by_laws()) is not None:
            worst, median = found
            return Guarantee(worst.epsilon, self.delta, median, worst.bound, view)
        return Guarantee(self._spent.worst, self.delta, self._spent.median(), "rdp-best", view)

    @property
    def _dearest(self) -> Spent:
        """What one of the planned releases costs at most, without regard to delta."""
        return Spent(max(pure_epsilon(release) for release in self._planned), PARALLEL)

    @cached_property
    def _of_plan(self) -> Spent:
        """What all of the plan costs, by loss laws or by divergences, whichever is less."""
        by_laws = spent(tuple(self._planned.items()), self.delta)
        alone = Ledger(clients=1, delta=self.delta)
        for event, release, times in self.plan:
            alone.charge(event, range(1), release, times)
        # Not `guarantee`, which may add up the reports' own losses, at another delta.
        by_divergences = Spent(alone._spent.worst, "rdp-best")
        return min(by_laws, by_divergences, key=lambda found: found.epsilon)

    def _by_laws(self) -> tuple[Spent, float] | None:
        """Return the worst and the median client's by loss laws; None: divergences are to be used.

        That is decided by the worst client and holds for all, so that one view is reported.
        """
        if self.rule != "laws" or self._spent.worst == 0.0:
            return None
        if self._spent.rows is None:
            alike = self._laws.of_all()
            known = alike is not None and alike.epsilon <= self._spent.worst
            return (alike, alike.epsilon) if alike is not None and known else None
        if not self._laws.ordered:
            return None
        if len({rounded_up(count) for count in self._taken.different()}) > HISTORIES:
            return None
        worst, median = (self._laws.of(n) for n in (self._taken.highest(), self._taken.middle()))
        return (worst, median.epsilon) if worst.epsilon <= self._spent.worst else None
