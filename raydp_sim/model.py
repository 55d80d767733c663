"""The base of everything that is read from a scenario file, and what was wrong with it in words."""

import difflib
import re
from collections.abc import Collection, Mapping
from typing import Any, Literal, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from raydp_sim.errors import bad_field

_UNION_MARK = re.compile(r"(constrained-)?(int|float|str|bool)|[a-z-]+\[.*\]")


class Model(BaseModel):
    """Frozen, without unknown keys, and without values that only look like the wanted type."""

    # An infinite number, where one is allowed, is read back as it was and not as nothing.
    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants"
    )

    @field_validator("*", mode="before")
    @classmethod
    def _undisguised(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse `true` and quoted text where pydantic would make a number of them.

        Text is let through where a float is wanted, for YAML reads 1e-6 as text.
        """
        wanted = _types(cls.model_fields[info.field_name or ""].annotation)
        if isinstance(value, bool) and bool not in wanted and wanted & {int, float}:
            raise PydanticCustomError("number", "it must be a number")
        if isinstance(value, str) and int in wanted and not wanted & {str, float}:
            raise PydanticCustomError("number", "it must be a whole number")
        return value

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy; with other fields it remembers nothing of what followed from these.

        Pydantic would take cached properties along: a mechanism with a smaller epsilon would send
        what has the larger loss.
        """
        copied = super().model_copy(update=update, deep=deep)
        if update:
            for name in copied.__dict__.keys() - type(self).model_fields.keys():
                del copied.__dict__[name]
        return copied


def _types(annotation: Any) -> set[Any]:
    if get_origin(annotation) is Literal:
        return {type(choice) for choice in get_args(annotation)}
    inner = [_types(part) for part in get_args(annotation)]
    return set().union(*inner) if inner else {annotation}


def describe(
    error: ValidationError,
    known: Collection[str],
    source: str = "",
    prefix: tuple[str, ...] = (),
) -> str:
    """Turn pydantic's findings into one message: file, field, value and remedy of each.

    Args:
        error: what pydantic found.
        known: every key there is, for guessing which one was meant: dotted, as from the top of
            the file, or the bare names of the one section that was checked.
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
        if found["type"] in ("tuple_type", "list_type"):
            message = f"it must be a list, such as [{found['input']}]"
        if found["type"].startswith("int_"):
            given = found["input"]
            whole = isinstance(given, float) and given.is_integer()
            message = "it is too large" if whole else "it must be a whole number"
        if found["type"] == "string_type":
            message = "it must be text; put it in quotes"
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
    """Guess which key was meant: one of the same section, or the same key somewhere else.

    Example:
        >>> known = {"task.rounds", "task.kind", "population.clients", "population.classes"}
        >>> _nearest("task.round", known), _nearest("task.clients", known)
        ("did you mean 'rounds'?", "did you mean 'population.clients'?")
    """
    section, _, name = field.rpartition(".")
    dotted = any("." in key for key in known)
    beside = [key.rpartition(".") for key in sorted(known)]
    own = [last for parent, _, last in beside if not dotted or parent == section]
    near = difflib.get_close_matches(name, own, 1)
    # Short for something: eps, dim, avail.
    near = near or [key for key in own if len(name) > 2 and key.startswith(name)][:1]
    near = near or [".".join((parent, last)) for parent, _, last in beside if last == name][:3]
    if near:
        return f"did you mean {' or '.join(repr(key) for key in near)}?"
    return "remove it; `raydp-sim schema` lists the keys"
