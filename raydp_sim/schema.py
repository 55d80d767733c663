"""The JSON schema of a scenario file, so that editors complete and explain it."""

import inspect
import re
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from raydp_sim.datasets import DATASETS
from raydp_sim.figures.model import Claim, Curve, Figure, FigureFile, Fixed, Panel
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.population.availability import AVAILABILITY
from raydp_sim.population.latency import LATENCY
from raydp_sim.population.participation import PARTICIPATION
from raydp_sim.registry import Registry
from raydp_sim.scenario import Scenario
from raydp_sim.tasks import TASKS

_ROOMS: tuple[Registry[Any], ...] = (
    DATASETS,
    AVAILABILITY,
    LATENCY,
    PARTICIPATION,
    TASKS,
    MECHANISMS,
)
_IMPORT_PATH = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"
_NAMES = re.compile(r"^ {4,8}(\w+(?:, \w+)*): (.*)$")


def scenario_schema() -> dict[str, Any]:
    """Return the JSON schema of scenario files: simulations, and figures to compute.

    A file with a `figure` is read as the latter. Each section of a simulation that has a `kind` is
    a choice among the registered pieces.

    Example:
        >>> kinds = scenario_schema()["$defs"]["Latency"]["oneOf"]
        >>> [kind["properties"]["kind"].get("const") for kind in kinds]
        ['constant', 'lognormal', 'pareto', None]
    """
    simulation, figure = _simulation(), _figure()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {
            **simulation.pop("$defs"),
            **figure.pop("$defs"),
            "Scenario": simulation,
            "FigureFile": figure,
        },
        "type": "object",
        # Again at the top, where editors look for keys to complete.
        "properties": {**figure["properties"], **simulation["properties"]},
        "if": {"required": ["figure"]},
        "then": {"$ref": "#/$defs/FigureFile"},
        "else": {"$ref": "#/$defs/Scenario"},
    }


def _figure() -> dict[str, Any]:
    document = FigureFile.model_json_schema()
    for cls in (FigureFile, Figure, Panel, Curve, Fixed, Claim):
        _explained(document if cls is FigureFile else document["$defs"][cls.__name__], cls)
    for target in (document, *document["$defs"].values()):
        _untitled(target)
    return document


def _simulation() -> dict[str, Any]:
    document = Scenario.model_json_schema()
    definitions = document["$defs"]
    for room in _ROOMS:
        choices = []
        for kind, cls in room.kinds.items():
            piece = cls.model_json_schema()
            definitions.update(piece.pop("$defs", {}))
            choices.append(_explained(piece, cls, kind))
        definitions[room.base.__name__] = {"oneOf": [*choices, _by_import_path(room)]}
        for model in _models(Scenario):
            schema = document if model is Scenario else definitions[model.__name__]
            for name, field in model.model_fields.items():
                if field.annotation is room.base and not field.is_required():
                    schema["properties"][name]["default"] = room.dump(field.default)
    for model in _models(Scenario):
        name = model.__name__
        _explained(document if model is Scenario else definitions[name], model)
    for target in (document, *definitions.values()):
        _untitled(target)
    return document


def field_docs(cls: type) -> dict[str, str]:
    """Return what the docstrings of a class and of its bases say about each field.

    Example:
        >>> field_docs(DATASETS.kinds["bernoulli"])["probability"]
        'chance of a 1.'
    """
    docs: dict[str, str] = {}
    for ancestor in reversed(cls.__mro__):
        names: list[str] = []
        inside = False
        for line in inspect.cleandoc(ancestor.__doc__ or "").splitlines():
            if not line.startswith(" "):
                begins = line.startswith("Fields") and line.endswith(":")
                inside = begins or (inside and not line)
                continue
            if not inside:
                continue
            if (match := _NAMES.match(line)) and len(line) - len(line.lstrip()) == 4:
                names = match[1].split(", ")
                docs.update(dict.fromkeys(names, match[2]))
            else:
                docs.update({name: f"{docs[name]} {line.strip()}" for name in names})
    return docs


def _explained(schema: dict[str, Any], cls: type[BaseModel], kind: str = "") -> dict[str, Any]:
    """Add the first line of the docstring, the fields' descriptions and the kind."""
    schema["description"] = inspect.cleandoc(cls.__doc__ or "").partition("\n")[0]
    docs = field_docs(cls)
    properties = schema.setdefault("properties", {})
    for name, field in properties.items():
        if name in docs:
            field["description"] = docs[name]
    if kind:
        schema["properties"] = {"kind": {"const": kind, "description": schema["description"]}}
        schema["properties"].update(properties)
        schema["required"] = ["kind", *schema.get("required", [])]
    return schema


def _by_import_path(room: Registry[Any]) -> dict[str, Any]:
    base = f"{room.base.__module__}.{room.base.__name__}"
    return {
        "type": "object",
        "description": f"A class of your own that extends {base}; its fields are its parameters.",
        "properties": {
            "kind": {
                "type": "string",
                "pattern": _IMPORT_PATH,
                "description": "The import path, package.module:Class.",
            }
        },
        "required": ["kind"],
    }


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield the plain sections: models that are not chosen by a kind."""
    yield model
    bases = {room.base for room in _ROOMS}
    for field in model.model_fields.values():
        # A list of sections is as good as one.
        for below in (field.annotation, *get_args(field.annotation)):
            if inspect.isclass(below) and issubclass(below, BaseModel) and below not in bases:
                yield from _models(below)


def _untitled(node: Any) -> None:
    """Drop pydantic's titles, which only repeat the names."""
    if isinstance(node, dict):
        if isinstance(node.get("title"), str):
            del node["title"]
        for inner in node.values():
            _untitled(inner)
    elif isinstance(node, list):
        for inner in node:
            _untitled(inner)
