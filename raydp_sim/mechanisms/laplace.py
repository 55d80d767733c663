"""Laplace noise at the client."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.wires.vectors import Vectors
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream

# 53-bit uniforms cannot give a standard Laplace variable beyond 54 log 2.
_TAIL = 38.0


class LaplaceVector(Mechanism):
    """Add Laplace noise of scale 2 radius / epsilon_local to every coordinate.

    Dwork et al. 2006, "Calibrating noise to sensitivity", Theorem 1: two values of the l1 ball are
    at most 2 radius apart. Unbiased, with error 2 d scale^2 for every input.

    Fields:
        radius: of the l1 ball, > 0 (for scalars, of the interval).

    Example:
        >>> LaplaceVector(epsilon_local=2.0, dimension=1, radius=0.5).worst_mse()
        0.5
    """

    kind: ClassVar[str] = "laplace"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Dwork et al. 2006"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 1, "radius": 0.5},
        {"epsilon_local": 4.0, "dimension": 3, "radius": 2.0},
    )

    radius: Positive

    @property
    def domain(self) -> Domain:
        """The l1 ball."""
        return Domain("l1", self.radius, self.need_dimension())

    @property
    def scale(self) -> float:
        """Scale of the noise."""
        return 2.0 * self.radius / self.need_epsilon()

    @cached_property
    def wire(self) -> Vectors:
        """One message of doubles."""
        return Vectors(self.need_dimension(), self.radius + _TAIL * self.scale)

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Add the noise."""
        noisy = stream.laplace("noise", values.shape[1])
        noisy *= self.scale
        noisy += values
        return Messages(noisy[:, None, :])

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean of the reports."""
        return self.wire.mean(counts)

    def event(self) -> LocalReport:
        """Return the report's loss, `epsilon_local`."""
        return LocalReport(self.need_epsilon())

    def randomizer(self) -> str:
        """Name the law, which is the same in all dimensions."""
        return "laplace"

    def mse(self, values: Floats) -> Floats:
        """Return the variance of the noise."""
        return np.full(len(values), self.worst_mse())

    def worst_mse(self) -> float:
        """Return the variance of the noise."""
        return 2.0 * self.need_dimension() * self.scale**2
