"""R^linf: sampled, quantised randomized response for vectors in an l_inf ball."""

from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.domain import Admitted
from raydp_sim.mechanisms.parts.blocks import check_coordinates
from raydp_sim.mechanisms.parts.budget import Calibration
from raydp_sim.mechanisms.parts.levels import Allocation, columns, level, weights
from raydp_sim.mechanisms.wires.bit_reports import (
    BitReports,
    BlockStyle,
    Decoder,
    bit_reports,
    stated_loss,
)
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream


class LInfVector(Mechanism):
    """Write each coordinate in binary levels and send each level by R^Bin.

    Girgis & Diggavi 2024, Theorems 4 and 5, with the corrections that a coordinate at the upper end
    keeps its bits at 1 and that the last level's budget follows its weight 2^-(levels-1). Unbiased;
    the error is exact for every input, see `mse`.

    Fields:
        radius: of the l_inf ball, > 0.
        coordinates: blocks per level s, 1..dimension; by default min(ceil(epsilon_local), d).
        levels: binary levels m, 1..50.
        allocation: how the budget is shared between levels: "seed", "equal" or "rdp".
        calibration: "tight", the least noise whose exact loss is epsilon_local, or "seed", v =
            epsilon_local, whose loss is smaller.
        blocks: "pad" to equal lengths, or "balanced" lengths without padding.
        decoder: "seed", or "centred", which counts an unsampled coordinate as 0 and not as -radius.

    Example:
        >>> scalar = {"dimension": 1, "radius": 0.5, "levels": 2, "calibration": "seed"}
        >>> round(LInfVector(epsilon_local=2.0, coordinates=1, **scalar).worst_mse(), 9)
        0.5625
    """

    kind: ClassVar[str] = "linf"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Girgis & Diggavi 2024, Algorithm 2"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 1, "radius": 0.5},
        {"epsilon_local": 2.0, "dimension": 1, "radius": 0.5, "levels": 3, "allocation": "equal"},
        {"epsilon_local": 2.0, "dimension": 4, "radius": 1.0},
        {"epsilon_local": 2.0, "dimension": 4, "radius": 2.0, "levels": 2, "calibration": "seed"},
        {"epsilon_local": 4.0, "dimension": 3, "radius": 1.0, "coordinates": 3, "levels": 2},
        {"epsilon_local": 3.0, "dimension": 5, "radius": 1.0, "coordinates": 4, "levels": 3},
        {
            "epsilon_local": 2.0,
            "dimension": 5,
            "radius": 1.0,
            "coordinates": 3,
            "levels": 2,
            "blocks": "balanced",
            "allocation": "rdp",
        },
        {
            "epsilon_local": 2.0,
            "dimension": 5,
            "radius": 1.0,
            "coordinates": 2,
            "levels": 3,
            "blocks": "balanced",
            "decoder": "centred",
        },
    )

    radius: Positive
    coordinates: Annotated[int, Field(ge=1)] | None = None
    levels: Annotated[int, Field(ge=1, le=50)] = 1
    calibration: Calibration = "tight"
    allocation: Allocation = "seed"
    blocks: BlockStyle = "pad"
    decoder: Decoder = "seed"

    @model_validator(mode="after")
    def _enough_coordinates(self) -> "LInfVector":
        check_coordinates(self.coordinates, self.dimension, "dimension")
        return self

    @property
    def domain(self) -> Domain:
        """The l_inf ball."""
        return Domain("linf", self.radius, self.need_dimension())

    @cached_property
    def wire(self) -> BitReports:
        """One message per level and block."""
        return bit_reports(
            self.need_epsilon(),
            self.need_dimension(),
            self.coordinates,
            self.blocks,
            self.decoder,
            self.calibration,
            self.levels,
            self.allocation,
        )

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Sample coordinates, quantise only those, and flip their bits."""
        return self.messages_of(Admitted(values, None), stream)

    def messages_of(self, admitted: Admitted, stream: ClientStream) -> Messages:
        """Look at what is sent, and at nothing else of the vectors."""
        if self.wire.picks and len(admitted):
            return Messages(self.wire.pick(admitted.given, self.radius, stream))
        values = np.ascontiguousarray(admitted.values)
        flat, dimension = values.reshape(-1), values.shape[1]

        def bits_at(rows: slice, coordinate: Counts) -> Floats:
            begin = np.arange(rows.start, rows.stop)[:, None] * dimension
            return columns(to_unit(flat.take(coordinate + begin), self.radius), self.levels)

        return Messages(self.wire.randomize(len(values), stream, bits_at))

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the mean of the vectors."""
        return from_levels(self.wire.estimates(counts), self.radius)

    def event(self) -> LocalReport:
        """Return the report's exact loss, rounded up."""
        return LocalReport(stated_loss(self.wire, self.need_epsilon()))

    def losses(self) -> tuple[float, ...]:
        """Return the loss of each message."""
        return self.wire.message_losses()

    def randomizer(self) -> str:
        """Name the message's law: a uniform index and a flipped bit."""
        return "rbin"

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error."""
        return (2.0 * self.radius) ** 2 * self.wire.variances(self._bits(values))

    def worst_mse(self) -> float:
        """Return the largest error over the ball: at a corner or (a = 1) between levels."""
        return (2.0 * self.radius) ** 2 * float(self.wire.worst(rounded=True).sum())

    def variance(self, mean: Floats, reports: int) -> Floats:
        """Return each coordinate's variance at this mean; of several levels, the worst there is.

        With one level it is a sum of what is linear in the value and of rounding, b (1 - b), of
        which the mean over clients is at most that at the mean.
        """
        if self.levels == 1:
            each = self.wire.variance([to_unit(mean, self.radius)], rounded=True)
        else:
            each = self.wire.worst(rounded=True)
        return np.asarray((2.0 * self.radius) ** 2 * each / reports)

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probabilities of `2 offset + bit` for each level and block."""
        return self.wire.laws(self._bits(values))

    def _bits(self, values: Floats) -> list[Floats]:
        return bits_of(to_unit(values, self.radius), self.levels)


def to_unit(values: Floats, radius: float) -> Floats:
    """Map [-radius, radius] to [0, 1]; what rounding leaves outside is clipped."""
    z = values + radius
    z *= 0.5 / radius
    return np.clip(z, 0.0, 1.0, out=z)


def bits_of(z: Floats, levels: int) -> list[Floats]:
    """Return every level's bits of numbers in [0, 1]."""
    return [level(z, k, levels) for k in range(levels)]


def from_levels(estimates: Floats, radius: float) -> Floats:
    """Map estimated bits back to [-radius, radius]."""
    mean = (weights(len(estimates))[:, None] * estimates).sum(axis=0)
    return np.asarray(2.0 * radius * mean - radius)
