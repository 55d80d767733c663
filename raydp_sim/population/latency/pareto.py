"""Work with stragglers."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from raydp_sim.population.latency.base import Latency
from raydp_sim.random import ClientStream, Floats


class Pareto(Latency):
    """Heavy tail: a report takes longer than t with probability (minimum / t)^shape.

    With a shape of at most 2 the variance is infinite, with one of at most 1 the mean is too: a few
    stragglers take longer than all others together.

    Fields:
        minimum: least duration, in seconds of virtual time.
        shape: exponent of the tail; the smaller, the heavier.

    Example:
        >>> from raydp_sim.random import Stream
        >>> slow = Pareto(minimum=1.0, shape=1.0).durations(Stream(1).clients(np.arange(1000)))
        >>> float(slow.min()) >= 1.0, 420 < int((slow > 2.0).sum()) < 580
        (True, True)
    """

    kind: ClassVar[str] = "pareto"
    minimum: Annotated[float, Field(ge=1e-6, le=1e12)]
    shape: Annotated[float, Field(ge=0.1, le=1000)]

    def durations(self, stream: ClientStream) -> Floats:
        """Draw by inversion; a uniform lies in [0, 1), so 1 minus it is never 0."""
        above = -np.log1p(-stream.uniform("latency")[:, 0])
        return self.minimum * np.exp(above / self.shape)

    def least(self) -> float:
        """Return the minimum."""
        return self.minimum

    def typical(self) -> float:
        """Return the median."""
        return float(self.minimum * 2.0 ** (1.0 / self.shape))
