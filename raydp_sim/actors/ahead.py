"""The next release of an adaptive run, prepared while the one before it is being made."""

from dataclasses import dataclass, field
from functools import partial

from raydp_sim.actors.backend import Ref
from raydp_sim.actors.calls import Calls
from raydp_sim.actors.crew import Crew
from raydp_sim.actors.dispatch import Dispatch
from raydp_sim.population.participation.base import Rounds
from raydp_sim.tasks.base import Ask


@dataclass
class Plan:
    """A batch that was planned before its ask was known, for an ask like the one before it.

    Attributes:
        release: that it is for.
        time: when it may begin.
        like: the ask that it was planned for.
        sent, broadcast: where the ask will be.
        epochs: of the placements when it was made.
        planned, cohorts: what `Planning.choose_all` returned; None where each client decides for
            itself.
        made: what clients answer who were asked already, as soon as there is an ask; by placement.
    """

    release: int
    time: float
    like: Ask
    sent: Ref
    broadcast: Ref
    epochs: list[int]
    planned: Ref = None
    cohorts: Ref = None
    made: dict[int, tuple[Ref, ...]] = field(default_factory=dict)

    def fits(self, dispatch: Dispatch, head: Ask, epochs: list[int]) -> bool:
        """Say whether it is what would be planned for an ask, and those asked are still there."""
        like = self.like
        alike = (head.cohort, head.minimum, head.slots) == (like.cohort, like.minimum, like.slots)
        same = (self.release, self.time) == (dispatch.release, dispatch.time)
        return alike and same and head.mechanism == like.mechanism and epochs == self.epochs


class Ahead:
    """Has a batch planned and its clients asked by reference to an ask that is still to be made.

    Who is in a batch of rounds follows from its number, its time and what is public and small of
    its ask. If that turns out to be another one, or none, what was prepared is dropped; it has
    changed nothing, for clients that keep state are not asked ahead.
    """

    def __init__(self, crew: Crew, calls: Calls) -> None:
        self.crew, self.calls = crew, calls
        self.plan: Plan | None = None

    def prepare(self, dispatch: Dispatch, sent: Ref, broadcast: Ref) -> None:
        """Prepare the release after one that is being made.

        Args:
            dispatch: of the one that is being made.
            sent: where the ask will be that comes of it.
            broadcast: where its broadcast will be.
        """
        crew, scenario, release = self.crew, self.crew.scenario, dispatch.release + 1
        if not isinstance(scenario.participation, Rounds) or not scenario.task.adaptive:
            return
        assert dispatch.timing is not None
        due = dispatch.timing.due
        plan = Plan(release, due, dispatch.head, sent, broadcast, list(crew.epochs))
        self.plan = plan
        if not scenario.scheduled and dispatch.head.wanted is None:
            self._ask(plan, range(len(crew.clients)))
            return
        place = (release, due, crew.share, dispatch.asked.sent)
        plan.planned, plan.cohorts = crew.backend.call(
            crew.collectors[0], "choose_all", 1, *place, None, [], returns=2
        )
        self.calls.waiting[plan.planned] = partial(self._planned, plan)

    def _planned(self, plan: Plan, ref: Ref) -> None:
        planned = self.calls.get(ref)
        if planned is not None and plan is self.plan:  # else its release has begun without it
            ((_, sources),) = planned
            self._ask(plan, sources)

    def _ask(self, plan: Plan, sources: range | list[int]) -> None:
        if self.crew.keeps_state:
            return
        places = [(plan.release, plan.time, (plan.release,))]
        arguments = (places, plan.cohorts, plan.sent, plan.broadcast)
        call, clients = self.crew.backend.call, self.crew.clients
        plan.made = {s: call(clients[s], "reports", *arguments, returns=2) for s in sources}

    def take(self, dispatch: Dispatch, head: Ask) -> Plan | None:
        """Return what was prepared for a release, if it is what its ask calls for."""
        plan, self.plan = self.plan, None
        if plan is None or not plan.fits(dispatch, head, self.crew.epochs):
            return None
        return plan
