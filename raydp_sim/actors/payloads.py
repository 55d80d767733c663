"""Where the messages of clients go, block by block, until all of an actor's have answered."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raydp_sim.actors.room import Room
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.stream.batches import Summed
from raydp_sim.tasks.base import Task


class Payloads(Protocol):
    """Takes messages, one row per report, and gives all of them at the end.

    Attributes:
        adds: whether they are only added up.
    """

    adds: bool

    def expect(self, rows: int) -> None:
        """Hear how many reports will come, unless clients send several."""
        ...

    def add(self, payload: Any) -> None:
        """Take a block of reports."""
        ...

    def whole(self) -> Any:
        """Return them as they travel."""
        ...


class Kept:
    """Messages as they are.

    Blocks are copied into room for all as they come: kept until the end they would take as much
    memory again, and fresh pages for it cost more than the copy.

    Args:
        room: where they are kept; an actor has one for all its releases.
    """

    adds = False

    def __init__(self, room: Room | None = None) -> None:
        self._rooms = room or Room()
        self._blocks: list[NDArray[Any]] = []
        self._room: NDArray[Any] | None = None
        self._expected = self._filled = 0

    def expect(self, rows: int) -> None:
        """Hear how many reports will come."""
        self._expected = rows

    def add(self, payload: NDArray[Any]) -> None:
        """Keep a block."""
        if self._room is None and not self._blocks and len(payload) < self._expected:
            shape = (self._expected, *payload.shape[1:])
            self._room = self._rooms.empty(shape, payload.dtype)
        end = self._filled + len(payload)
        if self._blocks or self._room is None or end > self._expected:
            self._blocks.append(payload)  # more than were expected: several of a client
            return
        self._room[self._filled : end] = payload
        self._filled = end

    def whole(self) -> NDArray[Any]:
        """Return all rows."""
        room = [] if self._room is None else [self._room[: self._filled]]
        parts = [*room, *self._blocks]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


class Total:
    """The exact sum of messages, which is all that a trusted server makes of them.

    Long vectors would take longer to travel than to compute. Sums are of integers, so it does not
    matter who adds what to what.
    """

    adds = True

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism, self._counts, self._rows = mechanism, mechanism.zero(), 0

    def expect(self, rows: int) -> None:
        """A sum takes no more room for more of them."""

    def add(self, payload: Any) -> None:
        """Add a block up."""
        index = np.broadcast_to(np.int64(0), len(payload))
        self._counts = self._mechanism.fold(self._counts, index, payload)
        self._rows += len(payload)

    def whole(self) -> Summed:
        """Return the sum."""
        return Summed((self._counts,), self._rows)


def payloads(task: Task, mechanism: Mechanism, copies: bool, room: Room) -> Payloads:
    """Say how messages travel: as sums where whoever reads them is trusted and only adds them up.

    Args:
        task: that reads them; it may fold them in a way of its own.
        mechanism: of the reports.
        copies: whether some are sent again: then they have to be told apart.
        room: for messages that travel as they are.
    """
    own = type(task).fold is not Task.fold or type(task).zero is not Task.zero
    trusted = mechanism.where == "aggregator" and mechanism.messages_per_report == 1
    return Total(mechanism) if trusted and not own and not copies else Kept(room)
