"""Work whose time varies by factors."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from raydp_sim.population.latency.base import Latency
from raydp_sim.random import ClientStream, Floats


class Lognormal(Latency):
    """The logarithm of the duration is normal: mostly near the median, now and then much longer.

    Fields:
        median: half of the reports take longer, in seconds of virtual time.
        sigma: standard deviation of the logarithm; two thirds of the reports lie within a factor
            of exp(sigma) of the median.

    Example:
        >>> from raydp_sim.random import Stream
        >>> slow = Lognormal(median=10.0, sigma=0.5).durations(Stream(1).clients(np.arange(1000)))
        >>> 420 < int((slow > 10.0).sum()) < 580
        True
    """

    kind: ClassVar[str] = "lognormal"
    median: Annotated[float, Field(ge=1e-6, le=1e12)]
    sigma: Annotated[float, Field(ge=0, le=20)] = 1.0

    def durations(self, stream: ClientStream) -> Floats:
        """Draw by inversion of one uniform per client."""
        return self.median * np.exp(self.sigma * stream.normal("latency")[:, 0])

    def least(self) -> float:
        """Return 0, or the median where nothing varies."""
        return 0.0 if self.sigma else self.median

    def typical(self) -> float:
        """Return the median."""
        return self.median
