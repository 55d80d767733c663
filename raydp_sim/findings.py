"""From pydantic's findings to a message that a person can act on."""

import difflib
import re
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import ValidationError

from raydp_sim.errors import bad_field

_UNION_MARK = re.compile(r"(constrained-)?(int|float|str|bool)|[a-z-]+\[.*\]")


def describe(
    error: ValidationError,
    known: Collection[str],
    source: str = "",
    prefix: tuple[str, ...] = (),
) -> str:
    """Turn pydantic's findings into one message: file, field, value and remedy of each.

    Args:
        error: what pydantic found.
        known: every key there is, for guessing which one was meant.
        source: the file.
        prefix: the section that was checked, if not the whole file.
    """
    findings: dict[str, list[str]] = {}
    for found in error.errors():
        field = ".".join((*prefix, *_path(found["loc"]))) or "scenario"
        message = re.sub(r"^Value error, ", "", found["msg"])
        message = re.sub(r"^\w+ should ", "it must ", message)
        if found["type"] in ("model_type", "dict_type"):
            message = "it must be a mapping of fields"
        if found["type"] == "invalid_key":
            message = "keys must be words; `raydp-sim schema` lists them"
        if found["type"] == "missing":
            head, message = f"{field} is missing; ", "add it"
        elif found["type"] == "missing_kind":
            head = f"{field} is missing; "
        elif found["type"] == "extra_forbidden":
            head, message = f"{field} is not a known key; ", _nearest(field, known)
            if not isinstance(found["input"], Mapping):
                head = str(bad_field(field, found["input"], "it is not a known key; "))
        elif isinstance(found["input"], Mapping):
            head = _section(field, found["input"], message)
        else:
            head = str(bad_field(field, found["input"], ""))
        # A field of several types has one finding for each: one line with all of them.
        findings.setdefault(head, []).append(message)
    lines = [head + ", or ".join(dict.fromkeys(remedies)) for head, remedies in findings.items()]
    start = f"{source}: " if source else ""
    return start + ("\n" + " " * len(start)).join(lines)


def _path(loc: tuple[int | str, ...]) -> list[str]:
    """Return the field's path without pydantic's marks of which type of a union was tried."""
    return [str(part) for part in loc if not _UNION_MARK.fullmatch(str(part))]


def _section(field: str, given: Mapping[str, Any], message: str) -> str:
    """Begin the message about a whole section: not with all it holds, but with what is meant."""
    named = re.match(r"(\w+) is ", message)
    if named is not None and named[1] in given:
        return f"{field}."
    values = {str(name): value for name, value in given.items() if value is not None}
    meant = [name for name in values if name in re.findall(r"\w{2,}", message)]
    shown = " and ".join(f"{name} {values[name]}" for name in meant)
    return f"{field} has {shown}; " if shown else f"{field}: "


def _nearest(field: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(field.rpartition(".")[2], known, 1)
    return f"did you mean '{near[0]}'?" if near else "remove it; `raydp-sim schema` lists the keys"
