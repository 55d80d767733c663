"""Pieces of a scenario and how they are found: by a short kind, or by import path."""

import difflib
import importlib
import inspect
import os
import pkgutil
import re
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BeforeValidator, ConfigDict, PlainSerializer, ValidationError
from pydantic_core import PydanticCustomError

from raydp_sim.model import Model

# Folders where classes by import path are looked for, besides Python's own. It is a variable of the
# environment because the processes of a private Ray inherit that, but not the driver's `sys.path`.
_SEARCH = "RAYDP_SIM_PATH"


def search_also(*folders: Path) -> None:
    """Look for classes by import path in these folders too, here and in a private Ray."""
    places = [place for place in os.environ.get(_SEARCH, "").split(os.pathsep) if place]
    places += [str(folder.resolve()) for folder in folders]
    os.environ[_SEARCH] = os.pathsep.join(dict.fromkeys(places))


class Piece(Model):
    """One choice that a scenario makes: its fields are the parameters, its methods the behaviour.

    A subclass sits in a file of its own, sets `kind`, and is found by the scan of its package.
    """

    model_config = ConfigDict(ignored_types=(cached_property,))
    kind: ClassVar[str]


P = TypeVar("P", bound=Piece)


class Registry(Generic[P]):
    """The pieces of one package, by kind."""

    def __init__(self, package: str, base: type[P]) -> None:
        self.package, self.base = package, base
        self._met: dict[str, type[P]] = {}

    @cached_property
    def kinds(self) -> dict[str, type[P]]:
        """Every class of the package that extends the base and names a kind of its own."""
        found: dict[str, type[P]] = {}
        package = importlib.import_module(self.package)
        for module_info in pkgutil.walk_packages(package.__path__, f"{self.package}."):
            module = importlib.import_module(module_info.name)
            found |= self._defined(module)
        return dict(sorted(found.items()))

    def _defined(self, module: ModuleType) -> dict[str, type[P]]:
        """Return the kinds that a module defines itself."""
        found: dict[str, type[P]] = {}
        for _, cls in inspect.getmembers(module, inspect.isclass):
            own = cls.__module__ == module.__name__ and "kind" in vars(cls)
            if own and issubclass(cls, self.base):
                found[cls.kind] = cls
        return found

    def _named(self, kind: str) -> type[P] | None:
        """Return the class of a kind, and import no more than the files whose text defines it.

        Every process of a run reads the scenario: all pieces would cost it a second.
        """
        if not kind:
            return None
        if "kinds" in vars(self):
            return self.kinds.get(kind)
        if kind not in self._met:
            defines = re.compile(rf'^    kind\b.*= "{re.escape(kind)}"', re.MULTILINE)
            for folder in map(Path, importlib.import_module(self.package).__path__):
                for path in sorted(folder.rglob("*.py")):
                    if defines.search(path.read_text(encoding="utf-8")):
                        inside = path.relative_to(folder).with_suffix("").parts
                        name = ".".join((self.package, *inside)).removesuffix(".__init__")
                        self._met |= self._defined(importlib.import_module(name))
        return self._met.get(kind) or self.kinds.get(kind)

    def find(self, kind: str) -> type[P]:
        """Return the class of a kind, or of `package.module:Class`.

        Raises:
            PydanticCustomError: when there is no such kind; it lists the kinds there are.
        """
        if ":" in kind:
            return self._imported(kind)
        if (known := self._named(kind)) is not None:
            return known
        near = difflib.get_close_matches(kind, self.kinds, 1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise _refusal(
            f"{hint}choose one of {', '.join(self.kinds)}, or name your own class as "
            "package.module:Class"
        )

    def parse(self, value: Any) -> Any:
        """Turn a mapping with a `kind` into a piece; pieces pass through."""
        if isinstance(value, self.base):
            return value
        if not isinstance(value, Mapping):
            raise _refusal("it must be a mapping with a `kind`, such as {kind: ...}")
        parameters = dict(value)
        kind = parameters.pop("kind", None)
        if not isinstance(kind, str):
            choices = f"choose one of {', '.join(self.kinds)}"
            missing = PydanticCustomError("missing_kind", "{remedy}", {"remedy": choices})
            raise ValidationError.from_exception_data(
                self.package, [{"type": missing, "loc": ("kind",), "input": value}]
            )
        try:
            cls = self.find(kind)
        except PydanticCustomError as error:
            raise ValidationError.from_exception_data(
                self.package, [{"type": error, "loc": ("kind",), "input": kind}]
            ) from None
        return cls.model_validate(parameters)

    def dump(self, piece: P) -> dict[str, Any]:
        """Turn a piece back into the mapping that `parse` reads."""
        cls = type(piece)
        known = self._named(getattr(cls, "kind", "")) is cls
        kind = cls.kind if known else f"{cls.__module__}:{cls.__qualname__}"
        return {"kind": kind, **piece.model_dump(mode="json", exclude_none=True)}

    def describes(self, kind: str) -> bool:
        """Say whether a kind, or what an import path names, is one of this registry.

        Raises:
            PydanticCustomError: when there is nothing at the path.
        """
        if ":" not in kind:
            return self._named(kind) is not None
        cls = at_path(kind)
        return inspect.isclass(cls) and issubclass(cls, self.base)

    def _imported(self, path: str) -> type[P]:
        cls = at_path(path)
        if not (inspect.isclass(cls) and issubclass(cls, self.base)):
            raise _refusal(f"it must be a subclass of {self.base.__module__}.{self.base.__name__}")
        if (wanting := missing(cls, self.base)) is not None:
            raise _refusal(wanting)
        return cls


def at_path(path: str) -> Any:
    """Return what an import path `package.module:name` names.

    Raises:
        PydanticCustomError: there is nothing there.
    """
    module_name, _, class_name = path.partition(":")
    for place in os.environ.get(_SEARCH, "").split(os.pathsep):
        # Last, so that a file of the user's cannot hide a module of someone else.
        if place and place not in sys.path:
            sys.path.append(place)
    try:
        return getattr(importlib.import_module(module_name), class_name)
    except Exception as error:  # a user's module may fail in any way
        why = str(error) or type(error).__name__
        remedy = "put it beside the scenario file, in the working directory or on PYTHONPATH"
        raise _refusal(f"it cannot be imported ({why}); {remedy}") from None


def missing(cls: type[Piece], base: type[Piece]) -> str | None:
    """Say which methods a class must have and has not, and what each is for; None: it has all.

    Example:
        >>> from abc import abstractmethod
        >>> class Clock(Piece):
        ...     @abstractmethod
        ...     def now(self) -> float:
        ...         "Return the time."
        >>> missing(type("Sundial", (Clock,), {}), Clock)
        'Sundial has no method `now` (Return the time); write it as Clock describes'
    """
    abstract: frozenset[str] = getattr(cls, "__abstractmethods__", frozenset())
    # In the order in which the base describes them.
    names = [name for name in vars(base) if name in abstract]
    if not names:
        return None
    purposes = ((inspect.getdoc(getattr(base, name)) or "").partition("\n")[0] for name in names)
    listed = (f"`{name}` ({what.rstrip('.')})" for name, what in zip(names, purposes, strict=True))
    methods, them = ("methods", "them") if len(names) > 1 else ("method", "it")
    return (
        f"{cls.__name__} has no {methods} {', '.join(listed)}; write {them} as {base.__name__} "
        "describes"
    )


def piece(registry: Registry[P]) -> Any:
    """Return the annotations of a model's field that holds one of the registry's pieces."""
    return BeforeValidator(registry.parse), PlainSerializer(registry.dump, return_type=dict)


def _refusal(remedy: str) -> PydanticCustomError:
    # The remedy travels as context because a literal brace in a template would be a placeholder.
    return PydanticCustomError("refused", "{remedy}", {"remedy": remedy})
