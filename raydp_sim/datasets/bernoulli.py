"""Synthetic yes-or-no answers."""

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.datasets.base import Dataset
from raydp_sim.random import Ids, Stream


class Bernoulli(Dataset):
    """Independent bits, each 1 with the same probability.

    Fields:
        probability: chance of a 1.
        dimension: bits per client.

    Example:
        >>> bits = Bernoulli(probability=0.3).values(np.arange(1000, dtype=np.uint32), Stream(1))
        >>> 220 < int(bits.sum()) < 380
        True
    """

    kind: ClassVar[str] = "bernoulli"
    probability: Annotated[float, Field(ge=0, le=1)]
    dimension: Annotated[int, Field(ge=1, le=10_000_000)] = 1

    def width(self) -> int:
        """Return the number of bits per client."""
        return self.dimension

    def values(self, ids: Ids, stream: Stream) -> NDArray[np.float64]:
        """Draw the clients' bits as 0.0 or 1.0."""
        u = stream.clients(ids).uniform("value", self.dimension)
        return (u < self.probability).astype(np.float64)
