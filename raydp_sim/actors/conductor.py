"""The conductor: does what the engine commands and tells it what has happened."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from raydp_sim import engine
from raydp_sim.actors.backend import Lost, Ref
from raydp_sim.actors.calls import Calls
from raydp_sim.actors.collecting import Collecting
from raydp_sim.actors.crew import Crew
from raydp_sim.actors.dispatch import Dispatch, clock
from raydp_sim.stream.batches import BUCKETS
from raydp_sim.stream.shuffle import cuts
from raydp_sim.tasks.base import Arrays

_CHUNKS_IN_FLIGHT = 4
_DEPTH = 3  # releases under way at once when an ask does not depend on the one before
Row = dict[str, Any]


class Conductor:
    """Plays one repetition on a crew. Everything it holds is in the driver's process."""

    def __init__(self, crew: Crew, finished: int = 0, saved: Arrays | None = None) -> None:
        self.crew, self.backend = crew, crew.backend
        self.calls = Calls(crew.backend)
        self.collecting = Collecting(crew, self.calls, self._happened, finished, saved or {})
        scenario = crew.scenario
        budget = scenario.privacy.budget is not None
        one_by_one = scenario.task.adaptive or crew.keeps_state or budget
        self.policy = engine.Policy(scenario.least_batch, depth=1 if one_by_one else _DEPTH)
        self.state = engine.resumed(finished, self.collecting.due[finished - 1])
        self.rows: deque[Row] = deque()
        self.on_finished: Callable[[int], None] = lambda finished: None
        self._do: dict[type, Callable[[Any], None]] = {
            engine.Ask: self.collecting.ask,
            engine.Close: self._close,
            engine.Charge: self._charge,
            engine.Release: self._release,
            engine.Discard: self._discard,
            engine.Wait: lambda wait: self._happened(engine.Woke(wait.until)),
        }

    @property
    def ended(self) -> float | None:
        """Since when nobody came, if the run ended for that."""
        return self.collecting.ended

    @property
    def done(self) -> bool:
        """Whether the task itself ended the run."""
        return self.collecting.done

    def play(self, horizon: int) -> Iterator[Row]:
        """Play until `horizon` releases are done; yield the row of each as it happens.

        Raises:
            RunError: when an actor that holds the run's only copy of something has died.
        """
        self._ask_who_is_able()
        self._follow(engine.begin(self.policy, self.state, horizon))
        while self.calls.handle():
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
        dispatch = self.collecting.open[close.release]
        for number, collector in enumerate(self.crew.collectors):
            arguments = (close.release, dispatch.head, dispatch.cohort)
            counts, participants = self.backend.call(collector, "close", *arguments, returns=2)
            dispatch.participants.append(participants)
            self.calls.waiting[counts] = partial(self._closed, dispatch, number)

    def _closed(self, dispatch: Dispatch, number: int, ref: Ref) -> None:
        dispatch.counts[number] = self.calls.get(ref)
        if len(dispatch.counts) == len(self.crew.collectors):
            least = dispatch.head.minimum or 1
            self._happened(engine.Closed(dispatch.release, dispatch.total("reports"), least))

    def _charge(self, charge: engine.Charge) -> None:
        dispatch = self.collecting.open[charge.release]
        then = partial(self._charged, dispatch)
        dispatch.charged = self._charge_for(dispatch, charge.time, then)

    def _charge_for(self, dispatch: Dispatch, time: float, then: Callable[[Ref], None]) -> Ref:
        arguments = (dispatch.release, time, dispatch.head, dispatch.batch())
        participants = dispatch.participants
        return self.calls.make(then, self.crew.ledger, "charge", *arguments, *participants)

    def _charged(self, dispatch: Dispatch, ref: Ref) -> None:
        self.calls.get(ref)
        self._ask_who_is_able()
        self._happened(engine.Charged(dispatch.release))

    def _ask_who_is_able(self) -> None:
        if self.crew.scenario.privacy.budget is not None:
            (self.collecting.able,) = self.backend.call(self.crew.ledger, "able")

    def _release(self, release: engine.Release) -> None:
        dispatch, crew = self.collecting.open[release.release], self.crew
        if not crew.scenario.trust_model.shuffled:
            if len(crew.readers) > 1:
                (handed,) = self.backend.call(crew.lead, "handed", release.release)
                for reader in crew.readers[1:]:
                    self.calls.make(self.calls.get, reader, "fold", release.release, handed)
            self.calls.make(self.calls.get, crew.lead, "fold_reports", release.release)
            self._step(dispatch)
            return
        head = dispatch.head
        logical = 1
        if head.slots is not None:
            logical = len(head.slots)
        elif head.mechanism.routing == "per-index":
            logical = head.mechanism.messages_per_report
        dispatch.chunks.extend(pairwise(cuts(logical * BUCKETS, dispatch.total("bytes"))))
        self._pump(dispatch)

    def _pump(self, dispatch: Dispatch) -> None:
        """Keep a few chunks on their way from the shufflers to the readers, and no more."""
        while dispatch.chunks and dispatch.folding < _CHUNKS_IN_FLIGHT * len(self.crew.readers):
            place = (dispatch.release, *dispatch.chunks.popleft(), not dispatch.chunks)
            shares = [self.backend.call(c, "chunk", *place)[0] for c in self.crew.collectors]
            for reader in self.crew.readers:
                then = partial(self._folded, dispatch)
                self.calls.make(then, reader, "fold", dispatch.release, *shares)
                dispatch.folding += 1
            if not dispatch.chunks:
                self._step(dispatch)  # an actor's calls run in the order they were made

    def _folded(self, dispatch: Dispatch, ref: Ref) -> None:
        self.calls.get(ref)
        dispatch.folding -= 1
        self._pump(dispatch)

    def _step(self, dispatch: Dispatch) -> None:
        assert dispatch.timing is not None
        reports, weight = dispatch.total("reports"), dispatch.timing.weight
        arguments = (dispatch.release, reports, weight, dispatch.slots())
        steps = [self.backend.call(r, "step", *arguments, returns=2) for r in self.crew.readers]
        public = [made for _, made in steps]
        self.calls.waiting[steps[0][0]] = partial(self._stepped, dispatch)
        tally = (dispatch.tally(self.crew.repetition), dispatch.head, dispatch.charged)
        self.calls.make(self._recorded, self.crew.metrics, "record", *tally, *public)

    def _stepped(self, dispatch: Dispatch, ref: Ref) -> None:
        # The next ask waits for the lead reader's state, not for rows.
        self.calls.get(ref)
        self._finish(dispatch)

    def _recorded(self, ref: Ref) -> None:
        self.rows.append(self.calls.get(ref))

    def _discard(self, discard: engine.Discard) -> None:
        for collector in self.crew.collectors:
            self.backend.call(collector, "discard", discard.release)
        dispatch = self.collecting.open[discard.release]
        if self.crew.scenario.trust_model.pays_unused:
            # An untrusted server has seen what came, even if it is not used.
            self._charge_for(dispatch, discard.time, partial(self._seen, dispatch))
        else:
            self._withhold(dispatch)

    def _seen(self, dispatch: Dispatch, ref: Ref) -> None:
        self.calls.get(ref)
        self._ask_who_is_able()
        self._withhold(dispatch)

    def _withhold(self, dispatch: Dispatch) -> None:
        then = partial(self._withheld, dispatch)
        self.calls.make(then, self.crew.metrics, "withhold", dispatch.tally(self.crew.repetition))

    def _withheld(self, dispatch: Dispatch, ref: Ref) -> None:
        self.calls.get(ref)
        self._finish(dispatch)

    def _finish(self, dispatch: Dispatch) -> None:
        del self.collecting.open[dispatch.release]
        if self.crew.keeps_state:
            self.collecting.since_checkpoint.append(dispatch)
        finished = engine.Finished(dispatch.release)
        settled = engine.settle(self.state, dispatch.release)
        if not settled.ahead:
            # Before the next release touches the readers' state.
            self.on_finished(settled.floor)
        self._happened(finished)

    # Checkpoints.

    def checkpoint(self, finished: int) -> dict[str, Arrays]:
        """Return all that a run resumed after `finished` releases starts from, but for clients.

        Rows up to there are on disk then.
        """
        crew, collecting = self.crew, self.collecting
        crew.ask(crew.metrics, "flush")
        saved: dict[str, Arrays] = {}
        for reader in crew.readers:
            saved |= crew.ask(reader, "checkpoint")
        saved["metrics"] = crew.ask(crew.metrics, "seen_so_far")
        collecting.due = {r: due for r, due in collecting.due.items() if r >= finished - 1}
        asks = {
            version: replace(asked.head, broadcast=self._fetched(asked.broadcast))
            for version, asked in collecting.asks.items()
        }
        saved["clock"] = clock(collecting.due[finished - 1], asks)
        if crew.scenario.scheduled:
            saved["schedule"] = crew.ask(crew.collectors[0], "scheduled", finished)
        return saved

    def _fetched(self, broadcast: Any) -> Arrays:
        return broadcast if isinstance(broadcast, dict) else self.calls.get(broadcast)

    def shards(self) -> Iterator[tuple[int, int, Arrays]]:
        """Yield first and last client (exclusive) of each actor, and their state, one at a time."""
        if not self.crew.keeps_state:
            return
        for source, (first, last) in enumerate(self.crew.ranges):
            yield first, last, self._shard(source)

    def checkpointed(self) -> None:
        """Drop the asks that a respawned client would replay: a checkpoint has its state."""
        self.collecting.since_checkpoint.clear()

    def _shard(self, source: int) -> Arrays:
        while True:
            (ref,) = self.backend.call(self.crew.clients[source], "memory")
            try:
                columns: Arrays = self.backend.get(ref)
            except Lost:
                self.collecting.replace(source)
            else:
                return columns
