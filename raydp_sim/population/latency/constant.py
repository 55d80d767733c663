"""Work that always takes the same time."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from raydp_sim.population.latency.base import Latency
from raydp_sim.random import ClientStream, Floats


class Constant(Latency):
    """Every report takes equally long.

    Fields:
        seconds: how long, in seconds of virtual time; 0 means that reports arrive at once.

    Example:
        >>> from raydp_sim.random import Stream
        >>> Constant(seconds=2.5).durations(Stream(1).clients(np.arange(3))).tolist()
        [2.5, 2.5, 2.5]
    """

    kind: ClassVar[str] = "constant"
    seconds: Annotated[float, Field(ge=0, le=1e12)] = 0.0

    def durations(self, stream: ClientStream) -> Floats:
        """Return the same number for everyone; nothing is drawn."""
        return np.full(len(stream.ids), self.seconds)

    def least(self) -> float:
        """Return it."""
        return self.seconds

    def typical(self) -> float:
        """Return it."""
        return self.seconds

    @property
    def instant(self) -> bool:
        """Whether it is 0."""
        return self.seconds == 0.0
