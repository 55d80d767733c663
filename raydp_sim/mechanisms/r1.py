"""R_1: one entry of the Hadamard transform of an l1 vector, as a noisy sign."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.parts.hadamard import FACTORED, factored, fwht, sampled
from raydp_sim.mechanisms.parts.rotation import padded_dimension
from raydp_sim.mechanisms.wires.bit_reports import BitReports, bit_reports, stated_loss
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream


class R1(Mechanism):
    """Send a uniform index j of the Hadamard transform H x and the sign of its entry, by 2RR.

    Girgis et al. 2021, Algorithm 2 and Theorem 5. With a the radius and K = (e^epsilon_local + 1) /
    (e^epsilon_local - 1), the sign is +1 with probability 1/2 + (H x)_j / (2 a K) and is decoded to
    sign a K H[:d, j]. Unbiased, with the exact error a^2 d K^2 - |x|_2^2: zeros that pad x to a
    power of two cost bits, but no error. The likelihood ratio of every single pair (j, sign) is at
    most e^epsilon_local, attained by x and -x at a corner of the ball.

    Fields:
        radius: of the l1 ball, > 0.

    Example:
        >>> round(R1(epsilon_local=1.0, dimension=3, radius=1.0).worst_mse(), 4)
        14.0481
    """

    kind: ClassVar[str] = "r1"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Girgis et al. 2021, Algorithm 2"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 1, "radius": 0.5},
        {"epsilon_local": 0.2, "dimension": 4, "radius": 1.0},
        {"epsilon_local": 3.0, "dimension": 5, "radius": 2.0},
    )

    radius: Positive

    @property
    def domain(self) -> Domain:
        """The l1 ball."""
        return Domain("l1", self.radius, self.need_dimension())

    @cached_property
    def wire(self) -> BitReports:
        """One message 2 j + bit, the bit 1 for the sign +1."""
        full = padded_dimension("hadamard", self.need_dimension())
        return bit_reports(self.need_epsilon(), full, 1, "pad", "centred", "tight")

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Draw the index, compute only that entry of the transform, and flip its sign."""
        ones = np.ones(self.wire.blocks.dimension)

        def bits_at(rows: slice, index: Counts) -> Floats:
            if len(ones) <= FACTORED:
                return self._bits(factored(values[rows], ones, index))
            return self._bits(sampled(values[rows], ones, index, 1))

        return Messages(self.wire.randomize(len(values), stream, bits_at))

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the transform's mean and turn it back."""
        signs = 2.0 * self.wire.estimates(counts) - 1.0
        back = fwht(signs)[0, : self.need_dimension()]
        return np.asarray(self.radius / signs.shape[1] * back)

    def event(self) -> LocalReport:
        """Return the report's exact loss, rounded up."""
        return LocalReport(stated_loss(self.wire, self.need_epsilon()))

    def randomizer(self) -> str:
        """Name the message's law: a uniform index and a flipped bit.

        The law is affine in x, so it is a mixture of the laws at the corners of the ball, whose
        bits are rows of H or their complements: inputs of R^Bin.
        """
        return "rbin"

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""
        return np.asarray(self.worst_mse() - (values * values).sum(axis=1))

    def worst_mse(self) -> float:
        """Return the error at 0."""
        return self.radius**2 * self.need_dimension() / float(self.wire.gaps[0]) ** 2

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probabilities of 2 j + bit."""
        wide = np.zeros((len(values), self.wire.blocks.dimension))
        wide[:, : values.shape[1]] = values
        return self.wire.laws([self._bits(fwht(wide))])

    def _bits(self, transformed: Floats) -> Floats:
        return np.clip(0.5 + transformed * (0.5 / self.radius), 0.0, 1.0)
