"""What calls themselves take: those of an adaptive round, between actors that do nothing."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from raydp_sim.actors.backend import Backend
from raydp_sim.actors.listening import Listens
from raydp_sim.bench.contenders import Sample

_CLIENTS = 2


class Idle(Listens):
    """Answers every call with so many things, of so many numbers each, and does nothing else."""

    def answer(self, returns: int, size: int, *_: Any) -> Any:
        """Take what a call brings along and return as much as is asked for."""
        made = np.zeros(size, np.float32)
        return made if returns == 1 else (made,) * returns


class Bare:
    """The calls of `Conductor` for one release after another, with nothing behind them.

    Two actors of clients, whoever collects, the ledger, the reader and the metrics, wherever the
    backend has them; the next clients are asked by reference, and the driver waits where it waits
    in a run: for the batch to be closed, and for the step.

    Args:
        backend: where to play.
        size: numbers that the model has.
        apart: whether whoever collects is not the reader.
        cpu: a clock of the CPU-seconds of all that take part.
    """

    def __init__(self, backend: Backend, size: int, apart: bool, cpu: Callable[[], float]) -> None:
        self.backend, self.size, self.cpu = backend, size, cpu
        self.clients = [backend.spawn(Idle, anywhere=True) for _ in range(_CLIENTS)]
        self.ledger, self.reader, self.metrics = (backend.spawn(Idle) for _ in range(3))
        self.collector = backend.spawn(Idle) if apart else self.reader
        self.actors = [*self.clients, self.ledger, self.reader, self.metrics]
        self.actors += [self.collector] if apart else []
        for actor in self.actors:
            backend.get(self._call(actor, 1)[0])

    def play(self, rounds: int) -> Sample:
        """Play rounds and return what one of them took."""
        cpu, wall = self.cpu(), time.perf_counter()
        recorded = None
        head = broadcast = cohort = np.zeros(1)
        made = self._ask(head, broadcast, cohort)
        for _ in range(rounds):
            counted, who, batch = self._call(self.collector, 3, head, *(own[1] for own in made))
            self._wait(counted, *(own[0] for own in made))
            charged, reports = self._call(self.ledger, 2, head, who)
            said = self._call(self.reader, 3, reports, batch, size=self.size)
            (recorded,) = self._call(self.metrics, 1, head, charged, said[2])
            planned, cohort = self._call(self.collector, 2, head)
            self._wait(planned)
            head, broadcast, _ = said
            made = self._ask(head, broadcast, cohort)
            self._wait(head)
        self.backend.get(recorded)
        wall = time.perf_counter() - wall
        return Sample(wall / rounds, (self.cpu() - cpu) / rounds)

    def _ask(self, head: Any, broadcast: Any, cohort: Any) -> list[tuple[Any, ...]]:
        return [self._call(client, 2, head, broadcast, cohort) for client in self.clients]

    def _call(self, actor: Any, returns: int, *given: Any, size: int = 1) -> tuple[Any, ...]:
        return self.backend.call(actor, "answer", returns, size, *given, returns=returns)

    def _wait(self, *refs: Any) -> None:
        for ref in refs:
            self.backend.wait([ref])
            self.backend.get(ref)

    def stop(self) -> None:
        """End its actors."""
        for actor in self.actors:
            self.backend.kill(actor)
