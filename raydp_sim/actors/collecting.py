"""The first half of a release: clients are asked, and their reports reach the collectors."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from raydp_sim import engine
from raydp_sim.actors.ahead import Ahead
from raydp_sim.actors.backend import Lost, Ref
from raydp_sim.actors.calls import Calls
from raydp_sim.actors.crew import Crew
from raydp_sim.actors.dispatch import Asked, Dispatch, older_asks
from raydp_sim.errors import RunError
from raydp_sim.schedule.batch import Timing
from raydp_sim.schedule.rounds import at_once
from raydp_sim.tasks.base import Arrays, Ask


class Collecting:
    """Asks for releases until each is collected; clients that die meanwhile are replaced.

    Attributes:
        due: after each release, when the next one is due.
        asks: older versions that clients may still work on.
        able: who may still be asked, where there are budgets.
        ended: since when nobody came, if the run ended for that; `done`: the task ended it.
        open: releases under way.
        one_call: whether a release is collected and closed in one call; not where several are
            under way.
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

    def ask(self, ask: engine.Ask) -> None:
        """Ask for a release: find out what is asked, who is in the batch, and ask them."""
        dispatch = self.open[ask.release] = Dispatch(ask.release, ask.time)
        if self._standing is not None:
            self._asked(dispatch, self._standing)
            return
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
        self._asked(dispatch, asked)

    def _asked(self, dispatch: Dispatch, asked: Asked) -> None:
        crew, scenario, head = self.crew, self.crew.scenario, asked.head
        dispatch.asked = asked
        if head.held:
            # Nobody is asked, so there is nothing to wait for.
            start = dispatch.time
            self._plan(dispatch, Timing(start, start, start, asked=0))
            self._check_collected(dispatch)
            return
        ready = self.ahead.take(dispatch, head)
        if ready is not None:
            dispatch.cohort, dispatch.made = ready.cohort, ready.made
        if not scenario.scheduled and head.wanted is None:
            self._plan(dispatch, at_once(scenario.participation, dispatch.time))
            self._dispatch_all(dispatch, range(len(crew.clients)))
            return
        if ready is not None:
            self._planned(dispatch, ready.planned)
            return
        others = [v for v, older in self.asks.items() if older.head.mechanism != head.mechanism]
        able = self.able
        if scenario.task.once:
            (able,) = self.backend.call(crew.ledger, "unspent", dispatch.release)
        arguments = (dispatch.release, dispatch.time, crew.share, asked.sent, able, others)
        planned, dispatch.cohort = self.backend.call(
            crew.collectors[0], "choose", *arguments, returns=2
        )
        self.calls.waiting[planned] = partial(self._planned, dispatch)

    def _planned(self, dispatch: Dispatch, ref: Ref) -> None:
        planned = self.calls.get(ref)
        if planned is None:
            self.ended = dispatch.time
            self._end(dispatch)
            return
        if self.crew.scenario.task.once:
            # Before anyone hears of a slot it is on disk who has one.
            then = partial(self._handed, dispatch, planned)
            cohort = dispatch.cohort
            self.calls.make(then, self.crew.ledger, "hand", dispatch.release, cohort)
        else:
            self._begin(dispatch, *planned)

    def _handed(self, dispatch: Dispatch, planned: tuple[Timing, list[int]], ref: Ref) -> None:
        self.calls.get(ref)
        self._begin(dispatch, *planned)

    def _begin(self, dispatch: Dispatch, timing: Timing, sources: list[int]) -> None:
        self._plan(dispatch, timing)
        self._dispatch_all(dispatch, sources)

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
        self.happened(engine.Planned(dispatch.release, timing.closed, timing.due))

    def _dispatch_all(self, dispatch: Dispatch, sources: Iterable[int]) -> None:
        """Ask the actors that hold somebody of the cohort, and no others."""
        made = dispatch.made or {source: self._report(dispatch, source) for source in sources}
        if self.one_call and made and dispatch.head.slots is None:
            self._gather(dispatch, made)
            return
        for source, refs in made.items():
            self._await(dispatch, source, refs)
        self._check_collected(dispatch)

    def _gather(self, dispatch: Dispatch, made: dict[int, tuple[Ref, ...]]) -> None:
        """Have a release collected and closed in one call, which waits for all reports itself."""
        (collector,) = self.crew.collectors
        dispatch.acknowledged = dict.fromkeys(made, 0)
        place = (dispatch.release, dispatch.asked.sent, dispatch.cohort)
        batches = [batch for _, batch in made.values()]
        counted, participants, whole = self.backend.call(
            collector, "gather", *place, *batches, returns=3
        )
        dispatch.participants.append(participants)
        self.calls.waiting[counted] = partial(self._gathered, dispatch, made, whole)

    def _gathered(
        self, dispatch: Dispatch, made: dict[int, tuple[Ref, ...]], whole: Ref, ref: Ref
    ) -> None:
        try:
            counts, comes_along = self.backend.get(ref)
        except Lost:
            # Who is gone, the collector or a client, shows when they are taken one by one.
            dispatch.participants.clear()
            for source, refs in made.items():
                self._await(dispatch, source, refs)
            return
        for source, (receipt, _) in made.items():
            dispatch.receipts[source] = self.calls.get(receipt)
            dispatch.acknowledged[source] = 1
        dispatch.counts[0] = counts
        if comes_along:
            dispatch.whole = [whole] if self.crew.apart else []
        self.happened(engine.Collected(dispatch.release))

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
        heads = [asked.sent for asked in dispatch.versions.values()]
        broadcasts = [asked.broadcast for asked in dispatch.versions.values()]
        arguments = (*place, tuple(dispatch.versions), *heads, *broadcasts)
        returns = 1 + len(self.crew.receivers)
        return self.backend.call(client, "report", *arguments, returns=returns)

    def _reported(
        self, dispatch: Dispatch, source: int, epoch: int, batches: list[Ref], ref: Ref
    ) -> None:
        if epoch != self.crew.epochs[source]:
            return  # a zombie's answer; the respawned actor has been asked again
        try:
            dispatch.receipts[source] = self.backend.get(ref)
        except Lost:
            self.replace(source)
            return
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
        self.calls.make(then, self.crew.receivers[number], "collect", *sent.values())

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
            if source not in dispatch.acknowledged:
                continue
            if dispatch.acknowledged[source] < len(self.crew.receivers):
                self._dispatch(dispatch, source)
            elif self.crew.keeps_state:
                self._report(dispatch, source)
