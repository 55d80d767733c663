"""Clients that a failure takes away together."""

from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.population.availability.base import Availability, Mask
from raydp_sim.population.moments import Times, numbers, uniforms
from raydp_sim.random import Stream


class Outages(Availability):
    """Regions fail as a whole; where all is well each client is there by a coin of its own.

    Fields:
        regions: how many regions there are; each client belongs to one, all equally likely.
        outage: chance that a region is out in a period, for all its clients at once.
        probability: chance that a client is there while its region is not out.
        period: length of a period in seconds of virtual time; all is drawn anew in the next.

    Example:
        >>> failing, ids = Outages(regions=4, outage=0.5), np.arange(1000)
        >>> there, region = failing.available(ids, 0.0, Stream(1)), failing.region(ids, Stream(1))
        >>> [len(np.unique(there[region == r])) for r in range(4)]
        [1, 1, 1, 1]
    """

    kind: ClassVar[str] = "outages"
    regions: Annotated[int, Field(ge=1, le=1_000_000)]
    outage: Annotated[float, Field(ge=0, lt=1)]
    probability: Annotated[float, Field(gt=0, le=1)] = 1.0
    period: Annotated[float, Field(ge=1e-6, le=1e12)] = 1.0

    def available(self, ids: NDArray[Any], time: Times, stream: Stream) -> Mask:
        """Flip the coins of the regions and of the clients in the period."""
        periods = numbers(ids, time, self.period)
        region = self.region(ids, stream)
        up = np.asarray(uniforms(stream, region, periods, "outage") >= self.outage)
        if self.probability == 1.0:
            return up
        return up & (uniforms(stream, ids, periods, "coin") < self.probability)

    @property
    def regions_named(self) -> tuple[str, ...]:
        """Number the regions."""
        return tuple(f"region-{number}" for number in range(self.regions))

    def region(self, ids: NDArray[Any], stream: Stream) -> NDArray[np.int64]:
        """Return the region of each client."""
        return stream.clients(ids).integers("region", self.regions)[:, 0]

    def rate(self) -> float:
        """Return the chance that neither the region nor the client is away."""
        return (1.0 - self.outage) * self.probability
