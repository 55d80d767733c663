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
from raydp_sim.actors.dispatch import Dispatch, clock
from raydp_sim.actors.handing import Handing
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
        self.policy = engine.Policy(scenario.least_batch, depth=1 if one_by_one else _DEPTH)
        self.collecting.one_call = one_by_one and not budget and crew.one_to_each
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
        if dispatch.whole is not None:
            self._pay(dispatch, charge.time)
            return
        then = partial(self._charged, dispatch)
        dispatch.charged = self._charge_for(dispatch, charge.time, then)
        self._account(dispatch)

    def _pay(self, dispatch: Dispatch, time: float) -> None:
        """Charge, and have the release made as soon as that is durable, without a way round here.

        The step is handed what only the ledger returns, once it has written the charge down.
        """
        arguments = (dispatch.release, time, dispatch.asked.sent, dispatch.batch())
        counted = (dispatch.total("reports"), *dispatch.participants)
        dispatch.charged, reports = self.backend.call(
            self.crew.ledger, "pay", *arguments, *counted, returns=2
        )
        self._account(dispatch)
        assert dispatch.whole is not None
        self._step(dispatch, [dispatch.whole], reports)

    def _account(self, dispatch: Dispatch) -> None:
        if dispatch.head.accounted:
            # An actor's calls run in the order they were made: before the next charge.
            (dispatch.spent,) = self.backend.call(self.crew.ledger, "spent")

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
        if dispatch.whole is not None:
            return  # made with the charge
        self.handing.begin(dispatch)

    def _step(self, dispatch: Dispatch, rest: Sequence[Sequence[Ref]], permit: Ref = None) -> None:
        """Have the release made: the readers fold what is left of the batch and step.

        Args:
            dispatch: of it.
            rest: what each reader has still to fold.
            permit: the ledger's reference to the number of reports, if it is not paid for yet.
        """
        reports = dispatch.total("reports") if permit is None else permit
        assert dispatch.timing is not None
        arguments = (dispatch.release, reports, dispatch.timing.weight, dispatch.slots())
        following: int | None = dispatch.release + 1
        if not self.crew.scenario.task.adaptive or dispatch.release + 1 >= self.state.horizon:
            following = None
        call, (first, *further) = partial(self.backend.call, returns=3), self.crew.readers
        head, broadcast, made = call(first, "step", *arguments, following, *rest[0])
        others = zip(further, rest[1:], strict=True)
        public = [made, *(call(r, "step", *arguments, None, *own)[2] for r, own in others)]
        self.calls.waiting[head] = partial(self._stepped, dispatch, following, broadcast)
        tally = (dispatch.tally(self.crew.repetition), dispatch.asked.sent)
        paid = (dispatch.charged, dispatch.spent)
        self.calls.make(self._recorded, self.crew.metrics, "record", *tally, *paid, *public)
        if permit is not None and dispatch.release + 1 < self.state.horizon:
            self.collecting.ahead.prepare(dispatch, head, broadcast)

    def _stepped(self, dispatch: Dispatch, following: int | None, broadcast: Ref, ref: Ref) -> None:
        if dispatch.whole is not None:
            self.calls.get(dispatch.charged)
            self._happened(engine.Charged(dispatch.release))
        # The next ask waits for the lead reader's state, not for rows.
        head = self.calls.get(ref)
        if following is not None:
            self.collecting.said(following, head, ref, broadcast)
        self._finish(dispatch)

    def _recorded(self, ref: Ref) -> None:
        self.rows.append(self.calls.get(ref))

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
        crew.ask(crew.metrics, "keep")
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
