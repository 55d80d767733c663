"""The first half of a release: clients are asked, and their reports reach the collectors."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from raydp_sim import engine
from raydp_sim.actors.backend import Actor, Lost, Ref
from raydp_sim.actors.crew import Crew
from raydp_sim.actors.dispatch import Dispatch, older_asks
from raydp_sim.errors import RunError
from raydp_sim.schedule.batch import Timing
from raydp_sim.schedule.rounds import at_once
from raydp_sim.tasks.base import Arrays


class Collecting:
    """Asks for releases until each is collected; clients that die meanwhile are replaced."""

    def __init__(self, crew: Crew, finished: int, saved: Arrays) -> None:
        self.crew, self.backend = crew, crew.backend
        self.due = {finished - 1: float(saved.get("due", 0.0))}  # after each release, the next
        self.asks: dict[int, Ref] = older_asks(saved)  # what older versions were told
        self.able: Ref = None  # who may still be asked, where there are budgets
        self.ended: float | None = None  # since when nobody came, if the run ended for that
        self.open: dict[int, Dispatch] = {}
        self.since_checkpoint: list[Dispatch] = []  # what a respawned client has to hear again
        self.waiting: dict[Ref, Callable[[Ref], None]] = {}

    def _happened(self, event: engine.Event) -> None:
        """Tell the engine."""
        raise NotImplementedError

    def _call(self, then: Callable[[Ref], None], actor: Actor, method: str, *args: Any) -> Ref:
        (ref,) = self.backend.call(actor, method, *args)
        self.waiting[ref] = then
        return ref

    def _get(self, ref: Ref) -> Any:
        """Return the answer of an actor that cannot be replaced."""
        try:
            return self.backend.get(ref)
        except Lost as error:
            raise RunError(f"an actor of the run died: {error}") from None

    def _ask(self, ask: engine.Ask) -> None:
        crew, scenario = self.crew, self.crew.scenario
        dispatch = self.open[ask.release] = Dispatch(ask.release, ask.time)
        if scenario.task.adaptive:
            (dispatch.ask,) = self.backend.call(crew.aggregator, "ask")
            self.asks[ask.release] = dispatch.ask
        if scenario.scheduled:
            arguments = (ask.release, ask.time, crew.share, self.able)
            planned, dispatch.cohort = self.backend.call(
                crew.collectors[0], "choose", *arguments, returns=2
            )
            self.waiting[planned] = partial(self._planned, dispatch)
        else:
            self._plan(dispatch, at_once(scenario.participation, ask.time))
            self._dispatch_all(dispatch, range(len(crew.clients)))

    def _planned(self, dispatch: Dispatch, ref: Ref) -> None:
        planned = self._get(ref)
        if planned is None:
            self.ended = dispatch.time
            del self.open[dispatch.release]
            self._happened(engine.Ended(dispatch.release))
            return
        timing, sources = planned
        self._plan(dispatch, timing)
        self._dispatch_all(dispatch, sources)

    def _plan(self, dispatch: Dispatch, timing: Timing) -> None:
        """Note when the batch closes, and which asks its reports may still answer."""
        dispatch.timing = timing
        self.due[dispatch.release] = timing.due
        oldest = dispatch.release - timing.stalest
        dispatch.asks = {v: ask for v, ask in self.asks.items() if v >= oldest}
        kept = dispatch.release + 1 if timing.oldest is None else timing.oldest
        self.asks = {v: ask for v, ask in self.asks.items() if v >= kept}
        self._happened(engine.Planned(dispatch.release, timing.closed, timing.due))

    def _dispatch_all(self, dispatch: Dispatch, sources: Iterable[int]) -> None:
        """Ask the actors that hold somebody of the cohort, and no others."""
        for source in sources:
            self._dispatch(dispatch, source)
        self._check_collected(dispatch)

    def _dispatch(self, dispatch: Dispatch, source: int) -> None:
        receipt, *batches = self._report(dispatch, source)
        dispatch.acknowledged[source] = 0
        epoch = self.crew.epochs[source]
        self.waiting[receipt] = partial(self._reported, dispatch, source, epoch, batches)

    def _report(self, dispatch: Dispatch, source: int) -> tuple[Ref, ...]:
        client, shufflers = self.crew.clients[source], len(self.crew.collectors)
        versions, asks = tuple(dispatch.asks), tuple(dispatch.asks.values())
        place = (dispatch.release, dispatch.time, dispatch.cohort, shufflers)
        arguments = (*place, versions, *(asks or (dispatch.ask,)))
        return self.backend.call(client, "report", *arguments, returns=1 + shufflers)

    def _reported(
        self, dispatch: Dispatch, source: int, epoch: int, batches: list[Ref], ref: Ref
    ) -> None:
        if epoch != self.crew.epochs[source]:
            return  # a zombie's answer; the respawned actor has been asked again
        try:
            dispatch.receipts[source] = self.backend.get(ref)
        except Lost:
            self._replace(source)
            return
        for collector, batch in zip(self.crew.collectors, batches, strict=True):
            then = partial(self._collected, dispatch, source, epoch, collector)
            self._call(then, collector, "collect", batch)

    def _collected(
        self, dispatch: Dispatch, source: int, epoch: int, collector: Actor, ref: Ref
    ) -> None:
        if epoch != self.crew.epochs[source]:
            return
        try:
            accepted = self.backend.get(ref)
        except Lost:
            # Either the collector is gone, which ends the run, or only the batch it was to read.
            self.crew.ask(collector, "admit", source, epoch)
            self._replace(source)
            return
        if not accepted:
            raise RunError(f"a collector refused the living batch of placement {source}")
        dispatch.acknowledged[source] += 1
        self._check_collected(dispatch)

    def _check_collected(self, dispatch: Dispatch) -> None:
        collectors = len(self.crew.collectors)
        if all(acknowledged == collectors for acknowledged in dispatch.acknowledged.values()):
            self._happened(engine.Collected(dispatch.release))

    def _replace(self, source: int) -> None:
        """Respawn a client actor and ask it again for every release it still owes.

        Where clients remember, the new actor starts from the last checkpoint and first hears the
        asks since then again; its answers to those have been counted and are dropped.
        """
        self.crew.respawn(source)
        for dispatch in (*self.since_checkpoint, *self.open.values()):
            if source not in dispatch.acknowledged:
                continue
            if dispatch.acknowledged[source] < len(self.crew.collectors):
                self._dispatch(dispatch, source)
            elif self.crew.remembers:
                self._report(dispatch, source)
