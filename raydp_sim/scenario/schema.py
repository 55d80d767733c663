"""The JSON schema of a scenario file, so that editors complete and explain it."""

import inspect
import re
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from raydp_sim.registry import Registry
from raydp_sim.scenario import Scenario
from raydp_sim.scenario.keys import ROOMS

_IMPORT_PATH = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"
_NAMES = re.compile(r"^ {4,8}(\w+(?:, \w+)*): (.*)$")


def simulation_schema() -> dict[str, Any]:
    """Return the JSON schema of simulations.

    Each section that has a `kind` is a choice among the registered pieces.
    """
    document = Scenario.model_json_schema()
    definitions = document["$defs"]
    for room in ROOMS:
        choices = []
        for kind, cls in room.kinds.items():
            piece = cls.model_json_schema()
            definitions.update(piece.pop("$defs", {}))
            _show_defaults(piece, cls)
            choices.append(explained(piece, cls, kind))
            for below in _models(cls):
                if below is not cls:
                    explained(definitions[below.__name__], below)
        plain = [room.base.plain] if hasattr(room.base, "plain") else []
        definitions[room.base.__name__] = {"oneOf": [*choices, _by_import_path(room), *plain]}
    for model in _models(Scenario):
        schema = document if model is Scenario else definitions[model.__name__]
        _show_defaults(schema, model)
        explained(schema, model)
    for target in (document, *definitions.values()):
        untitled(target)
    return document


def field_docs(cls: type) -> dict[str, str]:
    """Return what the docstrings of a class and of its bases say about each field.

    Example:
        >>> from raydp_sim.datasets import DATASETS
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


def explained(schema: dict[str, Any], cls: type[BaseModel], kind: str = "") -> dict[str, Any]:
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


def _show_defaults(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Write the pieces that a model has unless others are given as a file would."""
    for name, field in model.model_fields.items():
        room = next((room for room in ROOMS if room.base is field.annotation), None)
        if room is not None and not field.is_required():
            schema["properties"][name]["default"] = room.dump(field.default)


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
    bases = {room.base for room in ROOMS}
    for field in model.model_fields.values():
        # A list of sections is as good as one.
        for below in (field.annotation, *get_args(field.annotation)):
            if inspect.isclass(below) and issubclass(below, BaseModel) and below not in bases:
                yield from _models(below)


def untitled(node: Any) -> None:
    """Drop pydantic's titles, which only repeat the names."""
    if isinstance(node, dict):
        if isinstance(node.get("title"), str):
            del node["title"]
        for inner in node.values():
            untitled(inner)
    elif isinstance(node, list):
        for inner in node:
            untitled(inner)
