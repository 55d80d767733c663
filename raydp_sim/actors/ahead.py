"""The next release of an adaptive run, prepared while the one before it is being played."""

from collections.abc import Sequence
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
        epochs: of the placements when it was made, or their clients were asked.
        sent, broadcast: where the ask will be; None as long as nobody makes one.
        planned, cohorts: what `Planning.choose_all` returns; None where each client decides for
            itself.
        sources: the placements of those in the batch, once that is known.
        made: what clients answer who were asked already, as soon as there is an ask; by placement.
    """

    release: int
    time: float
    like: Ask
    epochs: list[int]
    sent: Ref = None
    broadcast: Ref = None
    planned: Ref = None
    cohorts: Ref = None
    sources: Sequence[int] | None = None
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

    def begin(self, dispatch: Dispatch) -> None:
        """Have the release after one planned whose clients have just been asked.

        Whoever plans has nothing else to do before they answer.
        """
        crew, scenario, release = self.crew, self.crew.scenario, dispatch.release + 1
        if not isinstance(scenario.participation, Rounds) or not scenario.task.adaptive:
            return
        if release >= scenario.task.rounds:
            return
        assert dispatch.timing is not None
        plan = Plan(release, dispatch.timing.due, dispatch.head, list(crew.epochs))
        self.plan = plan
        if not scenario.scheduled and dispatch.head.wanted is None:
            plan.sources = range(len(crew.clients))
            return
        place = (release, plan.time, crew.share, dispatch.asked.sent)
        plan.planned, plan.cohorts = crew.backend.call(
            crew.collectors[0], "choose_all", 1, *place, None, [], returns=2
        )
        self.calls.waiting[plan.planned] = partial(self._planned, plan)

    def prepare(self, dispatch: Dispatch, sent: Ref, broadcast: Ref) -> None:
        """Ask the clients of the release after one that is being made.

        Args:
            dispatch: of the one that is being made.
            sent: where the ask will be that comes of it.
            broadcast: where its broadcast will be.
        """
        plan = self.plan
        if plan is None or plan.release != dispatch.release + 1:
            return
        plan.sent, plan.broadcast, plan.epochs = sent, broadcast, list(self.crew.epochs)
        if plan.sources is not None:
            self._ask(plan, plan.sources)

    def _planned(self, plan: Plan, ref: Ref) -> None:
        planned = self.calls.get(ref)
        if planned is None or plan is not self.plan:  # its release has begun without it
            return
        ((_, plan.sources),) = planned
        if plan.sent is not None:
            self._ask(plan, plan.sources)

    def _ask(self, plan: Plan, sources: Sequence[int]) -> None:
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
