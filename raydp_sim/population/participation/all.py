"""Everyone who is there."""

from typing import ClassVar

import numpy as np

from raydp_sim.population.availability.base import Mask
from raydp_sim.population.participation.base import Rounds
from raydp_sim.population.participation.uniform import Uniform
from raydp_sim.random import Ids, Stream


class All(Rounds):
    """Every available client takes part in every release.

    Example:
        >>> int(All().joins(np.arange(4, dtype=np.uint32), Stream(1)).sum())
        4
    """

    kind: ClassVar[str] = "all"
    decided_by = "client"

    def sized(self, reports: int) -> Uniform:
        """Return a uniform choice of so many of the clients that are there."""
        shared = self.model_dump(include={"deadline", "on_short", "interval"})
        return Uniform(sampled=reports, **shared)

    def joins(self, ids: Ids, stream: Stream) -> Mask:
        """Return True for everyone."""
        return np.ones(len(ids), dtype=np.bool_)

    def certain(self, clients: int) -> int:
        """Return the number of clients."""
        return clients

    def expected(self, clients: int, rate: float) -> float:
        """Return the available part of the population."""
        return clients * rate
