"""R_p: a client of an lp ball runs R_1 or R_2, at random."""

import math
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from raydp_sim.mechanisms.base import (
    LIMITS,
    Counts,
    Domain,
    Floats,
    Mechanism,
    Messages,
    Positive,
)
from raydp_sim.mechanisms.parts.coin import ONE_COIN
from raydp_sim.mechanisms.parts.quantiser import Mode
from raydp_sim.mechanisms.r1 import R1
from raydp_sim.mechanisms.r2 import R2
from raydp_sim.mechanisms.wires.mixed_reports import MixedReports
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream


class Rp(Mechanism):
    """Run 'r1' with probability `mixture` and else 'r2', each on a ball that holds the lp ball.

    Girgis et al. 2021, Corollary 1. The lp ball of radius a lies in the l1 ball of radius
    a d^(1 - 1/p), not in that of radius a, and in the l2 ball of radius a max(d^(1/2 - 1/p), 1).
    The choice is independent of the data and both keep epsilon_local. Unbiased, and the exact error
    is the mixture's second moment less |x|^2. mixture = 1 with power 1 is 'r1', mixture = 0 with
    power 2 is 'r2'. For the l_inf ball use 'rinf'.

    Fields:
        radius: of the lp ball, > 0.
        power: p, at least 1 and finite.
        mixture: probability of 'r1', in [0, 1]: more means fewer bits and a larger error.
        quantiser: of 'r2'; see 'quan'.

    Example:
        >>> mechanism = Rp(epsilon_local=1.0, dimension=8, radius=1.0, power=1.0, mixture=0.25)
        >>> mechanism.bits, mechanism.expected_bits
        (20, 16.25)
    """

    kind: ClassVar[str] = "rp"
    source: ClassVar[str] = "Girgis et al. 2021, Corollary 1"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 1, "radius": 0.5, "power": 3.0},
        {"epsilon_local": 2.0, "dimension": 3, "radius": 2.0, "power": 1.5, "mixture": 1.0},
        {"epsilon_local": 0.5, "dimension": 4, "radius": 1.0, "power": 4.0, "quantiser": "seed"},
        {
            "epsilon_local": 3.0,
            "dimension": 5,
            "radius": 1.0,
            "power": 2.0,
            "mixture": 0.2,
            "quantiser": "simq",
        },
    )

    radius: Positive
    power: Annotated[float, Field(ge=1, allow_inf_nan=False)]
    mixture: Annotated[float, Field(ge=0, le=1)] = 0.5
    quantiser: Mode = "iid"

    @model_validator(mode="after")
    def _within_limits(self) -> "Rp":
        if self.dimension is not None:
            largest = self.radius * self.dimension ** (1.0 - 1.0 / self.power)
            if largest > LIMITS[1]:
                raise ValueError(
                    f"radius is {self.radius:g}; the l1 ball around this lp ball has radius "
                    f"{largest:g}, and it must not exceed {LIMITS[1]:g}: scale the data"
                )
        return self

    @property
    def domain(self) -> Domain:
        """The lp ball."""
        return Domain("lp", self.radius, self.need_dimension(), self.power)

    @cached_property
    def first(self) -> R1:
        """R_1 on the l1 ball around the lp ball."""
        d = self.need_dimension()
        radius = self.radius * d ** (1.0 - 1.0 / self.power)
        return R1(epsilon_local=self.need_epsilon(), dimension=d, radius=radius)

    @cached_property
    def second(self) -> R2:
        """R_2 on the l2 ball around the lp ball."""
        d = self.need_dimension()
        radius = self.radius * max(d ** (0.5 - 1.0 / self.power), 1.0)
        same = {"epsilon_local": self.need_epsilon(), "dimension": d}
        return R2(radius=radius, quantiser=self.quantiser, **same)

    @cached_property
    def wire(self) -> MixedReports:
        """A flag, then R_1's symbol or R_2's histogram."""
        return MixedReports(self.first.wire.alphabet, self.second.wire, self.mixture)

    @property
    def expected_bits(self) -> float:
        """Mean number of bits of a report without padding."""
        return self.wire.expected_bits

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Toss for R_1 or R_2 and run it."""
        chosen = stream.uniform("mixture")[:, 0] < self.mixture
        sent = np.zeros((len(values), 1, 1 + values.shape[1]), self.wire.dtype)
        one, two = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        symbols = self.first.messages(values[one], stream.take(one)).payload
        # Widened before the 1 is added: the largest symbol may fill its type.
        sent[one, 0, 0] = symbols[:, 0].astype(np.int64) + 1
        sent[two, 0, 1:] = self.second.messages(values[two], stream.take(two)).payload[:, 0]
        return Messages(sent)

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Average what both kinds of report decode to."""
        symbols, summed, reports = self.wire.parts(counts)
        received = int(symbols.sum())
        first = self.first.decode(symbols[None], stream) * received
        unit = self.second.length / math.sqrt(self.need_dimension())
        return np.asarray((first + unit * summed) / max(1, reports))

    def event(self) -> LocalReport:
        """Return the loss of R_1 and R_2, which is the same."""
        return self.second.event()

    def randomizer(self) -> str:
        """Name the report's law: which of the two, and all but its sign, then one coin."""
        return ONE_COIN

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""
        return np.asarray(self.worst_mse() - (values * values).sum(axis=1))

    def worst_mse(self) -> float:
        """Return the error at 0: the mixture of the two second moments."""
        first, second = self.first.worst_mse(), self.second.worst_mse()
        return self.mixture * first + (1.0 - self.mixture) * second
