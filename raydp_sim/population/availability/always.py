"""Clients that never leave."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raydp_sim.population.availability.base import Availability, Mask
from raydp_sim.population.moments import Times
from raydp_sim.random import Stream


class Always(Availability):
    """Every client is there at every moment.

    Example:
        >>> int(Always().available(np.arange(3), 0.0, Stream(1)).sum())
        3
    """

    kind: ClassVar[str] = "always"
    everyone = True

    def available(self, ids: NDArray[Any], time: Times, stream: Stream) -> Mask:
        """Return True for everyone."""
        return np.ones(len(ids), dtype=np.bool_)

    def rate(self) -> float:
        """Return 1."""
        return 1.0
