"""Priv: a direction from the half-sphere around an l2 vector, or from the other."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.parts.coin import ONE_COIN, Coin
from raydp_sim.mechanisms.parts.half_space import half_space, half_step
from raydp_sim.mechanisms.wires.vectors import Vectors
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream


class Priv(Mechanism):
    """Send a vector of fixed length on the client's side of the sphere, or on the other.

    Duchi, Jordan & Wainwright 2018, "Minimax optimal procedures for locally private estimation",
    the l2 sampling strategy; Girgis et al. 2021, Algorithm 4. The length is
    M = a sqrt(pi) Gamma((d+1)/2) / Gamma(d/2) K with a the radius and K = (e^epsilon_local + 1) /
    (e^epsilon_local - 1); Algorithm 4 prints it without a factor d, and its mean is then x / d.
    Unbiased, with the exact error M^2 - |x|^2.

    Fields:
        radius: of the l2 ball, > 0.

    Example:
        >>> round(Priv(epsilon_local=1.0, dimension=10, radius=1.0).length, 5)
        8.36505
    """

    kind: ClassVar[str] = "priv"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Duchi, Jordan & Wainwright 2018"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 1, "radius": 0.5},
        {"epsilon_local": 4.0, "dimension": 3, "radius": 2.0},
        {"epsilon_local": 2.0, "dimension": 64, "radius": 1.0},
    )

    radius: Positive

    @property
    def domain(self) -> Domain:
        """The l2 ball."""
        return Domain("l2", self.radius, self.need_dimension())

    @cached_property
    def coin(self) -> Coin:
        """What decides on the side."""
        return Coin(self.need_epsilon())

    @property
    def length(self) -> float:
        """M, the length of every report."""
        return self.radius * half_step(0.5 * self.need_dimension()) * self.coin.scale

    @cached_property
    def wire(self) -> Vectors:
        """One message of doubles."""
        return Vectors(self.need_dimension(), self.length)

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Draw the direction and give it its length."""
        sent = half_space(values, self.radius, self.coin, stream, self.length)
        return Messages(sent[:, None, :])

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean of the reports."""
        return self.wire.mean(counts)

    def event(self) -> LocalReport:
        """Return the coin's loss: the densities of the two sides are constant and e^epsilon apart.

        Only their side depends on the value.
        """
        return self.coin.event()

    def randomizer(self) -> str:
        """Name the report's law: a line through 0, then one coin."""
        return ONE_COIN

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""
        return np.asarray(self.worst_mse() - (values * values).sum(axis=1))

    def worst_mse(self) -> float:
        """Return the error at 0."""
        return self.length**2
