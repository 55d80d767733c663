"""The scenario file's section `population`: one place to ask who is there and how long work takes.

Whether the clients are of one kind or of several device classes is known here and nowhere else.
"""

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator, model_validator

from raydp_sim.datasets import DATASETS
from raydp_sim.datasets.base import Dataset
from raydp_sim.datasets.labelled import Labelled
from raydp_sim.datasets.pooled import PooledData
from raydp_sim.model import Model
from raydp_sim.population.availability import AVAILABILITY
from raydp_sim.population.availability.always import Always
from raydp_sim.population.availability.base import Availability, Mask
from raydp_sim.population.devices import DeviceClass, Devices
from raydp_sim.population.latency import LATENCY
from raydp_sim.population.latency.base import Latency
from raydp_sim.population.latency.constant import Constant
from raydp_sim.population.moments import Times
from raydp_sim.random import Floats, Ids, Stream
from raydp_sim.registry import piece

MOST_GROUPS = 64  # more than these are not distinguished in tables


class Population(Model):
    """Who the clients are.

    Fields:
        clients: how many there are.
        data: what each holds.
        availability: when each can be reached.
        latency: seconds of virtual time from an ask to its report.
        dropout: chance that a client that was asked never reports.
        duplicates: chance that a report arrives a second time.
        classes: device classes, each with an availability and a latency of its own; those of the
            population must then be left out.
        group_data: what the clients of a group hold instead of `data`, by its name: that of a
            class, or `region-0` and so on of regions that fail and `zone-0` of time zones. Whoever
            is absent then biases what is learned.
    """

    clients: Annotated[int, Field(ge=1, lt=2**32)]
    data: Annotated[Dataset, *piece(DATASETS)]
    availability: Annotated[Availability, *piece(AVAILABILITY)] = Always()
    latency: Annotated[Latency, *piece(LATENCY)] = Constant()
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    duplicates: Annotated[float, Field(ge=0, lt=1)] = 0.0
    classes: tuple[DeviceClass, ...] = ()
    group_data: dict[str, Annotated[Dataset, *piece(DATASETS)]] = {}  # noqa: RUF012  # pydantic's

    @field_validator("data", "group_data")
    @classmethod
    def _dealt(cls, given: Any, info: ValidationInfo) -> Any:
        """Tell the data how many clients there are, which was checked before."""
        clients = info.data.get("clients")
        if clients is None:
            return given  # refused by itself
        if isinstance(given, Dataset):
            return given.among(clients)
        return {name: data.among(clients) for name, data in given.items()}

    @model_validator(mode="after")
    def _one_kind_or_classes(self) -> "Population":
        if not self.classes:
            return self
        for name, default in (("availability", Always()), ("latency", Constant())):
            if getattr(self, name) != default:
                raise ValueError(
                    f"{name} is given for all clients, and so are classes; leave it out and give "
                    "it in each class"
                )
        names = [one.name for one in self.classes]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"classes has {name!r} twice; give every class a name of its own")
        for one in self.classes:
            if one.availability.needs_influence:
                raise ValueError(
                    f"classes has an availability in {one.name!r} that looks at all clients; give "
                    "it as the population's own, without classes"
                )
        return self

    @model_validator(mode="after")
    def _groups_are_known(self) -> "Population":
        known = self.groups
        for name in self.group_data:
            if name not in known:
                there = f"there are {', '.join(known[:8])}" if known else "there are none"
                raise ValueError(f"group_data has {name!r}, which is no class or region: {there}")
        return self

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The names of the device classes, or else of the regions; none if there is but one."""
        named = tuple(one.name for one in self.classes) or self.availability.regions_named
        return named if 2 <= len(named) <= MOST_GROUPS else ()

    @property
    def grouped_by(self) -> str:
        """What the groups are, in a word."""
        return "class" if self.classes else "region"

    def members(self, ids: NDArray[Any], root: Stream) -> NDArray[np.int64]:
        """Return which group each client is in, as an index; all are in one if there are none."""
        if self.classes:
            return self.devices.members(ids, root)
        return self.availability.region(ids, root.at("availability"))

    def hold(self, ids: Ids, root: Stream) -> Any:
        """Return what some clients hold.

        Args:
            ids: the clients.
            root: the repetition's root, `Scenario.stream`.
        """
        stream = root.at("data")
        held = self.data.hold(ids, stream)
        if not self.group_data:
            return held
        members = self.members(ids, root)
        held = held if isinstance(held, Labelled) else np.array(held)
        for name, data in self.group_data.items():
            rows = np.flatnonzero(members == self.groups.index(name))
            own = data.hold(ids[rows], stream)
            if isinstance(held, Labelled):
                held = held.with_rows(rows, own)
            else:
                held[rows] = own
        return held

    @property
    def shares_samples(self) -> bool:
        """Whether a labelled sample may be held by more than one client."""
        # Groups with data of their own are dealt the same pool, each from its start.
        return isinstance(self.data, PooledData) and (self.data.shared or bool(self.group_data))

    @cached_property
    def devices(self) -> Devices:
        """The device classes as one."""
        return Devices(self.classes)

    @property
    def everyone(self) -> bool:
        """Whether every client is there at every moment."""
        return all(model.everyone for _, model in self._availabilities())

    @property
    def needs_influence(self) -> bool:
        """Whether who stays away depends on how much each client counts; see `absent`."""
        return self.availability.needs_influence

    @property
    def instant(self) -> bool:
        """Whether every client that is asked reports exactly once and at once."""
        models = [one.latency for one in self.classes] or [self.latency]
        return all(model.instant for model in models) and self.dropout == self.duplicates == 0.0

    def available(self, ids: NDArray[Any], time: Times, root: Stream) -> Mask:
        """Say which of the clients are there at a moment, or each at a moment of its own.

        Args:
            ids: the clients.
            time: seconds of virtual time, one number or one per client.
            root: the repetition's root, `Scenario.stream`.
        """
        if self.classes:
            return self.devices.available(ids, time, root)
        return self.availability.available(ids, time, root.at("availability"))

    def absent(self, influence: NDArray[Any]) -> Mask:
        """Say who stays away for good, given every client's influence."""
        return self.availability.absent(influence)

    def durations(self, ids: NDArray[Any], ask: Stream, root: Stream) -> Floats:
        """Draw how long each client takes to answer an ask.

        Args:
            ids: the clients.
            ask: keyed by the ask, so that every ask takes a time of its own.
            root: the repetition's root, `Scenario.stream`.
        """
        if self.classes:
            return self.devices.durations(ids, ask, root)
        return self.latency.durations(ask.clients(ids))

    def least_latency(self) -> float:
        """Return the infimum of all durations: how far ahead the engine may look."""
        return self.devices.least_latency() if self.classes else self.latency.least()

    def typical_latency(self) -> float:
        """Return the median duration, of the slowest class."""
        models = [(one.latency, one.speed) for one in self.classes] or [(self.latency, 1.0)]
        return max(latency.typical() / speed for latency, speed in models)

    @property
    def alike(self) -> bool:
        """Whether the time that work takes says nothing about who does it."""
        return len({(repr(one.latency), one.speed) for one in self.classes}) <= 1

    def reachable(self) -> int:
        """Return how many clients can ever come."""
        models = [one.availability for one in self.classes] or [self.availability]
        return min(self.clients, max(model.reachable(self.clients) for model in models))

    def rate(self) -> float:
        """Return the share of clients that are there in the long run (a hint, for planning)."""
        return self.devices.rate() if self.classes else self.availability.rate()

    def check(self) -> str | None:
        """Return what is wrong with a model for this many clients, beginning with its field."""
        for place, model in self._availabilities():
            if (wrong := model.check(self.clients)) is not None:
                return f"{place}.{wrong}"
        for name, data in self.group_data.items():
            place, rows = f"group_data.{name}", data.rows()
            if data.shape() != self.data.shape():
                return f"{place}: its shape is {data.shape()}; it must be {self.data.shape()}"
            if rows is not None and rows < self.clients:
                return f"{place}: it holds {rows} rows; give one for each of {self.clients} clients"
        return None

    def located(self, folder: Path) -> "Population":
        """Return the population with relative paths taken from the scenario file's folder."""
        update = {
            "data": self.data.located(folder),
            "availability": self.availability.located(folder),
            "group_data": {name: one.located(folder) for name, one in self.group_data.items()},
            "classes": tuple(one.located(folder) for one in self.classes),
        }
        return self.model_copy(update=update)

    def _availabilities(self) -> list[tuple[str, Availability]]:
        if not self.classes:
            return [("availability", self.availability)]
        return [
            (f"classes.{place}.availability", one.availability)
            for place, one in enumerate(self.classes)
        ]
