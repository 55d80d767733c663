"""The conductor: does what the engine commands and tells it what has happened."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from raydp_sim import engine
from raydp_sim.actors.backend import Lost, Ref
from raydp_sim.actors.calls import Calls
from raydp_sim.actors.collecting import Collecting
from raydp_sim.actors.crew import Crew
from raydp_sim.actors.dispatch import Dispatch, Span, clock
from raydp_sim.actors.handing import Handing
from raydp_sim.actors.pace import Pace
from raydp_sim.errors import RunError
from raydp_sim.population.participation.base import Rounds
from raydp_sim.tasks.base import Arrays, Task

_DEPTH = 3  # releases under way at once when an ask does not depend on the one before
Row = dict[str, Any]


class Conductor:
    """Plays one repetition on a crew. Everything it holds is in the driver's process."""

    def __init__(self, crew: Crew, finished: int = 0, saved: Arrays | None = None) -> None:
        self.crew, self.backend = crew, crew.backend
        self.calls = Calls(crew.backend)
        self.collecting = Collecting(crew, self.calls, self._happened, finished, saved or {})
        self.handing = Handing(crew, self.calls, self._step)
        scenario = crew.scenario
        budget = scenario.privacy.budget is not None
        one_by_one = scenario.task.adaptive or crew.keeps_state or budget
        rounds = isinstance(scenario.participation, Rounds)
        one_call = crew.one_to_each and not budget and (one_by_one or rounds)
        self.collecting.one_call = one_call
        self.pace = None if one_by_one or not one_call else Pace(scenario.placement)
        eager, depth = self.pace is not None, 1 if one_by_one else _DEPTH
        self.policy = engine.Policy(scenario.least_batch, depth=depth, eager=eager)
        self.paid: deque[Span] = deque()  # or about to be, and not made yet
        self.state = engine.resumed(finished, self.collecting.due[finished - 1])
        self.rows: deque[Row] = deque()
        self._recording: deque[Ref] = deque()  # rows come out in the order of their releases
        self._answered: dict[Ref, list[Row]] = {}
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
        try:
            while self.calls.handle():
                while self.rows:
                    yield self.rows.popleft()
        except RunError:
            # A checkpoint may have them already, and then nobody plays their releases again.
            yield from self.rows
            raise
        assert self.state.floor == self.state.horizon, "nobody is asked, and releases are missing"

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
        if dispatch.counts:
            self._all_closed(dispatch)  # with the last report, in one call
            return
        for number, collector in enumerate(self.crew.collectors):
            arguments = (close.release, dispatch.asked.sent, dispatch.cohort)
            counts, participants = self.backend.call(collector, "close", *arguments, returns=2)
            dispatch.participants.append(participants)
            self.calls.waiting[counts] = partial(self._closed, dispatch, number)

    def _closed(self, dispatch: Dispatch, number: int, ref: Ref) -> None:
        dispatch.counts[number] = self.calls.get(ref)
        if len(dispatch.counts) == len(self.crew.collectors):
            self._all_closed(dispatch)

    def _all_closed(self, dispatch: Dispatch) -> None:
        reports, least = dispatch.total("reports"), dispatch.head.minimum
        self._happened(engine.Closed(dispatch.release, reports, least))

    def _charge(self, charge: engine.Charge) -> None:
        dispatch = self.collecting.open[charge.release]
        if dispatch.span is not None:
            dispatch.span.times.append(charge.time)
            if len(dispatch.span.times) == len(dispatch.span.dispatches):
                self._pay(dispatch.span)
            return
        then = partial(self._charged, dispatch)
        dispatch.charged = self._charge_for(dispatch, charge.time, then)
        dispatch.spent = self._account(dispatch)

    def _pay(self, span: Span) -> None:
        """Charge, and have releases made as soon as that is durable, without a way round here.

        The steps are handed what only the ledger returns, once it has written the charges down.
        """
        each = zip(span.dispatches, span.times, strict=True)
        releases = [(d.release, time, d.batch(), d.total("reports")) for d, time in each]
        last = span.dispatches[-1]
        (participants,) = last.participants
        arguments = (releases, last.asked.sent, participants)
        span.charged, span.permits, span.earlier = self.backend.call(
            self.crew.ledger, "pay", *arguments, returns=3
        )
        span.spent = self._account(last)
        self.paid.append(span)
        self._make_next()

    def _account(self, dispatch: Dispatch) -> Ref:
        if not dispatch.head.accounted:
            return None
        # An actor's calls run in the order they were made: before the next charge.
        return self.backend.call(self.crew.ledger, "spent")[0]

    def _charge_for(self, dispatch: Dispatch, time: float, then: Callable[[Ref], None]) -> Ref:
        arguments = (dispatch.release, time, dispatch.asked.sent, dispatch.batch())
        participants = dispatch.participants
        return self.calls.make(then, self.crew.ledger, "charge", *arguments, *participants)

    def _charged(self, dispatch: Dispatch, ref: Ref) -> None:
        self.calls.get(ref)
        self._ask_who_is_able()
        self._happened(engine.Charged(dispatch.release))

    def _ask_who_is_able(self) -> None:
        scenario = self.crew.scenario
        if scenario.privacy.budget is not None and not scenario.task.once:
            (self.collecting.able,) = self.backend.call(self.crew.ledger, "able")

    def _release(self, release: engine.Release) -> None:
        dispatch = self.collecting.open[release.release]
        if dispatch.span is None:  # else it is made with the charge
            self.handing.begin(dispatch)

    def _make_next(self) -> None:
        """Have a span made that is about to be paid for, once all before it are finished.

        A checkpoint after those is made before the reader's state is touched.
        """
        if not self.paid or self.paid[0].releases[0] != self.state.floor:
            return
        span = self.paid.popleft()
        last, following = span.dispatches[-1], self._following(span.dispatches[-1])
        places = [(d.release, d.timing.weight) for d in span.dispatches if d.timing is not None]
        head, broadcast, made = self.backend.call(
            self.crew.lead, "steps", places, span.permits, following, *span.whole, returns=3
        )
        self.calls.waiting[head] = partial(self._made, span, following, broadcast)
        tallies = [dispatch.tally(self.crew.repetition) for dispatch in span.dispatches]
        paid = (last.asked.sent, span.charged, span.earlier, span.spent)
        self._record("records", tallies, *paid, made)
        if last.release + 1 < self.state.horizon:
            self.collecting.ahead.prepare(last, head, broadcast)

    def _made(self, span: Span, following: int | None, broadcast: Ref, ref: Ref) -> None:
        self.calls.get(span.charged)
        for dispatch in span.dispatches:
            self._happened(engine.Charged(dispatch.release))
        head = self.calls.get(ref)
        if following is not None:
            self.collecting.said(following, head, ref, broadcast)
        if self.pace is not None and self.collecting.spans:
            first, number = span.dispatches[0], len(span.dispatches)
            size = self.pace.after(number, first.total("bytes") + first.total("messages"))
            self.policy = replace(self.policy, span=size, depth=_DEPTH * size)
        self._finish(*span.dispatches)

    def _following(self, dispatch: Dispatch) -> int | None:
        """Return the release that the lead reader is to say the ask of; None if it need not."""
        after = dispatch.release + 1
        adaptive = self.crew.scenario.task.adaptive
        return after if adaptive and after < self.state.horizon else None

    def _step(self, dispatch: Dispatch, rest: Sequence[Sequence[Ref]]) -> None:
        """Have the release made: the readers fold what is left of the batch and step.

        Args:
            dispatch: of it.
            rest: what each reader has still to fold.
        """
        assert dispatch.timing is not None
        place = (dispatch.release, dispatch.total("reports"))
        arguments = (*place, dispatch.timing.weight, dispatch.slots())
        following = self._following(dispatch)
        call, (first, *further) = partial(self.backend.call, returns=3), self.crew.readers
        head, broadcast, made = call(first, "step", *arguments, following, *rest[0])
        others = zip(further, rest[1:], strict=True)
        public = [made, *(call(r, "step", *arguments, None, *own)[2] for r, own in others)]
        self.calls.waiting[head] = partial(self._stepped, dispatch, following, broadcast)
        tally = (dispatch.tally(self.crew.repetition), dispatch.asked.sent)
        paid = (dispatch.charged, dispatch.spent)
        self._record("record", *tally, *paid, *public)

    def _stepped(self, dispatch: Dispatch, following: int | None, broadcast: Ref, ref: Ref) -> None:
        # The next ask waits for the lead reader's state, not for rows.
        head = self.calls.get(ref)
        if following is not None:
            self.collecting.said(following, head, ref, broadcast)
        self._finish(dispatch)

    def _record(self, method: str, *arguments: Any) -> None:
        ref = self.calls.make(self._recorded, self.crew.metrics, method, *arguments)
        self._recording.append(ref)

    def _recorded(self, ref: Ref) -> None:
        row = self.calls.get(ref)
        self._answered[ref] = row if isinstance(row, list) else [row]
        while self._recording and self._recording[0] in self._answered:
            self.rows.extend(self._answered.pop(self._recording.popleft()))

    def _discard(self, discard: engine.Discard) -> None:
        for receiver in self.crew.receivers:
            self.backend.call(receiver, "discard", discard.release)
        dispatch = self.collecting.open[discard.release]
        if self.crew.scenario.trust_model.pays_unused:
            # An untrusted server has seen what came, even if it is not used.
            self._charge_for(dispatch, discard.time, partial(self._seen, dispatch))
        elif self.crew.coins:
            # Nobody saw what they sent; but that few came is one of the cases that a round of coins
            # is charged as, so that those with more are not all of its price.
            dispatch.participants.clear()
            self._charge_for(dispatch, discard.time, partial(self._seen, dispatch))
        else:
            self._withhold(dispatch)

    def _seen(self, dispatch: Dispatch, ref: Ref) -> None:
        self.calls.get(ref)
        self._ask_who_is_able()
        self._withhold(dispatch)

    def _withhold(self, dispatch: Dispatch) -> None:
        public: list[Ref] = []
        if type(self.crew.scenario.task).withheld is not Task.withheld:
            assert dispatch.timing is not None and dispatch.timing.asked is not None
            for reader in self.crew.readers:
                arguments = (dispatch.release, dispatch.timing.asked)
                heard, made = self.backend.call(reader, "withheld", *arguments, returns=2)
                self.calls.waiting[heard] = self.calls.get
                public.append(made)
        then = partial(self._withheld, dispatch)
        tally = (dispatch.tally(self.crew.repetition), dispatch.head)
        self.calls.make(then, self.crew.metrics, "withhold", *tally, *public)

    def _withheld(self, dispatch: Dispatch, ref: Ref) -> None:
        self.calls.get(ref)
        self._finish(dispatch)

    def _finish(self, *dispatches: Dispatch) -> None:
        *before, last = dispatches
        for dispatch in before:
            del self.collecting.open[dispatch.release]
            self._happened(engine.Finished(dispatch.release))
        del self.collecting.open[last.release]
        if self.crew.keeps_state:  # then there is one
            self.collecting.since_checkpoint.append(last)
        settled = engine.settle(self.state, last.release)
        if not settled.ahead:
            # Before the next release touches the readers' state.
            self.on_finished(settled.floor)
        self._happened(engine.Finished(last.release))
        for dispatch in dispatches:
            # The span knows the dispatch too: in a circle its batches would stay in the store.
            dispatch.span = None
        self._make_next()

    # Checkpoints.

    def checkpoint(self, finished: int) -> dict[str, Arrays]:
        """Return all that a run resumed after `finished` releases starts from, but for clients.

        Rows up to there are on disk then.
        """
        crew, collecting = self.crew, self.collecting
        crew.ask(crew.metrics, "keep")
        # Answered by now; a row whose price died with the ledger is not among those kept.
        for ref in [ref for ref, then in self.calls.waiting.items() if then == self._recorded]:
            del self.calls.waiting[ref]
            self._recorded(ref)
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
        self.crew.came_further()

    def _shard(self, source: int) -> Arrays:
        while True:
            (ref,) = self.backend.call(self.crew.clients[source], "memory")
            try:
                columns: Arrays = self.backend.get(ref)
            except Lost:
                self.collecting.replace(source)
            else:
                return columns
