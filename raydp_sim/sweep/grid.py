"""The grid of a sweep: every combination of the values of some fields."""

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from raydp_sim.errors import InputError, bad_field
from raydp_sim.scenario.yaml_reader import Reader

_MOST = 1000
_PLAIN = re.compile(r"[\w.+-]{1,40}")


@dataclass(frozen=True)
class Axis:
    """One field and the values it takes, in the order given."""

    field: str
    values: tuple[Any, ...]

    @classmethod
    def read(cls, text: str) -> "Axis":
        """Read `section.field=value,value,...`; each value is YAML.

        Raises:
            InputError: names what is wrong and how to write it.

        Example:
            >>> Axis.read("mechanism.epsilon_local=0.5, 1, 1e1")
            Axis(field='mechanism.epsilon_local', values=(0.5, 1, 10.0))
        """
        field, equals, listed = (part.strip() for part in text.partition("="))
        option = f"--over {text}"
        if not equals or not all(part.strip() for part in field.split(".")):
            raise InputError(f"{option}: write it as section.field=value,value,...")
        try:
            values = yaml.load(f"[{listed}]", Reader)
        except (yaml.YAMLError, ValueError):
            raise InputError(f"{option}: the values are not valid YAML between commas") from None
        if not values:
            raise InputError(f"{option}: {field} has no values; give some: {field}=value,value")
        for place, value in enumerate(values):
            # By their looks, for a point's folder is called after them.
            if shown(value) in map(shown, values[:place]):
                raise InputError(f"{option}: {field} has {shown(value)} twice; give it once")
        return cls(field, tuple(values))


@dataclass(frozen=True)
class Point:
    """One run of a sweep: the value of every swept field."""

    values: Mapping[str, Any]

    @property
    def folder(self) -> str:
        """A name for its run directory; it does not depend on the order of the fields.

        Example:
            >>> Point({"task.rounds": 5, "mechanism.epsilon_local": 0.5}).folder
            'epsilon_local=0.5,rounds=5'
        """
        last = [field.rpartition(".")[2] for field in sorted(self.values)]
        unique = len(set(last)) == len(last)
        parts = []
        for short, field in zip(last, sorted(self.values), strict=True):
            text = shown(self.values[field])
            if not _PLAIN.fullmatch(text):
                text = hashlib.sha256(text.encode()).hexdigest()[:12]
            parts.append(f"{short if unique else field}={text}")
        name = ",".join(parts)
        # Names of files have at most 255 bytes.
        return name if len(name) <= 200 else hashlib.sha256(name.encode()).hexdigest()[:32]

    def __str__(self) -> str:
        return ", ".join(f"{field}={shown(value)}" for field, value in self.values.items())


def points(axes: Iterable[Axis]) -> list[Point]:
    """Return the grid, the last field varying fastest.

    Raises:
        InputError: a field is swept twice, or lies inside of another, or there are too many points.

    Example:
        >>> grid = points([Axis("a.b", (1, 2)), Axis("seed", (7,))])
        >>> [str(point) for point in grid]
        ['a.b=1, seed=7', 'a.b=2, seed=7']
    """
    axes = list(axes)
    for axis, other in itertools.permutations(axes, 2):
        if f"{axis.field}.".startswith(f"{other.field}."):
            what = "is given twice" if axis.field == other.field else f"is part of {other.field}"
            raise InputError(f"--over {axis.field} {what}; sweep one of them")
    count = math.prod(len(axis.values) for axis in axes)
    if count > _MOST:
        raise bad_field("--over", f"{count} points", f"a sweep has at most {_MOST}; give fewer")
    fields = [axis.field for axis in axes]
    combined = itertools.product(*(axis.values for axis in axes))
    return [Point(dict(zip(fields, values, strict=True))) for values in combined]


def shown(value: Any) -> str:
    """Return a value in one line, as it can be given; equal numbers look alike.

    Example:
        >>> shown(1e-06), shown(2.0), shown("krr"), shown({"kind": "krr"}), shown(True)
        ('1e-06', '2', 'krr', '{"kind": "krr"}', 'true')
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value, default=str)
