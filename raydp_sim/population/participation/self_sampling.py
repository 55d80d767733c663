"""Each client's own coin."""

from typing import Annotated, ClassVar

from pydantic import Field

from raydp_sim.population.availability.base import Mask
from raydp_sim.population.participation.base import Rounds
from raydp_sim.random import Ids, Stream


class SelfSampling(Rounds):
    """Each available client takes part with a probability of its own, unseen by anyone else.

    Fields:
        probability: chance of taking part in a release, in (0, 1].

    Example:
        >>> import numpy as np
        >>> ids = np.arange(1000, dtype=np.uint32)
        >>> coins = SelfSampling(probability=0.25).joins(ids, Stream(1))
        >>> 180 < int(coins.sum()) < 320
        True
    """

    kind: ClassVar[str] = "self"
    decided_by = "client"
    probability: Annotated[float, Field(gt=0, le=1)]

    def joins(self, ids: Ids, stream: Stream) -> Mask:
        """Draw one coin per client."""
        return stream.clients(ids).uniform("coin")[:, 0] < self.probability

    def expected(self, clients: int, rate: float) -> float:
        """Return the expected number of heads among the available clients."""
        return clients * rate * self.probability
