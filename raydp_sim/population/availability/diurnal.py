"""Clients that follow the day where they live."""

import math
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raydp_sim.population.availability.base import Availability, Mask
from raydp_sim.population.moments import Times, numbers, uniforms
from raydp_sim.random import Floats, Stream


class Diurnal(Availability):
    """The chance of being there rises and falls over the local day, in time zones.

    At local hour h it is low + (high - low) (1 + cos(2 pi (h - peak) / 24)) / 2. A client keeps
    one coin for a period and is there while the chance of the moment is above it.

    Fields:
        low, high: least and greatest chance over the day.
        peak: local hour of the greatest chance, in [0, 24); phones are idle and charging at night.
        zones: hours that a client's local time is ahead, one of them drawn per client; by default
            any offset, uniform over the day.
        day: length of a day in seconds of virtual time; time 0 is midnight at offset 0.
        period: seconds for which a client keeps its coin; a 24th of the day by default.

    Example:
        >>> night = Diurnal(low=0.0, high=1.0, peak=2.0, zones=[0.0])
        >>> ids, hour = np.arange(1000), 3600.0
        >>> [int(night.available(ids, h * hour, Stream(1)).sum()) for h in (2, 14)]
        [1000, 0]
    """

    kind: ClassVar[str] = "diurnal"
    low: Annotated[float, Field(ge=0, le=1)]
    high: Annotated[float, Field(gt=0, le=1)]
    peak: Annotated[float, Field(ge=0, lt=24)] = 2.0
    zones: tuple[Annotated[float, Field(ge=-24, le=24)], ...] = ()
    day: Annotated[float, Field(ge=1e-3, le=1e12)] = 86400.0
    period: Annotated[float, Field(ge=1e-6, le=1e12)] | None = None

    @model_validator(mode="after")
    def _in_order(self) -> "Diurnal":
        if self.low > self.high:
            raise ValueError(f"low is {self.low:g}; it must be at most high, {self.high:g}")
        return self

    def available(self, ids: NDArray[Any], time: Times, stream: Stream) -> Mask:
        """Compare each client's coin of the period with its chance at the moment."""
        period = self.day / 24.0 if self.period is None else self.period
        coins = uniforms(stream, ids, numbers(ids, time, period), "coin")
        return np.asarray(coins < self.chance(ids, time, stream))

    def chance(self, ids: NDArray[Any], time: Times, stream: Stream) -> Floats:
        """Return each client's probability of being there at a moment."""
        # The remainder first: late in a long run the clock has few digits left for the hour.
        hour = np.mod(time, self.day) / self.day * 24.0 + self._offsets(ids, stream)
        swing = 0.5 + 0.5 * np.cos((hour - self.peak) * (math.pi / 12.0))
        return np.asarray(self.low + (self.high - self.low) * swing)

    def rate(self) -> float:
        """Return the mean over a day."""
        return (self.low + self.high) / 2.0

    @property
    def regions_named(self) -> tuple[str, ...]:
        """Number the time zones, where they were given."""
        return tuple(f"zone-{number}" for number in range(len(self.zones)))

    def region(self, ids: NDArray[Any], stream: Stream) -> NDArray[np.int64]:
        """Return the number of each client's time zone."""
        if not self.zones:
            return super().region(ids, stream)
        return stream.clients(ids).integers("zone", len(self.zones))[:, 0]

    def _offsets(self, ids: NDArray[Any], stream: Stream) -> Floats:
        if not self.zones:
            return 24.0 * stream.clients(ids).uniform("zone")[:, 0]
        return np.asarray(self.zones)[self.region(ids, stream)]
