"""The way of a paid batch from the collectors to the readers: chunk by chunk, a few at a time."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from raydp_sim.actors.backend import Ref
from raydp_sim.actors.calls import Calls
from raydp_sim.actors.crew import Crew
from raydp_sim.actors.dispatch import Dispatch
from raydp_sim.actors.inbox import chunks

_CHUNKS_IN_FLIGHT = 4


class Handing:
    """Hands batches on that are paid for.

    Args:
        crew: who is there.
        calls: that are under way.
        step: called with the readers' shares of the last chunk, which goes with the step.
    """

    def __init__(
        self,
        crew: Crew,
        calls: Calls,
        step: Callable[[Dispatch, Sequence[Sequence[Ref]]], None],
    ) -> None:
        self.crew, self.calls, self.backend, self.step = crew, calls, crew.backend, step

    def begin(self, dispatch: Dispatch) -> None:
        """Hand a batch on, and what is sealed beside it."""
        crew = self.crew
        if crew.levels is not None:
            self._promote(dispatch)
        if crew.apart:
            dispatch.chunks.extend(chunks(dispatch.head, dispatch.total("bytes")))
            self._pump(dispatch)
            return
        handed: tuple[Ref, ...] = ()
        if len(crew.readers) > 1:
            handed = self.backend.call(crew.lead, "handed", dispatch.release)
        self.step(dispatch, [self._order(dispatch), *(handed for _ in crew.readers[1:])])

    def _order(self, dispatch: Dispatch) -> tuple[Ref, ...]:
        """Have the shuffler say in which order the server takes what it holds, if a task asks."""
        orderer, task = self.crew.orderer, self.crew.scenario.task
        number = task.drawn_order(dispatch.release)
        if orderer is None or number is None:
            return ()
        return self.backend.call(
            orderer, "order", dispatch.release, number, dispatch.total("reports")
        )

    def _promote(self, dispatch: Dispatch) -> None:
        """Hand on what is sealed for readers that are promoted with a release.

        The first shuffler has all of it: which one a report went to would tell who sent it apart.
        """
        levels = self.crew.levels
        assert levels is not None
        for due in () if levels.direct else levels.due(dispatch.release):
            place = (dispatch.release, due.analyst)
            (sealed,) = self.backend.call(self.crew.collectors[0], "promotion", *place)
            reader = self.crew.readers[due.analyst]
            self.calls.make(self.calls.get, reader, "promote", dispatch.release, sealed)

    def _pump(self, dispatch: Dispatch) -> None:
        """Keep a few chunks on their way from the shufflers to the readers, and no more."""
        while dispatch.chunks and dispatch.folding < _CHUNKS_IN_FLIGHT * len(self.crew.readers):
            place = (dispatch.release, *dispatch.chunks.popleft(), not dispatch.chunks)
            shares = self._shares(place)
            if not dispatch.chunks:
                self.step(dispatch, shares)
                return
            for reader, own in zip(self.crew.readers, shares, strict=True):
                then = partial(self._folded, dispatch)
                self.calls.make(then, reader, "fold", dispatch.release, *own)
                dispatch.folding += 1

    def _shares(self, place: tuple[Any, ...]) -> list[list[Ref]]:
        """Return for each reader the collectors' shares of a chunk; of keys none but its own."""
        crew, readers = self.crew, len(self.crew.readers)
        if crew.levels is None or crew.levels.direct or readers == 1:
            shares = [self.backend.call(c, "chunk", *place)[0] for c in crew.collectors]
            return [shares] * readers
        parts = [self.backend.call(c, "apart", *place, returns=readers) for c in crew.collectors]
        public = [part[0] for part in parts]
        own = [[part[reader] for part in parts] for reader in range(1, readers)]
        return [public, *([*public, *sealed] for sealed in own)]

    def _folded(self, dispatch: Dispatch, ref: Ref) -> None:
        self.calls.get(ref)
        dispatch.folding -= 1
        self._pump(dispatch)
