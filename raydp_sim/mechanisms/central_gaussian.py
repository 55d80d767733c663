"""Gaussian noise at a trusted aggregator."""

import math
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.wires.vectors import Vectors
from raydp_sim.privacy.curves.gaussian import gaussian_sigma
from raydp_sim.privacy.events import CentralRelease, GaussianRelease
from raydp_sim.random import ClientStream, Stream


class CentralGaussian(Mechanism):
    """Release the exact mean of n vectors plus the least normal noise for (epsilon, delta)-DP.

    Balle & Wang 2018, Theorem 8 and Algorithm 1, under replacement of one client's value: two means
    are at most 2 radius / n apart. The clients trust the aggregator: they send their values as they
    are, so there is no local guarantee.

    Fields:
        radius: of the l2 ball, > 0.
        epsilon: guarantee of one release. Exactly one of this and `target`.
        delta: in (0, 1), with epsilon; a target's delta is shared out instead.

    Example:
        >>> settings = {"delta": 1e-5, "dimension": 1, "radius": 0.5}
        >>> round(CentralGaussian(epsilon=1.0, **settings).sigma(10), 5)
        0.37306
    """

    kind: ClassVar[str] = "central-gaussian"
    where: ClassVar[Literal["client", "aggregator"]] = "aggregator"
    guarantee: ClassVar[Literal["pure", "approximate", "shuffled-only"]] = "approximate"
    tight: ClassVar[bool] = True
    sends_values: ClassVar[bool] = True
    epsilon_field: ClassVar[str] = "epsilon"
    delta_field: ClassVar[str | None] = "delta"
    source: ClassVar[str] = "Balle & Wang 2018"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon": 1.0, "delta": 1e-5, "dimension": 1, "radius": 0.5},
        {"epsilon": 0.5, "delta": 1e-3, "dimension": 3, "radius": 2.0},
    )

    radius: Positive
    epsilon: Positive | None = None
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None

    @property
    def domain(self) -> Domain:
        """The l2 ball."""
        return Domain("l2", self.radius, self.need_dimension())

    @cached_property
    def wire(self) -> Vectors:
        """One message of doubles."""
        return Vectors(self.need_dimension(), self.radius)

    def sigma(self, clients: int) -> float:
        """Return the standard deviation of the noise on the mean of so many clients.

        Rounding to the accumulator's step can part two sums by one more step per coordinate.
        """
        return self._sigma_of_sum / clients

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Send the values."""
        return Messages(values[:, None, :])

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean plus noise; with no client there is nothing to release, so 0."""
        mean, clients = self.wire.mean(counts), int(counts[-1])
        if clients == 0:
            return mean
        return mean + stream.generator().normal(scale=self.sigma(clients), size=len(mean))

    def event(self) -> CentralRelease:
        """Return the release's guarantee, (epsilon, delta)."""
        return CentralRelease(self.need_epsilon(), self.need_delta())

    def release(self) -> GaussianRelease:
        """Return the noise in units of the sensitivity, the same for any number of clients."""
        # Room for the accumulator's rounding, which grows with the dimension.
        apart = max(2.0 * self.radius * (1.0 + 1e-9), self._apart * (1.0 + 1e-15))
        return GaussianRelease(self.sigma(1) / apart)

    def mse(self, values: Floats) -> Floats:
        """Return per client n times the error of the mean, so that sum(mse) / n^2 is that error."""
        return np.full(len(values), self._share_of_error(max(1, len(values))))

    def worst_mse(self) -> float:
        """Return `mse` for `clients` clients; if they are unknown, for 1, which is the largest."""
        return self._share_of_error(self.clients or 1)

    def _share_of_error(self, n: int) -> float:
        return n * self.need_dimension() * self.sigma(n) ** 2

    @property
    def _apart(self) -> float:
        """How far two sums are apart at most, each rounded."""
        return 2.0 * self.radius + math.sqrt(self.need_dimension()) * self.wire.step

    @cached_property
    def _sigma_of_sum(self) -> float:
        return gaussian_sigma(self.need_epsilon(), self.need_delta(), self._apart)
