"""Device classes: kinds of clients that differ in speed, in latency and in when they are there."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.model import Model
from raydp_sim.population.availability import AVAILABILITY
from raydp_sim.population.availability.always import Always
from raydp_sim.population.availability.base import Availability, Mask
from raydp_sim.population.latency import LATENCY
from raydp_sim.population.latency.base import Latency
from raydp_sim.population.latency.constant import Constant
from raydp_sim.population.moments import Times
from raydp_sim.random import Floats, Stream
from raydp_sim.registry import piece


class DeviceClass(Model):
    """One kind of device.

    Fields:
        name: its name; every draw of the class is keyed by it.
        share: its part of the clients, in proportion to the other classes' shares.
        speed: divides the durations: 2 is twice as fast.
        latency: how long a report takes at speed 1.
        availability: when a client of the class can be reached.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]
    share: Annotated[float, Field(gt=0, le=1e9)]
    speed: Annotated[float, Field(ge=1e-6, le=1e6)] = 1.0
    latency: Annotated[Latency, *piece(LATENCY)] = Constant()
    availability: Annotated[Availability, *piece(AVAILABILITY)] = Always()

    def located(self, folder: Path) -> "DeviceClass":
        """Return the class with relative paths taken from the scenario file's folder."""
        return self.model_copy(update={"availability": self.availability.located(folder)})


@dataclass(frozen=True)
class Devices:
    """A population made of classes: each client's is drawn once, by its id.

    Example:
        >>> phone = DeviceClass(name="phone", share=3.0, latency=Constant(seconds=4.0))
        >>> server = DeviceClass(name="server", share=1.0, speed=8.0, latency=phone.latency)
        >>> mixed, ids = Devices((phone, server)), np.arange(1000)
        >>> 680 < int((mixed.members(ids, Stream(1)) == 0).sum()) < 820
        True
        >>> mixed.least_latency(), np.unique(mixed.durations(ids, Stream(2), Stream(1))).tolist()
        (0.5, [0.5, 4.0])
    """

    classes: tuple[DeviceClass, ...]

    def members(self, ids: NDArray[Any], root: Stream) -> NDArray[np.int64]:
        """Return which class each client is in, as an index."""
        ends = np.cumsum([one.share for one in self.classes])
        u = root.at("device").clients(ids).uniform("class")[:, 0]
        # Only the inner ends: the last class takes whatever rounding leaves over.
        return np.searchsorted(ends[:-1] / ends[-1], u, side="right").astype(np.int64)

    def available(self, ids: NDArray[Any], time: Times, root: Stream) -> Mask:
        """Ask each class about its clients."""

        def ask(one: DeviceClass, rows: NDArray[np.int64]) -> Mask:
            when = time[rows] if isinstance(time, np.ndarray) else time
            return one.availability.available(ids[rows], when, root.at("availability", one.name))

        return self._by_class(ids, root, ask, np.bool_)

    def durations(self, ids: NDArray[Any], ask: Stream, root: Stream) -> Floats:
        """Draw each client's duration by its class; `ask` keys the draws, `root` the classes."""

        def draw(one: DeviceClass, rows: NDArray[np.int64]) -> Floats:
            return one.latency.durations(ask.at("class", one.name).clients(ids[rows])) / one.speed

        return self._by_class(ids, root, draw, np.float64)

    def least_latency(self) -> float:
        """Return the infimum over all classes."""
        return min(one.latency.least() / one.speed for one in self.classes)

    def rate(self) -> float:
        """Return the mean of the classes' rates, weighted by their shares."""
        total = sum(one.share for one in self.classes)
        return sum(one.share * one.availability.rate() for one in self.classes) / total

    def _by_class(
        self,
        ids: NDArray[Any],
        root: Stream,
        ask: Callable[[DeviceClass, NDArray[np.int64]], NDArray[Any]],
        dtype: type,
    ) -> NDArray[Any]:
        out: NDArray[Any] = np.empty(len(ids), dtype)
        members = self.members(ids, root)
        for place, one in enumerate(self.classes):
            rows = np.flatnonzero(members == place)
            out[rows] = ask(one, rows)
        return out
