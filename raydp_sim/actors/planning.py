"""Planning cohorts: who is in each batch, and which slot each of them has."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import RunError
from raydp_sim.scenario import Scenario, bound_mechanism
from raydp_sim.scenario.accounting import one_mechanism
from raydp_sim.scenario.feasible import check_ask
from raydp_sim.schedule.batch import Cohort, Timing
from raydp_sim.schedule.schedule import Schedule
from raydp_sim.schedule.world import Mask
from raydp_sim.tasks.base import Arrays, Ask


class Planning:
    """Plans batches without looking at anyone's data; whoever collects first does it.

    Readers behind a shuffler never learn a cohort, a slot or a version.
    """

    def __init__(self, scenario: Scenario, repetition: int) -> None:
        self.scenario, self.repetition = scenario, repetition

    def start(self, saved: Arrays | None, absent: Mask | None) -> None:
        """Start the schedule of the repetition, or take it up again."""
        root = self.scenario.stream(self.repetition)
        self.schedule = Schedule(self.scenario, root, absent, saved)

    def choose(
        self,
        release: int,
        time: float,
        share: int,
        head: Ask,
        able: Mask | None,
        others: Collection[int] = (),
    ) -> tuple[Any, Cohort | None]:
        """Plan the batch of a release.

        Args:
            release: its number.
            time: when a round may begin.
            share: clients of a placement.
            head: what is public of the ask.
            able: whose budget allows one more report; None without budgets.
            others: older asks whose mechanism is another one; reports that answer them are
                discarded, because they cannot be mixed.

        Returns:
            For the driver, when it closes, how many were asked, and which placements of `share`
            clients hold somebody of it, or None if the run ends; for the clients, the cohort.
        """
        check_ask(self.scenario, head)
        slots = head.slots is not None
        found = self.schedule.plan(release, time, able, head.wanted, head.minimum, slots)
        if found is None:
            return None, None
        cohort, timing = found if not others else self._comparable(release, *found, others)
        if head.slots is not None:
            cohort = replace(cohort, slots=self._slots(release, head.slots, cohort))
        return (timing, np.unique(cohort.ids // np.uint32(share)).tolist()), cohort

    def choose_all(
        self, count: int, release: int, time: float, *arguments: Any
    ) -> tuple[list[Any] | None, dict[int, Cohort]]:
        """Plan the batches of releases that follow one another, of which each is planned.

        Args:
            count: how many releases.
            release: the first.
            time: when its round may begin; each later one when the one before says that it may.
            arguments: further ones of `choose`.
        """
        planned: list[Any] = []
        cohorts: dict[int, Cohort] = {}
        for number in range(release, release + count):
            found, cohort = self.choose(number, time, *arguments)
            if found is None or cohort is None:
                return None, {}
            planned.append(found)
            cohorts[number] = cohort
            time = found[0].due
        return planned, cohorts

    def _comparable(
        self, release: int, cohort: Cohort, timing: Timing, others: Collection[int]
    ) -> tuple[Cohort, Timing]:
        """Leave out reports that answer an ask of another mechanism."""
        kept = ~np.isin(release - cohort.staleness, list(others))
        if kept.all():
            return cohort, timing
        self._refuse_unplanned(release)
        ids, stale = cohort.ids[kept], cohort.staleness[kept]
        weights = self.scenario.participation.weights(stale)
        timing = replace(
            timing,
            discarded=int(np.count_nonzero(~kept)),
            staleness=float(stale.mean()) if len(ids) else 0.0,
            stalest=int(stale.max(initial=0)),
            weight=1.0 if weights is None or len(ids) == 0 else float(weights.mean()),
        )
        repeated = np.intersect1d(cohort.repeated, ids)
        return replace(cohort, ids=ids, staleness=stale, repeated=repeated), timing

    def _refuse_unplanned(self, release: int) -> None:
        """Discard only where plan and price allow for it."""
        scenario = self.scenario
        if scenario.trust_model.pays_unused:
            why = "a server that is not trusted has seen them, and they cost what another ask does"
        elif one_mechanism(scenario, bound_mechanism(scenario)):
            why = f"the plan of task '{scenario.task.kind}' has one mechanism for all releases"
        else:
            return
        raise RunError(
            f"release {release} would discard reports that answer an ask of another mechanism, but "
            f"{why}; nothing was released",
            resumable=False,
        )

    def _slots(self, release: int, slots: tuple[int, ...], cohort: Cohort) -> NDArray[np.int64]:
        """Assign slots to all who are asked, every assignment equally likely.

        Whose report does not come has a slot all the same, and leaves it empty. Returns those of
        the clients whose report is in the batch.
        """
        listed = np.repeat(np.arange(len(slots)), slots)
        root = self.scenario.stream(self.repetition).at("slots", release)
        given = root.generator().permutation(listed)
        return np.asarray(given[np.searchsorted(cohort.asked, cohort.ids)])

    def saved(self, finished: int) -> Arrays:
        """Return the schedule as it was after so many releases, for a checkpoint."""
        return self.schedule.saved(finished)
