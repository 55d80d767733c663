"""The interface of every availability model."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raydp_sim.random import Stream
from raydp_sim.registry import Piece

Mask = NDArray[np.bool_]


class Availability(Piece):
    """A random-access function of (client ids, time), so that asking few clients costs little."""

    # Whether everyone is there at every moment; `rate` is only a hint and proves nothing.
    everyone: ClassVar[bool] = False

    def available(self, ids: NDArray[Any], time: float, stream: Stream) -> Mask:
        """Say which of the clients are there at a moment of virtual time."""
        raise NotImplementedError

    def rate(self) -> float:
        """Return a client's long-run probability of being there (a hint, for planning)."""
        raise NotImplementedError
