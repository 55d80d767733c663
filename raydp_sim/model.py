"""The base of everything that is read from a scenario file."""

from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError


class Model(BaseModel):
    """Frozen, without unknown keys, and without values that only look like the wanted type."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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


def _types(annotation: Any) -> set[Any]:
    if get_origin(annotation) is Literal:
        return {type(choice) for choice in get_args(annotation)}
    inner = [_types(part) for part in get_args(annotation)]
    return set().union(*inner) if inner else {annotation}
