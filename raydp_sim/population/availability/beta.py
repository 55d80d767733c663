"""Clients some of whom are there much more than others."""

from typing import Annotated, Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.population.availability.base import Availability, Mask
from raydp_sim.population.moments import Times, numbers, uniforms
from raydp_sim.random import Floats, Stream


class Beta(Availability):
    """Each client has a probability of its own, drawn once from a Beta law, and a coin per period.

    A client's probability is the inverse F^-1(u) of the law at one uniform u keyed by the client.
    It is there if its coin c is below that, which is to say if F(c) < u: so asking needs the
    distribution function only, which is many times cheaper than its inverse.

    Fields:
        alpha, beta: parameters of the Beta law; its mean is alpha / (alpha + beta), and the smaller
            they are, the more the clients differ.
        period: length of a period in seconds of virtual time; coins are independent between them.

    Example:
        >>> uneven = Beta(alpha=0.5, beta=0.5)
        >>> q = uneven.probabilities(np.arange(1000), Stream(1))
        >>> 0.44 < float(q.mean()) < 0.56, int((q < 0.1).sum()) > 150
        (True, True)
    """

    kind: ClassVar[str] = "beta"
    alpha: Annotated[float, Field(ge=0.01, le=1e6)]
    beta: Annotated[float, Field(ge=0.01, le=1e6)]
    period: Annotated[float, Field(ge=1e-6, le=1e12)] = 1.0

    def available(self, ids: NDArray[Any], time: Times, stream: Stream) -> Mask:
        """Flip each client's own coin of the period."""
        coins = uniforms(stream, ids, numbers(ids, time, self.period), "coin")
        return np.asarray(
            scipy.special.betainc(self.alpha, self.beta, coins) < self._ranks(ids, stream)
        )

    def probabilities(self, ids: NDArray[Any], stream: Stream) -> Floats:
        """Return the clients' own probabilities of being there."""
        return np.asarray(scipy.special.betaincinv(self.alpha, self.beta, self._ranks(ids, stream)))

    def rate(self) -> float:
        """Return the mean of the Beta law."""
        return self.alpha / (self.alpha + self.beta)

    def _ranks(self, ids: NDArray[Any], stream: Stream) -> Floats:
        return stream.clients(ids).uniform("probability")[:, 0]
