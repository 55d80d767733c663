"""Every key that one scenario file may have, to guess what a misspelt one meant."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from raydp_sim.datasets import DATASETS
from raydp_sim.datasets.partitions import PARTITIONS
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.metrics.sinks import SINKS
from raydp_sim.models import MODELS
from raydp_sim.population.availability import AVAILABILITY
from raydp_sim.population.latency import LATENCY
from raydp_sim.population.participation import PARTICIPATION
from raydp_sim.registry import Registry
from raydp_sim.scenario.file import Scenario
from raydp_sim.tasks import TASKS
from raydp_sim.tasks.learning.optimizers import OPTIMIZERS
from raydp_sim.tasks.learning.projections import PROJECTIONS
from raydp_sim.tasks.learning.schedules import SCHEDULES

REGISTRIES: tuple[Registry[Any], ...] = (
    DATASETS,
    PARTITIONS,
    AVAILABILITY,
    LATENCY,
    PARTICIPATION,
    TASKS,
    MECHANISMS,
    MODELS,
    SCHEDULES,
    OPTIMIZERS,
    PROJECTIONS,
    SINKS,
)
"""The registries whose pieces a file chooses by `kind`."""
# The population says these, so nobody should be sent there.
_FILLED_IN = {"mechanism.dimension", "mechanism.clients"}


def known_keys(document: Mapping[str, Any]) -> set[str]:
    """Return every key that a file may have, dotted, given the kinds that it has chosen.

    Example:
        >>> bits = known_keys({"mechanism": {"kind": "2rr"}})
        >>> "mechanism.epsilon_local" in bits, "mechanism.coordinates" in bits
        (True, False)
    """
    return set(_below(Scenario, document, ())) - _FILLED_IN


def _below(model: type[BaseModel], given: Any, path: tuple[str, ...]) -> Iterator[str]:
    given = given if isinstance(given, Mapping) else {}
    for name, field in model.model_fields.items():
        place = (*path, name)
        yield ".".join(place)
        value = given.get(name)
        if isinstance(value, list | tuple):
            for number, each in enumerate(value):
                for section in _sections(field, each):
                    yield from _below(section, each, (*place, str(number)))
        else:
            for section in _sections(field, value):
                yield from _below(section, value, place)


def _sections(field: FieldInfo, value: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that a field's value is checked by: of a piece, that of its kind."""
    for wanted in (field.annotation, *get_args(field.annotation)):
        if not (inspect.isclass(wanted) and issubclass(wanted, BaseModel)):
            continue
        registry = next((registry for registry in REGISTRIES if registry.base is wanted), None)
        if registry is None:
            yield wanted
            continue
        kind = value.get("kind") if isinstance(value, Mapping) else None
        if isinstance(kind, str):
            try:
                yield registry.find(kind)
            except PydanticCustomError:
                pass  # what is wrong with the kind is reported by itself
        elif isinstance(field.default, BaseModel):
            yield type(field.default)
