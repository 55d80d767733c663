"""R^linf on values clipped to a range that is already known."""

from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from raydp_sim.mechanisms.base import Counts, Domain, Floats, Mechanism, Messages, Positive
from raydp_sim.mechanisms.linf import LInfVector
from raydp_sim.mechanisms.parts.blocks import check_coordinates
from raydp_sim.mechanisms.parts.budget import Calibration
from raydp_sim.mechanisms.parts.levels import Allocation
from raydp_sim.mechanisms.parts.rotation import padded_dimension
from raydp_sim.mechanisms.wires.bit_reports import BitReports, BlockStyle, Decoder
from raydp_sim.privacy.events import LocalReport
from raydp_sim.random import ClientStream, Stream


class ProjectedMean(Mechanism):
    """Clip each coordinate to within `reach` of a public centre, and send the rest by R^linf.

    The second stage of user-level mean estimation (Girgis 2023, dissertation, Algorithm 3.7.4); the
    task "user-mean" finds centre and reach. The loss holds for every input, and the noise is that
    of the width 2 reach, however large the ball is. Given that nothing is clipped the estimate is
    unbiased and `mse` is exact; what is clipped pulls it towards the centre, and `Messages.clipped`
    counts the coordinates that were.

    Fields:
        radius: of the l_inf ball that the values lie in, > 0.
        centre: of the range, one number for all coordinates or one for each.
        reach: of the range to each side, > 0; by default the radius.
        coordinates, levels, allocation, calibration, blocks, decoder: as for "linf".

    Example:
        >>> near = {"dimension": 1, "radius": 10.0, "centre": 4.0, "reach": 0.5, "levels": 2}
        >>> round(ProjectedMean(epsilon_local=2.0, calibration="seed", **near).worst_mse(), 9)
        0.5625
    """

    kind: ClassVar[str] = "projected-mean"
    source: ClassVar[str] = "Girgis 2023, section 3.7, Algorithm 3.7.4"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "dimension": 1, "radius": 0.5},
        {"epsilon_local": 2.0, "dimension": 1, "radius": 0.5, "centre": 0.3, "reach": 0.8},
        {
            "epsilon_local": 2.0,
            "dimension": 3,
            "radius": 1.0,
            "centre": [0.5, -1.0, 0.0],
            "reach": 2.0,
            "levels": 2,
            "decoder": "centred",
        },
    )

    radius: Positive
    centre: float | list[float] = 0.0
    reach: Positive | None = None
    coordinates: Annotated[int, Field(ge=1)] | None = None
    levels: Annotated[int, Field(ge=1, le=50)] = 1
    calibration: Calibration = "tight"
    allocation: Allocation = "seed"
    blocks: BlockStyle = "pad"
    decoder: Decoder = "seed"

    @model_validator(mode="after")
    def _fits(self) -> "ProjectedMean":
        if self.dimension is not None:
            # The task that searches for the centre rotates vectors, which may pad them.
            full = padded_dimension("hadamard", self.dimension)
            check_coordinates(self.coordinates, full, "rotated dimension")
        each = self.centre if isinstance(self.centre, list) else []
        if each and self.dimension is not None and len(each) != self.dimension:
            raise ValueError(f"centre has {len(each)} numbers for dimension {self.dimension}")
        return self

    @property
    def domain(self) -> Domain:
        """The l_inf ball of all values; those beyond the range are clipped, not refused."""
        return Domain("linf", self.radius, self.need_dimension())

    @property
    def wire(self) -> BitReports:
        """One message per level and block."""
        return self._inner.wire

    def messages(self, values: Floats, stream: ClientStream) -> Messages:
        """Clip and randomize."""
        offset = values - np.asarray(self.centre)
        inside = self._clipped(offset)
        sent = self._inner.messages(inside, stream)
        return Messages(sent.payload, int(np.count_nonzero(inside != offset)))

    def decode(self, counts: Counts, stream: Stream) -> Floats:
        """Estimate the mean of the clipped vectors."""
        return np.asarray(self._inner.decode(counts, stream) + np.asarray(self.centre))

    def event(self) -> LocalReport:
        """Return the report's exact loss, rounded up."""
        return self._inner.event()

    def losses(self) -> tuple[float, ...]:
        """Return the loss of each message."""
        return self._inner.losses()

    def randomizer(self) -> str:
        """Name the message's law: a uniform index and a flipped bit."""
        return self._inner.randomizer()

    def mse(self, values: Floats) -> Floats:
        """Return each client's exact error about its clipped value."""
        return self._inner.mse(self._clipped(values - np.asarray(self.centre)))

    def worst_mse(self) -> float:
        """Return the largest error over the range."""
        return self._inner.worst_mse()

    @property
    def worst_mse_is(self) -> Literal["exact", "bound"]:
        """A bound: the range may reach beyond the ball."""
        return "bound"

    @property
    def bias(self) -> str:
        """Clipping biases where the range does not hold the whole ball."""
        centres = np.abs(np.atleast_1d(self.centre))
        if float(centres.max()) + self.radius <= (self.reach or self.radius):
            return ""
        return "values beyond the range are clipped, which pulls it towards the centre"

    def laws(self, values: Floats) -> list[Floats]:
        """Return the probabilities of `2 offset + bit` for each level and block."""
        return self._inner.laws(self._clipped(values - np.asarray(self.centre)))

    def _clipped(self, offset: Floats) -> Floats:
        reach = self._inner.radius
        return np.clip(offset, -reach, reach)

    @cached_property
    def _inner(self) -> LInfVector:
        return LInfVector(
            epsilon_local=self.need_epsilon(),
            dimension=self.need_dimension(),
            radius=self.radius if self.reach is None else self.reach,
            coordinates=self.coordinates,
            levels=self.levels,
            calibration=self.calibration,
            allocation=self.allocation,
            blocks=self.blocks,
            decoder=self.decoder,
        )
