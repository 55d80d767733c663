"""A scenario as a plain document: read from YAML, changed by assignments."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from raydp_sim.errors import InputError


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, except that a key given twice is an error and not a silent loss."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be a word", key.start_mark
                )
            if key.tag != "tag:yaml.org,2002:merge" and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key.value}' is given twice", key.start_mark
                )
            seen.add(key.value)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def read(path: Path) -> Any:
    """Read a YAML file.

    Raises:
        InputError: names the file and, if it is not YAML, the line.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)
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
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            raise InputError(f"--set {override}: the value is not valid YAML") from None
        place = result
        for key in keys[:-1]:
            below = place.setdefault(key, {})
            if not isinstance(below, dict):
                raise InputError(f"--set {override}: {key} is not a section")
            place = below
        place[keys[-1]] = value
    return result


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value
