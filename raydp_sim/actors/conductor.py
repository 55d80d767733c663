"""The conductor: does what the engine commands and tells it what has happened."""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from raydp_sim import engine
from raydp_sim.actors.backend import Lost, Ref
from raydp_sim.actors.collecting import Collecting
from raydp_sim.actors.crew import Crew
from raydp_sim.actors.dispatch import Dispatch, clock
from raydp_sim.batches import BUCKETS
from raydp_sim.shuffle import cuts
from raydp_sim.tasks.base import Arrays, Ask

_CHUNKS_IN_FLIGHT = 4
_DEPTH = 3  # releases under way at once when an ask does not depend on the one before
Row = dict[str, Any]


class Conductor(Collecting):
    """Plays one repetition on a crew. Everything it holds is in the driver's process."""

    def __init__(self, crew: Crew, finished: int = 0, saved: Arrays | None = None) -> None:
        super().__init__(crew, finished, saved or {})
        scenario = crew.scenario
        budget = scenario.privacy.budget is not None
        one_by_one = scenario.task.adaptive or crew.remembers or budget
        self.policy = engine.Policy(scenario.least_batch, depth=1 if one_by_one else _DEPTH)
        self.state = engine.resumed(finished, self.due[finished - 1])
        self.rows: deque[Row] = deque()
        self.on_finished: Callable[[int], None] = lambda finished: None
        self._do: dict[type, Callable[[Any], None]] = {
            engine.Ask: self._ask,
            engine.Close: self._close,
            engine.Charge: self._charge,
            engine.Release: self._release,
            engine.Discard: self._discard,
            engine.Wait: lambda wait: self._happened(engine.Woke(wait.until)),
        }

    def play(self, horizon: int) -> Iterator[Row]:
        """Play until `horizon` releases are done; yield the row of each as it happens.

        Raises:
            RunError: when an actor that holds the run's only copy of something has died.
        """
        self._ask_who_is_able()
        self._follow(engine.begin(self.policy, self.state, horizon))
        while self.waiting:
            for ref in self.backend.wait(list(self.waiting)):
                self.waiting.pop(ref)(ref)
            while self.rows:
                yield self.rows.popleft()

    # The engine's loop.

    def _happened(self, event: engine.Event) -> None:
        self._follow(engine.advance(self.policy, self.state, event))

    def _follow(self, step: engine.Step) -> None:
        self.state, commands = step
        for command in commands:
            self.execute(command)

    def execute(self, command: engine.Command) -> None:
        """Carry out one command of the engine."""
        self._do[type(command)](command)

    # Close, charge, release: in this order, whatever happens.

    def _close(self, close: engine.Close) -> None:
        dispatch = self.open[close.release]
        for number, collector in enumerate(self.crew.collectors):
            arguments = (close.release, dispatch.ask)
            counts, participants = self.backend.call(collector, "close", *arguments, returns=2)
            dispatch.participants.append(participants)
            self.waiting[counts] = partial(self._closed, dispatch, number)

    def _closed(self, dispatch: Dispatch, number: int, ref: Ref) -> None:
        dispatch.counts[number] = self._get(ref)
        if len(dispatch.counts) == len(self.crew.collectors):
            self._happened(engine.Closed(dispatch.release, dispatch.total("reports")))

    def _charge(self, charge: engine.Charge) -> None:
        dispatch = self.open[charge.release]
        arguments = (charge.release, charge.time, dispatch.ask, *dispatch.participants)
        then = partial(self._charged, dispatch)
        dispatch.charged = self._call(then, self.crew.ledger, "charge", *arguments)

    def _charged(self, dispatch: Dispatch, ref: Ref) -> None:
        self._get(ref)
        self._ask_who_is_able()
        self._happened(engine.Charged(dispatch.release))

    def _ask_who_is_able(self) -> None:
        if self.crew.scenario.privacy.budget is not None:
            (self.able,) = self.backend.call(self.crew.ledger, "able")

    def _release(self, release: engine.Release) -> None:
        dispatch, crew = self.open[release.release], self.crew
        if crew.scenario.trust != "shuffle":
            self._call(self._get, crew.aggregator, "fold_reports", release.release)
            self._step(dispatch)
            return
        task = crew.scenario.task
        ask = self._get(dispatch.ask) if task.adaptive else dispatch.ask
        mechanism = task.mechanism_for(crew.scenario.bound_mechanism, ask)
        logical = mechanism.messages_per_report if mechanism.routing == "per-index" else 1
        dispatch.chunks.extend(pairwise(cuts(logical * BUCKETS, dispatch.total("bytes"))))
        self._pump(dispatch)

    def _pump(self, dispatch: Dispatch) -> None:
        """Keep a few chunks on their way from the shufflers to the aggregator, and no more."""
        while dispatch.chunks and dispatch.folding < _CHUNKS_IN_FLIGHT:
            place = (dispatch.release, *dispatch.chunks.popleft(), not dispatch.chunks)
            shares = [self.backend.call(c, "chunk", *place)[0] for c in self.crew.collectors]
            self._call(partial(self._folded, dispatch), self.crew.aggregator, "fold", *shares)
            dispatch.folding += 1
            if not dispatch.chunks:
                self._step(dispatch)  # an actor does what it is told in the order it was told

    def _folded(self, dispatch: Dispatch, ref: Ref) -> None:
        self._get(ref)
        dispatch.folding -= 1
        self._pump(dispatch)

    def _step(self, dispatch: Dispatch) -> None:
        assert dispatch.timing is not None
        weight = dispatch.timing.weight
        (public,) = self.backend.call(self.crew.aggregator, "step", dispatch.release, weight)
        arguments = (dispatch.tally(self.crew.repetition), dispatch.ask, public, dispatch.charged)
        self._call(partial(self._recorded, dispatch), self.crew.metrics, "record", *arguments)

    def _recorded(self, dispatch: Dispatch, ref: Ref) -> None:
        self.rows.append(self._get(ref))
        self._finish(dispatch)

    def _discard(self, discard: engine.Discard) -> None:
        for collector in self.crew.collectors:
            self.backend.call(collector, "discard", discard.release)
        dispatch = self.open[discard.release]
        if self.crew.scenario.trust == "local":
            # An untrusted server has seen what came, even if it is not used.
            arguments = (discard.release, discard.time, dispatch.ask, *dispatch.participants)
            self._call(partial(self._seen, dispatch), self.crew.ledger, "charge", *arguments)
        else:
            self._withhold(dispatch)

    def _seen(self, dispatch: Dispatch, ref: Ref) -> None:
        self._get(ref)
        self._ask_who_is_able()
        self._withhold(dispatch)

    def _withhold(self, dispatch: Dispatch) -> None:
        then = partial(self._withheld, dispatch)
        self._call(then, self.crew.metrics, "withhold", dispatch.tally(self.crew.repetition))

    def _withheld(self, dispatch: Dispatch, ref: Ref) -> None:
        self._get(ref)
        self._finish(dispatch)

    def _finish(self, dispatch: Dispatch) -> None:
        del self.open[dispatch.release]
        if self.crew.remembers:
            self.since_checkpoint.append(dispatch)
        finished = engine.Finished(dispatch.release)
        settled = engine.settle(self.state, dispatch.release)
        if not settled.ahead:
            # Before the next release touches the aggregator's state.
            self.on_finished(settled.floor)
        self._happened(finished)

    def checkpoint(self, finished: int) -> dict[str, Arrays]:
        """Return all that a run resumed after `finished` releases starts from.

        Rows up to there are on disk then.
        """
        crew = self.crew
        crew.ask(crew.metrics, "flush")
        saved: dict[str, Arrays] = crew.ask(crew.aggregator, "checkpoint")
        saved["metrics"] = crew.ask(crew.metrics, "seen_so_far")
        self.due = {release: due for release, due in self.due.items() if release >= finished - 1}
        told = {v: ask if isinstance(ask, Ask) else self._get(ask) for v, ask in self.asks.items()}
        saved["clock"] = clock(self.due[finished - 1], told)
        if crew.scenario.scheduled:
            saved["schedule"] = crew.ask(crew.collectors[0], "scheduled", finished)
        if crew.remembers:
            parts = [self._remembered(source) for source in range(len(crew.clients))]
            saved["clients"] = crew.remembered = {
                name: np.concatenate([part[name] for part in parts]) for name in parts[0]
            }
            self.since_checkpoint.clear()
        return saved

    def _remembered(self, source: int) -> Arrays:
        while True:
            (ref,) = self.backend.call(self.crew.clients[source], "remembered")
            try:
                columns: Arrays = self.backend.get(ref)
            except Lost:
                self._replace(source)
            else:
                return columns
