"""The interface of every availability model."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raydp_sim.population.moments import Times
from raydp_sim.random import Stream
from raydp_sim.registry import Piece

Mask = NDArray[np.bool_]


class Availability(Piece):
    """A random-access function of (client ids, time), so that asking few clients costs little.

    Time is virtual and in seconds; a synchronous round takes 1 unless the scenario says otherwise.
    """

    # Whether everyone is there at every moment; `rate` is only a hint and proves nothing.
    everyone: ClassVar[bool] = False
    # Whether who stays away depends on how much each client counts; then ask `absent` too.
    needs_influence: ClassVar[bool] = False

    def available(self, ids: NDArray[Any], time: Times, stream: Stream) -> Mask:
        """Say which of the clients are there.

        Args:
            ids: the clients that are asked about, in any order, also more than once.
            time: one moment of virtual time, or one for each of them.
            stream: the same one for every question about a population.
        """
        raise NotImplementedError

    @property
    def regions_named(self) -> tuple[str, ...]:
        """The names of the regions that clients live in; none, for most models."""
        return ()

    def region(self, ids: NDArray[Any], stream: Stream) -> NDArray[np.int64]:
        """Return the region of each client, as an index; drawn once, by its id."""
        return np.zeros(len(ids), np.int64)

    def reachable(self, clients: int) -> int:
        """Return how many of the clients can ever be there."""
        return clients

    def rate(self) -> float:
        """Return a client's long-run probability of being there (a hint, for planning)."""
        raise NotImplementedError

    def absent(self, influence: NDArray[Any]) -> Mask:
        """Say who stays away for good, given every client's influence; nobody, for most models."""
        return np.zeros(len(influence), dtype=np.bool_)

    def check(self, clients: int) -> str | None:
        """Return what is wrong for a population of that size, if anything.

        The text begins with the name of the field at fault, as in `share is 0.1; raise it`.
        """
        return None

    def located(self, folder: Path) -> "Availability":
        """Return the model with relative paths taken from the scenario file's folder."""
        return self
