"""R_inf: one coordinate of an l_inf vector, as a noisy sign."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.domain import Admitted
from raydp_sim.mechanisms.linf import to_unit
from raydp_sim.mechanisms.wires.bit_reports import BitReports, bit_reports, stated_loss
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream


class RInf(Mechanism):
    """Send a uniform index j and the sign of x_j, rounded at random and flipped by 2RR.

    Girgis et al. 2021, Algorithm 6 and Theorem 7. With a the radius and K = (e^epsilon_local + 1) /
    (e^epsilon_local - 1), the sign is +1 with probability 1/2 + x_j / (2 a K) and is decoded to
    sign a d K e_j. Unbiased, with the exact error a^2 d^2 K^2 - |x|_2^2. It is 'linf' with one
    coordinate, one level and the centred decoder.

    Fields:
        radius: of the l_inf ball, > 0.

    Example:
        >>> round(RInf(epsilon_local=1.0, dimension=3, radius=1.0).worst_mse(), 4)
        42.1442
    """

    kind: ClassVar[str] = "rinf"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Girgis et al. 2021, Algorithm 6"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 1, "radius": 0.5},
        {"epsilon_local": 0.2, "dimension": 4, "radius": 1.0},
        {"epsilon_local": 3.0, "dimension": 5, "radius": 2.0},
    )

    radius: Positive

    @cached_property
    def domain(self) -> Domain:
        """The l_inf ball."""
        return Domain("linf", self.radius, self.need_dimension())

    @cached_property
    def wire(self) -> BitReports:
        """One message 2 j + bit, the bit 1 for the sign +1."""
        epsilon, dimension = self.need_epsilon(), self.need_dimension()
        return bit_reports(epsilon, dimension, 1, "pad", "centred", "tight")

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Draw the index, and round and flip the sign there."""
        return self.messages_of(Admitted(values, None), stream)

    def messages_of(self, admitted: Admitted, stream: ClientStream) -> Messages:
        """Look at what is sent, and at nothing else of the vector."""
        if self.wire.picks and len(admitted):
            return Messages(self.wire.pick(admitted.given, self.radius, stream))

        def bits_at(rows: slice, index: Counts) -> Floats:
            return to_unit(admitted.at(rows, index), self.radius)

        return Messages(self.wire.randomize(len(admitted), stream, bits_at))

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the mean of the vectors."""
        return np.asarray(self.radius * (2.0 * self.wire.estimates(counts)[0] - 1.0))

    def event(self) -> LocalReport:
        """Return the report's exact loss, rounded up."""
        return LocalReport(stated_loss(self.wire, self.need_epsilon()))

    def randomizer(self) -> str:
        """Name the message's law: a uniform index and a flipped bit, rounded at random before."""
        return "rbin"

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""
        return np.asarray(self.worst_mse() - (values * values).sum(axis=1))

    def worst_mse(self) -> float:
        """Return the error at 0."""
        return (self.radius * self.need_dimension() / float(self.wire.gaps[0])) ** 2

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probabilities of 2 j + bit."""
        return self.wire.laws([to_unit(values, self.radius)])
