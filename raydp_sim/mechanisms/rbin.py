"""R^Bin: sampled randomized response for binary vectors."""

from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages
from raydp_sim.mechanisms.parts.blocks import check_coordinates
from raydp_sim.mechanisms.parts.budget import Calibration
from raydp_sim.mechanisms.wires.bit_reports import (
    BitReports,
    BlockStyle,
    Decoder,
    bit_reports,
    stated_loss,
)
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream


class BinaryVector(Mechanism):
    """Per block of coordinates, send one of them at random by randomized response.

    Girgis & Diggavi 2024, Theorems 2 and 3. Unbiased; with blocks of length a and noise V per bit a
    client's error is (a - 1) ||b||^2 + d a V.

    Fields:
        coordinates: number of blocks s, 1..dimension; by default min(ceil(epsilon_local), d).
        calibration: "tight", the least noise whose exact loss is epsilon_local, or "seed", v =
            epsilon_local, whose loss is smaller.
        blocks: "pad" to equal lengths, or "balanced" lengths without padding.
        decoder: "seed", or "centred", which counts an unsampled bit as 1/2 and not as 0.

    Example:
        >>> settings = {"dimension": 10, "coordinates": 4, "calibration": "seed"}
        >>> round(BinaryVector(epsilon_local=2.0, **settings).worst_mse(), 6)
        140.0
    """

    kind: ClassVar[str] = "rbin"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Girgis & Diggavi 2024, Algorithm 1"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 1},
        {"epsilon_local": 2.0, "dimension": 4},
        {"epsilon_local": 2.0, "dimension": 4, "coordinates": 4, "calibration": "seed"},
        {"epsilon_local": 3.0, "dimension": 5, "coordinates": 4},
        {"epsilon_local": 2.0, "dimension": 5, "coordinates": 3, "blocks": "balanced"},
        {"epsilon_local": 2.0, "dimension": 4, "coordinates": 2, "decoder": "centred"},
        {
            "epsilon_local": 2.0,
            "dimension": 5,
            "coordinates": 2,
            "blocks": "balanced",
            "decoder": "centred",
        },
    )

    coordinates: Annotated[int, Field(ge=1)] | None = None
    calibration: Calibration = "tight"
    blocks: BlockStyle = "pad"
    decoder: Decoder = "seed"

    @model_validator(mode="after")
    def _enough_coordinates(self) -> "BinaryVector":
        check_coordinates(self.coordinates, self.dimension, "dimension")
        return self

    @property
    def domain(self) -> Domain:
        """Binary vectors."""
        return Domain("binary", 1.0, self.need_dimension())

    @cached_property
    def wire(self) -> BitReports:
        """One message per block."""
        return bit_reports(
            self.need_epsilon(),
            self.need_dimension(),
            self.coordinates,
            self.blocks,
            self.decoder,
            self.calibration,
        )

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Sample one coordinate per block and flip its bit."""

        def bits_at(rows: slice, coordinate: Counts) -> Floats:
            return np.take_along_axis(values[rows], coordinate, axis=1)

        return Messages(self.wire.randomize(len(values), stream, bits_at))

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the mean of the vectors."""
        return np.asarray(self.wire.estimates(counts)[0])

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
        return self.wire.variances([values])

    def worst_mse(self) -> float:
        """Return the error at the vector of ones, the largest there is."""
        return float(self.wire.worst(rounded=False).sum())

    def variance(self, mean: Floats, reports: int) -> Floats:
        """Return each coordinate's variance, which is linear in its bits, at these means."""
        return self.wire.variance([np.clip(mean, 0.0, 1.0)], rounded=False) / reports

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probabilities of `2 offset + bit` for each block."""
        return self.wire.laws([values])
