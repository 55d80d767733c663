"""Gaussian noise at the client."""

from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.wires.vectors import Vectors
from raydp_sim.privacy.curves.gaussian import gaussian_sigma
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream

# 53-bit uniforms cannot give a standard normal variable beyond 8.3.
_TAIL = 9.0


class GaussianVector(Mechanism):
    """Add normal noise to every coordinate, the least that gives (epsilon_local, delta_local)-LDP.

    Balle & Wang 2018, Theorem 8 and Algorithm 1: two values of the l2 ball are at most 2 radius
    apart. Unbiased, with error d sigma^2 for every input.

    Fields:
        radius: of the l2 ball, > 0.
        delta_local: in (0, 1), with epsilon_local; a target's delta is shared out instead.

    Example:
        >>> settings = {"dimension": 1, "radius": 0.5, "delta_local": 1e-5}
        >>> round(GaussianVector(epsilon_local=1.0, **settings).sigma, 4)
        3.7306
    """

    kind: ClassVar[str] = "gaussian"
    guarantee: ClassVar[Literal["pure", "approximate", "shuffled-only"]] = "approximate"
    tight: ClassVar[bool] = True
    normal: ClassVar[bool] = True
    delta_field: ClassVar[str | None] = "delta_local"
    source: ClassVar[str] = "Balle & Wang 2018"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "delta_local": 1e-5, "dimension": 1, "radius": 0.5},
        {"epsilon_local": 4.0, "delta_local": 1e-3, "dimension": 3, "radius": 2.0},
    )

    radius: Positive
    delta_local: Annotated[float, Field(gt=0, lt=1)] | None = None

    @property
    def domain(self) -> Domain:
        """The l2 ball."""
        return Domain("l2", self.radius, self.need_dimension())

    @cached_property
    def sigma(self) -> float:
        """Standard deviation of the noise."""
        return gaussian_sigma(self.need_epsilon(), self.need_delta(), 2.0 * self.radius)

    @cached_property
    def wire(self) -> Vectors:
        """One message of doubles."""
        return Vectors(self.need_dimension(), self.radius + _TAIL * self.sigma)

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Add the noise."""
        noisy = stream.normal("noise", values.shape[1])
        noisy *= self.sigma
        noisy += values
        return Messages(noisy[:, None, :])

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean of the reports."""
        return self.wire.mean(counts)

    def event(self) -> LocalReport:
        """Return the report's guarantee, (epsilon_local, delta_local)."""
        return LocalReport(self.need_epsilon(), self.need_delta())

    def losses(self) -> None:
        """State no loss: no message has one that is the largest."""

    def noise_multiplier(self) -> float:
        """Return sigma over the ball's diameter, rounded down."""
        return self.sigma / (2.0 * self.radius) * (1.0 - 1e-15)

    def mse(self, values: Floats) -> Floats:
        """Return the variance of the noise."""
        return np.full(len(values), self.worst_mse())

    def worst_mse(self) -> float:
        """Return the variance of the noise."""
        return self.need_dimension() * self.sigma**2
