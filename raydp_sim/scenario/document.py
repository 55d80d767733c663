"""A scenario as a plain document: read from YAML, changed by assignments."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from raydp_sim.errors import InputError
from raydp_sim.scenario.yaml_reader import LARGEST, Reader


def read(path: Path) -> Any:
    """Read a YAML file.

    Raises:
        InputError: names the file and, if it is not YAML, the line.
    """
    try:
        if (size := path.stat().st_size) > LARGEST:
            raise InputError(
                f"{path}: it has {size:,} bytes; a scenario has at most {LARGEST:,}: put data into "
                "a file of their own, population.data: {kind: file, path: ...}"
            )
        return yaml.load(path.read_text(encoding="utf-8"), Reader)
    except FileNotFoundError:
        remedy = "there is no such file; `raydp-sim list` shows the scenarios that ship"
        raise InputError(f"{path}: {remedy}") from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: it cannot be read ({why}); give a scenario file") from None
    except yaml.YAMLError as error:
        mark, why = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        raise InputError(f"{path}: it is not valid YAML; {place}{why or error}") from None
    except InputError:
        raise
    except (RecursionError, ValueError) as error:
        raise InputError(f"{path}: it cannot be read ({error}); write it plainly") from None


def overridden(document: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Apply `a.b=value` assignments to a copy of the document."""
    result: dict[str, Any] = _copy(document)
    for override in overrides:
        path, equals, text = override.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise InputError(f"--set {override}: write it as section.field=value")
        try:
            value = yaml.load(text, Reader)
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            why = f" ({problem})" if (problem := getattr(error, "problem", None)) else ""
            raise InputError(f"--set {override}: the value is not valid YAML{why}") from None
        try:
            _assign(result, keys, value)
        except KeyError as error:
            raise InputError(f"--set {override}: {error.args[0]} is not a section") from None
    return result


def assigned(document: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the document with fields replaced, by their dotted names.

    Raises:
        InputError: names a field that lies below something that is not a section.

    Example:
        >>> assigned({"task": {"kind": "mean"}}, {"task.rounds": 3})
        {'task': {'kind': 'mean', 'rounds': 3}}
    """
    result: dict[str, Any] = _copy(document)
    for field, value in values.items():
        try:
            _assign(result, field.split("."), _copy(value))
        except KeyError as error:
            raise InputError(f"{field}: {error.args[0]} is not a section") from None
    return result


def _assign(document: dict[str, Any], keys: list[str], value: Any) -> None:
    place = document
    for key in keys[:-1]:
        below = place.setdefault(key, {})
        if not isinstance(below, dict):
            raise KeyError(key)
        place = below
    place[keys[-1]] = value


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value


def is_figure(document: Any) -> bool:
    """Say whether a scenario's document describes a figure and not a simulation.

    Example:
        >>> is_figure({"name": "x", "figure": {}}), is_figure({"name": "x", "population": {}})
        (True, False)
    """
    return isinstance(document, Mapping) and "figure" in document
