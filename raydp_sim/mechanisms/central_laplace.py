"""Laplace noise at a trusted aggregator."""

from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.wires.vectors import Vectors
from raydp_sim.privacy.events import CentralRelease, LaplaceRelease
from raydp_sim.random import ClientStream, Stream


class CentralLaplace(Mechanism):
    """Release the exact mean of n vectors plus Laplace noise of scale 2 radius / (n epsilon).

    Dwork et al. 2006, Theorem 1, under replacement of one client's value. The clients trust the
    aggregator: they send their values as they are, so there is no local guarantee.

    Fields:
        radius: of the l1 ball, > 0.
        epsilon: guarantee of one release. Exactly one of this and `target`.

    Example:
        >>> CentralLaplace(epsilon=2.0, dimension=1, radius=0.5).mse(np.zeros((10, 1)))[0].round(6)
        np.float64(0.05)
    """

    kind: ClassVar[str] = "central-laplace"
    where: ClassVar[Literal["client", "aggregator"]] = "aggregator"
    tight: ClassVar[bool] = True
    epsilon_field: ClassVar[str] = "epsilon"
    source: ClassVar[str] = "Dwork et al. 2006"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon": 1.0, "dimension": 1, "radius": 0.5},
        {"epsilon": 0.5, "dimension": 3, "radius": 2.0},
    )

    radius: Positive
    epsilon: Positive | None = None

    @property
    def domain(self) -> Domain:
        """The l1 ball."""
        return Domain("l1", self.radius, self.need_dimension())

    @cached_property
    def wire(self) -> Vectors:
        """One message of doubles."""
        return Vectors(self.need_dimension(), self.radius)

    def scale(self, clients: int) -> float:
        """Return the scale of the noise on the mean of so many clients.

        Rounding to the accumulator's step can part two sums by one more step per coordinate.
        """
        apart = 2.0 * self.radius + self.need_dimension() * self.wire.step
        return apart / (clients * self.need_epsilon())

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Send the values."""
        return Messages(values[:, None, :])

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Return the mean plus noise; with no client there is nothing to release, so 0."""
        mean, clients = self.wire.mean(counts), int(counts[-1])
        if clients == 0:
            return mean
        return mean + stream.generator().laplace(scale=self.scale(clients), size=len(mean))

    def event(self) -> CentralRelease:
        """Return the release's guarantee, `epsilon`."""
        return CentralRelease(self.need_epsilon())

    def release(self) -> LaplaceRelease:
        """Return the release as Laplace noise, whose divergences are below its epsilon."""
        return LaplaceRelease(self.need_epsilon())

    def mse(self, values: Floats) -> Floats:
        """Return per client n times the error of the mean, so that sum(mse) / n^2 is that error."""
        return np.full(len(values), self._share_of_error(max(1, len(values))))

    def worst_mse(self) -> float:
        """Return `mse` for `clients` clients; if they are unknown, for 1, which is the largest."""
        return self._share_of_error(self.clients or 1)

    def _share_of_error(self, n: int) -> float:
        return 2.0 * n * self.need_dimension() * self.scale(n) ** 2
