"""The first half of a release: clients are asked, and their reports reach the collectors."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from raydp_sim import engine
from raydp_sim.actors.ahead import Ahead
from raydp_sim.actors.answers import Receipt
from raydp_sim.actors.backend import Lost, Ref
from raydp_sim.actors.calls import Calls
from raydp_sim.actors.crew import Crew
from raydp_sim.actors.dispatch import Asked, Dispatch, Span, older_asks
from raydp_sim.errors import RunError
from raydp_sim.schedule.batch import Timing
from raydp_sim.schedule.rounds import at_once
from raydp_sim.tasks.base import Arrays, Ask

Planned = list[tuple[Timing, list[int]]]


class Collecting:
    """Asks for releases until each is collected; clients that die meanwhile are replaced.

    Attributes:
        due: after each release, when the next one is due.
        asks: older versions that clients may still work on.
        able: who may still be asked, where there are budgets.
        ended: since when nobody came, if the run ended for that; `done`: the task ended it.
        open: releases under way.
        one_call: whether releases are collected and closed in one call, some together.
        ahead: what is prepared of the next release.
        since_checkpoint: asks that a respawned client has to replay.
    """

    def __init__(
        self,
        crew: Crew,
        calls: Calls,
        happened: Callable[[engine.Event], None],
        finished: int,
        saved: Arrays,
    ) -> None:
        self.crew, self.calls, self.backend = crew, calls, crew.backend
        self.happened = happened
        self.due = {finished - 1: float(saved.get("due", 0.0))}
        self.asks: dict[int, Asked] = {
            version: Asked(head := replace(ask, broadcast={}), head, ask.broadcast)
            for version, ask in older_asks(saved).items()
        }
        self.able: Ref = None
        self.ended: float | None = None
        self.done = False
        self.one_call = False
        self.ahead = Ahead(crew, calls)
        self.open: dict[int, Dispatch] = {}
        self.since_checkpoint: list[Dispatch] = []
        self._standing: Asked | None = None
        # What the lead reader has said already, by release.
        self._said: dict[int, tuple[Ask | None, Ref, Ref]] = {}

    def said(self, release: int, head: Ask | None, sent: Ref, broadcast: Ref) -> None:
        """Take note of an ask that the lead reader made together with the release before.

        Args:
            release: that it is for.
            head: what is public of it; None if the task ends the run.
            sent: the reference that the head came as.
            broadcast: of it.
        """
        self._said[release] = head, sent, broadcast

    def together(self, head: Ask) -> bool:
        """Say whether releases of an ask are collected in one call."""
        return self.one_call and head.slots is None

    @property
    def spans(self) -> bool:
        """Whether several releases can be asked for at once: it is known what all of them ask."""
        return self._standing is not None and self.together(self._standing.head)

    def ask(self, ask: engine.Ask) -> None:
        """Ask for releases: find out what is asked, who is in the batch, and ask them."""
        releases = range(ask.release, ask.release + ask.count)
        dispatches = [Dispatch(release, ask.time) for release in releases]
        self.open |= {dispatch.release: dispatch for dispatch in dispatches}
        if self._standing is not None:
            self._asked(dispatches, self._standing)
            return
        (dispatch,) = dispatches  # several only where the ask is known
        if ask.release in self._said:
            self._heard(dispatch, *self._said.pop(ask.release))
            return
        head, broadcast = self.backend.call(self.crew.lead, "ask", ask.release, returns=2)
        self.calls.waiting[head] = lambda ref: self._heard(
            dispatch, self.calls.get(ref), ref, broadcast
        )

    def _heard(self, dispatch: Dispatch, head: Ask | None, sent: Ref, broadcast: Ref) -> None:
        if head is None:
            self.done = True
            self._end(dispatch)
            return
        asked = Asked(head, sent, broadcast)
        adaptive = self.crew.scenario.task.adaptive
        for reader in self.crew.readers[1:]:
            self.backend.call(reader, "expect", dispatch.release, sent, broadcast)
        if adaptive:
            self.asks[dispatch.release] = asked
        else:
            self._standing = asked
        self._asked([dispatch], asked)

    def _asked(self, dispatches: list[Dispatch], asked: Asked) -> None:
        crew, scenario, head = self.crew, self.crew.scenario, asked.head
        dispatch = dispatches[0]
        for each in dispatches:
            each.asked = asked
        if head.held:
            # Nobody is asked, so there is nothing to wait for.
            start = dispatch.time
            self._plan(dispatch, Timing(start, start, start, asked=0))
            self._tell(dispatch)
            self._check_collected(dispatch)
            return
        ready = self.ahead.take(dispatch, head)
        if ready is not None:
            dispatch.cohort, dispatch.made = ready.cohorts, ready.made
        if not scenario.scheduled and head.wanted is None:
            everywhere, time = list(range(len(crew.clients))), dispatch.time
            planned = []
            for _ in dispatches:
                planned.append((at_once(scenario.participation, time), everywhere))
                time = planned[-1][0].due
            self._begin(dispatches, planned)
            return
        if ready is not None:
            self._planned(dispatches, ready.planned)
            return
        others = [v for v, older in self.asks.items() if older.head.mechanism != head.mechanism]
        able = self.able
        if scenario.task.once:
            (able,) = self.backend.call(crew.ledger, "unspent", dispatch.release)
        arguments = (dispatch.release, dispatch.time, crew.share, asked.sent, able, others)
        several = ("choose_all", len(dispatches)) if self.together(head) else ("choose",)
        planned, cohort = self.backend.call(crew.collectors[0], *several, *arguments, returns=2)
        for each in dispatches:
            each.cohort = cohort
        self.calls.waiting[planned] = partial(self._planned, dispatches)

    def _planned(self, dispatches: list[Dispatch], ref: Ref) -> None:
        planned, dispatch = self.calls.get(ref), dispatches[0]
        if planned is None:
            self.ended = dispatch.time
            self._end(dispatch)
            return
        if not isinstance(planned, list):
            planned = [planned]
        if self.crew.scenario.task.once:
            # Before anyone hears of a slot it is on disk who has one.
            then = partial(self._handed, dispatches, planned)
            cohort = dispatch.cohort
            self.calls.make(then, self.crew.ledger, "hand", dispatch.release, cohort)
        else:
            self._begin(dispatches, planned)

    def _handed(self, dispatches: list[Dispatch], planned: Planned, ref: Ref) -> None:
        self.calls.get(ref)
        self._begin(dispatches, planned)

    def _begin(self, dispatches: list[Dispatch], planned: Planned) -> None:
        time = dispatches[0].time
        for dispatch, (timing, _) in zip(dispatches, planned, strict=True):
            dispatch.time = time
            self._plan(dispatch, timing)
            time = timing.due
        asked = [sources for _, sources in planned]
        if self.together(dispatches[0].head):
            self._ask_together(dispatches, asked)
            return
        ((dispatch,), (sources,)) = dispatches, asked
        self._tell(dispatch)
        for source in sources:
            self._dispatch(dispatch, source)
        self._check_collected(dispatch)

    def _end(self, dispatch: Dispatch) -> None:
        del self.open[dispatch.release]
        self.happened(engine.Ended(dispatch.release))

    def _plan(self, dispatch: Dispatch, timing: Timing) -> None:
        """Note when the batch closes, and which asks its reports may still answer."""
        dispatch.timing = timing
        self.due[dispatch.release] = timing.due
        oldest, mechanism = dispatch.release - timing.stalest, dispatch.head.mechanism
        dispatch.versions = {
            version: asked
            for version, asked in self.asks.items()
            if version >= oldest and asked.head.mechanism == mechanism
        }
        dispatch.versions[dispatch.release] = dispatch.asked
        kept = dispatch.release + 1 if timing.oldest is None else timing.oldest
        self.asks = {v: ask for v, ask in self.asks.items() if v >= kept}

    def _tell(self, dispatch: Dispatch) -> None:
        """Say when the batch closes; the next one may be asked for then."""
        assert dispatch.timing is not None
        timing = dispatch.timing
        self.happened(engine.Planned(dispatch.release, timing.closed, timing.due))

    def _ask_together(self, dispatches: list[Dispatch], asked: list[list[int]]) -> None:
        """Ask the actors that hold somebody of the cohorts, and no others, once for all releases.

        Releases are collected and closed in one call, which waits for all reports itself.
        """
        crew, first = self.crew, dispatches[0]
        places = [(each.release, each.time, tuple(each.versions)) for each in dispatches]
        arguments = (places, first.cohort, *first.asks())
        call, somebody = self.backend.call, sorted(set().union(*asked))
        made = first.made or {
            source: call(crew.clients[source], "reports", *arguments, returns=2)
            for source in somebody
        }
        span = Span(dispatches, made, {source: crew.epochs[source] for source in made})
        self.ahead.begin(dispatches[-1])
        for dispatch, own in zip(dispatches, asked, strict=True):
            dispatch.acknowledged = dict.fromkeys(own, 0)
            dispatch.gathering = bool(made)
        if made:
            (collector,), batches = crew.collectors, [batch for _, batch in made.values()]
            given = (span.releases, first.asked.sent, first.cohort, *batches)
            counted, participants, whole = call(collector, "gather", *given, returns=3)
            span.whole = [whole] if crew.apart else []
            self.calls.waiting[counted] = partial(self._gathered, span, participants)
        for dispatch in dispatches:
            self._tell(dispatch)
        if not made:
            for dispatch in dispatches:
                self._check_collected(dispatch)

    def _gathered(self, span: Span, participants: Ref, ref: Ref) -> None:
        for dispatch in span.dispatches:
            dispatch.gathering = False
        try:
            counted = self.backend.get(ref)
        except Lost:
            counted = None
        if counted is None:
            self._take_one_by_one(span)
            return
        receipts = {source: self.calls.get(ref) for source, (ref, _) in span.made.items()}
        counts, comes_along = counted
        for place, dispatch in enumerate(span.dispatches):
            dispatch.receipts = {
                source: receipts[source][place] for source in dispatch.acknowledged
            }
            dispatch.acknowledged = dict.fromkeys(dispatch.acknowledged, 1)
            dispatch.participants.append(participants)
            dispatch.counts[0] = counts[place]
            dispatch.span = span if comes_along else None
        for dispatch in span.dispatches:
            self.happened(engine.Collected(dispatch.release))

    def _take_one_by_one(self, span: Span) -> None:
        """Find out who is gone, the collector or a client: release by release, each by itself."""
        for source, (receipts, batches) in span.made.items():
            epoch = self.crew.epochs[source]
            if epoch == span.epochs[source]:
                self.calls.waiting[receipts] = partial(self._shared, span, source, epoch, batches)
            for dispatch in span.dispatches:
                if source not in dispatch.acknowledged:
                    continue
                if epoch == span.epochs[source]:
                    dispatch.batches[source] = None
                else:  # replaced meanwhile
                    self._dispatch(dispatch, source)

    def _shared(self, span: Span, source: int, epoch: int, batches: Ref, ref: Ref) -> None:
        """Take a placement's answers to a span."""
        if epoch != self.crew.epochs[source]:
            return
        try:
            receipts = self.backend.get(ref)
        except Lost:
            self.replace(source)
            return
        for dispatch, receipt in zip(span.dispatches, receipts, strict=True):
            if receipt is not None:
                self._made(dispatch, source, receipt, [batches])

    def _dispatch(self, dispatch: Dispatch, source: int) -> None:
        self._await(dispatch, source, self._report(dispatch, source))

    def _await(self, dispatch: Dispatch, source: int, refs: tuple[Ref, ...]) -> None:
        receipt, *batches = refs
        dispatch.acknowledged[source] = 0
        dispatch.batches[source] = None
        epoch = self.crew.epochs[source]
        self.calls.waiting[receipt] = partial(self._reported, dispatch, source, epoch, batches)

    def _report(self, dispatch: Dispatch, source: int) -> tuple[Ref, ...]:
        client, shufflers = self.crew.clients[source], len(self.crew.collectors)
        place = (dispatch.release, dispatch.time, dispatch.cohort, shufflers)
        arguments = (*place, tuple(dispatch.versions), *dispatch.asks())
        returns = 1 + len(self.crew.receivers)
        return self.backend.call(client, "report", *arguments, returns=returns)

    def _reported(
        self, dispatch: Dispatch, source: int, epoch: int, batches: list[Ref], ref: Ref
    ) -> None:
        if epoch != self.crew.epochs[source]:
            return  # a zombie's answer; the respawned actor has been asked again
        try:
            receipt = self.backend.get(ref)
        except Lost:
            self.replace(source)
            return
        self._made(dispatch, source, receipt, batches)

    def _made(self, dispatch: Dispatch, source: int, receipt: Receipt, batches: list[Ref]) -> None:
        dispatch.receipts[source] = receipt
        dispatch.batches[source] = batches
        made = {known: refs for known, refs in dispatch.batches.items() if refs is not None}
        if len(made) == len(dispatch.batches):
            dispatch.batches.clear()
            for number in range(len(self.crew.receivers)):
                sent = {known: refs[number] for known, refs in made.items()}
                self._collect(dispatch, number, sent)

    def _collect(self, dispatch: Dispatch, number: int, sent: dict[int, Ref]) -> None:
        """Hand some placements' batches to a collector, in one call."""
        epochs = {source: self.crew.epochs[source] for source in sent}
        then = partial(self._collected, dispatch, number, sent, epochs)
        # What was made for a span has other releases beside this one.
        how = ("take", dispatch.release) if self.one_call else ("collect",)
        self.calls.make(then, self.crew.receivers[number], *how, *sent.values())

    def _collected(
        self,
        dispatch: Dispatch,
        number: int,
        sent: dict[int, Ref],
        epochs: dict[int, int],
        ref: Ref,
    ) -> None:
        try:
            accepted = self.backend.get(ref)
        except Lost:
            self._find_lost(dispatch, number, sent, epochs)
            return
        # Whoever has died meanwhile has been asked again.
        taken = dict(zip(sent, accepted, strict=True))
        living = [source for source in sent if epochs[source] == self.crew.epochs[source]]
        for source in living:
            if not taken[source]:
                raise RunError(f"a collector refused the living batch of placement {source}")
            dispatch.acknowledged[source] += 1
        if living:
            self._check_collected(dispatch)

    def _find_lost(
        self, dispatch: Dispatch, number: int, sent: dict[int, Ref], epochs: dict[int, int]
    ) -> None:
        """Either the collector is gone, which ends the run, or a batch that it was to read."""
        collector = self.crew.receivers[number]
        living = [source for source in sent if epochs[source] == self.crew.epochs[source]]
        for source in living:
            self.crew.ask(collector, "admit", source, epochs[source])
        if len(sent) == 1:
            for source in living:
                self.replace(source)
            return
        for source in living:
            self._collect(dispatch, number, {source: sent[source]})

    def _check_collected(self, dispatch: Dispatch) -> None:
        receivers = len(self.crew.receivers)
        if all(acknowledged == receivers for acknowledged in dispatch.acknowledged.values()):
            self.happened(engine.Collected(dispatch.release))

    def replace(self, source: int) -> None:
        """Respawn a client actor and ask it again for every release it still owes.

        Where clients keep state, the new actor starts from the last checkpoint and first replays
        the asks since then; its answers to those have been counted and are dropped.
        """
        self.crew.respawn(source)
        for dispatch in (*self.since_checkpoint, *self.open.values()):
            if source not in dispatch.acknowledged or dispatch.gathering:
                continue  # if somebody is missing, whoever gathers says so
            if dispatch.acknowledged[source] < len(self.crew.receivers):
                self._dispatch(dispatch, source)
            elif self.crew.keeps_state:
                self._report(dispatch, source)
