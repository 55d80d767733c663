"""What a schedule knows of the clients: when they are there and when their answers arrive."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raydp_sim.random import Ids, Stream

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Population(Protocol):
    """What is asked of a scenario's population."""

    clients: int
    dropout: float
    duplicates: float

    def available(self, ids: Ids, time: Any, root: Stream) -> Mask:
        """Say which of the clients are there, at one moment or each at its own."""

    def durations(self, ids: Ids, ask: Stream, root: Stream) -> Floats:
        """Return how long each client's work takes."""

    def rate(self) -> float:
        """Return a client's long-run chance of being there (a hint)."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What comes of asking some clients, one row each.

    Attributes:
        done: when the client is done, whether or not its report arrives.
        lost: whether the report never arrives.
        again: when a second copy of the report arrives; infinity if none does.
    """

    done: Floats
    lost: Mask
    again: Floats


@dataclass(frozen=True, eq=False)
class World:
    """The clients of one repetition.

    Attributes:
        population: the scenario's.
        root: the root of the repetition's randomness.
        absent: clients that an adversary keeps away.
        able: clients whose budget allows one more report; None if there are no budgets.
    """

    population: Population
    root: Stream
    absent: Mask | None = None
    able: Mask | None = None

    def there(self, ids: Ids, time: float | Floats) -> Mask:
        """Say who can be asked, budgets left aside."""
        mask = self.population.available(ids, time, self.root)
        return mask if self.absent is None else mask & ~self.absent[ids]

    def willing(self, ids: Ids) -> Mask:
        """Say whose budget allows one more report."""
        return np.ones(len(ids), np.bool_) if self.able is None else self.able[ids]

    def answers(self, ids: Ids, start: float | Floats, ask: Stream) -> Answers:
        """Let the clients work from `start` on; `ask` is keyed by what they were asked."""
        work = self.population.durations(ids, ask, self.root)
        coins = ask.at("faults").clients(ids)
        done = np.asarray(start + work)
        lost = np.zeros(len(ids), np.bool_)
        if self.population.dropout > 0.0:
            lost = coins.uniform("dropout")[:, 0] < self.population.dropout
        again = np.full(len(ids), np.inf)
        if self.population.duplicates > 0.0:
            twice = ~lost & (coins.uniform("duplicate")[:, 0] < self.population.duplicates)
            # A copy is sent again after as long as the work took, so it comes late where work does.
            delay = self.population.durations(ids, ask.at("again"), self.root)
            again[twice] = (done + delay)[twice]
        return Answers(done, lost, again)
