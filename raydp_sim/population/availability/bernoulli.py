"""Clients that flip a coin in every period."""

import math
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.population.availability.base import Availability, Mask
from raydp_sim.population.moments import Times, keyed_uniforms, numbers
from raydp_sim.random import Stream


class Bernoulli(Availability):
    """Each client is there with the same probability, independently in every period.

    Fields:
        probability: chance of being there, in (0, 1].
        period: length of a period in seconds of virtual time; a synchronous round takes 1.

    Example:
        >>> half = Bernoulli(probability=0.5).available(np.arange(1000), 0.0, Stream(1))
        >>> 400 < int(half.sum()) < 600
        True
    """

    kind: ClassVar[str] = "bernoulli"
    probability: Annotated[float, Field(gt=0, le=1)]
    period: Annotated[float, Field(ge=1e-6, le=1e12)] = 1.0

    def available(self, ids: NDArray[Any], time: Times, stream: Stream) -> Mask:
        """Draw one coin per client and period."""
        if isinstance(time, np.ndarray):
            periods = numbers(ids, time, self.period)
            coins = keyed_uniforms(stream, ids, periods, ("period", "coin"))
        else:
            now = stream.at("period", math.floor(time / self.period))
            coins = now.clients(ids).uniform("coin")[:, 0]
        return np.asarray(coins < self.probability)

    def rate(self) -> float:
        """Return the probability."""
        return self.probability
