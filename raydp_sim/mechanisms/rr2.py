"""Binary randomized response."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from pydantic import model_validator

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages
from raydp_sim.mechanisms.wires.bit_reports import BitReports, bit_reports, stated_loss
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream


class RandomizedResponse(Mechanism):
    """Send one bit, flipped with probability 1 / (1 + e^epsilon_local).

    Warner 1965; Girgis & Diggavi 2024, Theorem 1. The decoded bit (bit - p) / (1 - 2 p) is unbiased
    with variance p (1 - p) / (1 - 2 p)^2 = 1 / (2 sinh(epsilon_local / 2))^2 for both inputs.

    Example:
        >>> round(RandomizedResponse(epsilon_local=1.0).worst_mse(), 6)
        0.920674
    """

    kind: ClassVar[str] = "2rr"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Warner 1965"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0},
        {"epsilon_local": 0.1, "dimension": 1},
        {"epsilon_local": 6.0, "dimension": 1},
    )

    @model_validator(mode="after")
    def _single(self) -> "RandomizedResponse":
        if self.dimension not in (None, 1):
            raise ValueError(
                f"dimension is {self.dimension}; '2rr' takes one bit, so it must be 1 (see 'rbin')"
            )
        return self

    @property
    def domain(self) -> Domain:
        """One bit."""
        return Domain("binary", 1.0, 1)

    @cached_property
    def wire(self) -> BitReports:
        """One message of one bit."""
        return bit_reports(self.need_epsilon(), 1, 1, "pad", "seed", "tight")

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Flip each client's bit."""
        sent = self.wire.randomize(len(values), stream, lambda rows, _: values[rows])
        return Messages(sent)

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the mean of the bits."""
        return np.asarray(self.wire.estimates(counts)[0])

    def event(self) -> LocalReport:
        """Return the report's loss, which equals `epsilon_local` as far as 53-bit draws reach."""
        exact = self.need_epsilon()
        return LocalReport(max(exact, stated_loss(self.wire, exact)))

    def losses(self) -> tuple[float, ...]:
        """Return the loss of each message."""
        return self.wire.message_losses()

    def randomizer(self) -> str:
        """Name the message's law: one flipped bit."""
        return "2rr"

    def mse(self, values: Floats) -> Floats:
        """Return the variance of a decoded bit, the same for both inputs."""
        return np.full(len(values), self.worst_mse())

    def worst_mse(self) -> float:
        """Return the variance of a decoded bit."""
        return float(self.wire.noise[0])

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probabilities of 0 and 1."""
        return self.wire.laws([values])
