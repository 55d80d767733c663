"""What events refuse: fields that cannot have happened. Numbers become plain ones."""

import math
from numbers import Integral, Real
from typing import Any


def _number(name: str, value: object, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise ValueError(f"{name} is {value!r}; it must be a number >= {low:g}")
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value!r}; it must be finite")
    return float(value)


def check_real(event: object, name: str, above: float | None = None) -> None:
    """Make a field a plain float, >= 0 or above what is given, and finite."""
    value = _number(name, getattr(event, name), 0.0, math.inf)
    if above is not None and value <= above:
        raise ValueError(f"{name} is {value!r}; it must be > {above:g}")
    object.__setattr__(event, name, value)


def check_whole(event: object, name: str, most: int | None = None, least: int = 1) -> None:
    """Make a field a plain whole number, at least and at most what is given."""
    value = getattr(event, name)
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} is {value!r}; it must be a whole number >= {least}")
    if most is not None and int(value) > most:
        raise ValueError(f"{name} is {value!r}; it must be at most {most}")
    object.__setattr__(event, name, int(value))


def check_rate(event: object, name: str) -> None:
    """Make a field a plain float in (0, 1]."""
    value = getattr(event, name)
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) <= 1.0:
        raise ValueError(f"{name} is {value!r}; it must lie in (0, 1]")
    object.__setattr__(event, name, float(value))


def check_alphabet(event: object) -> None:
    """Make the alphabet, where there is one, a plain whole number >= 1."""
    if getattr(event, "alphabet", None) is not None:
        check_whole(event, "alphabet")


def check_losses(event: Any) -> None:
    """Make the losses a tuple of plain floats, at least one, each >= 0."""
    losses = tuple(event.losses)
    if not losses:
        raise ValueError("losses is (); it must hold at least one message's loss")
    values = tuple(_number("losses", loss, 0.0, math.inf) for loss in losses)
    object.__setattr__(event, "losses", values)
