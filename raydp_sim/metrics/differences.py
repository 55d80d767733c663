"""Fields in which scenarios differ."""

from collections.abc import Mapping, Sequence
from typing import Any

_SAID_ELSEWHERE = ("description",)


def differences(documents: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the fields in which scenarios differ, with each one's value; None where it has none.

    Example:
        >>> differences([{"task": {"rounds": 1}, "seed": 0}, {"task": {"rounds": 2}, "seed": 0}])
        {'task.rounds': [1, 2]}
    """
    flat = [dict(_flat(document, ())) for document in documents]
    fields = dict.fromkeys(field for one in flat for field in one)
    found = {field: [one.get(field) for one in flat] for field in fields}
    return {
        field: values
        for field, values in found.items()
        if field not in _SAID_ELSEWHERE and any(value != values[0] for value in values)
    }


def _flat(value: Any, path: tuple[str, ...]) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping) and (value or not path):
        return [item for key, below in value.items() for item in _flat(below, (*path, str(key)))]
    if isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
        numbered = enumerate(value)
        return [item for key, below in numbered for item in _flat(below, (*path, str(key)))]
    return [] if value is None else [(".".join(path), value)]
