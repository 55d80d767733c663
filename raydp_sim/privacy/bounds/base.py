"""What every bound states about itself, and how bounds are found by name."""

import difflib
import importlib
import inspect
import math
import pkgutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np

from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import MultiMessageShuffle, Release, Shuffle
from raydp_sim.privacy.numerics import Array

Status = Literal["proved", "lower", "heuristic"]
Counted = Sequence[tuple[Release, int]]
"""Events with how often each happened."""


class _Bound:
    """What a bound says about itself.

    Attributes:
        name: by which it is found.
        status: "proved" (upper bound), "lower" (on the worst randomizer) or "heuristic".
        events: kinds of event it is proved for; others are refused by name.
        source: the theorem.
    """

    name: ClassVar[str]
    status: ClassVar[Status] = "proved"
    events: ClassVar[tuple[type[Any], ...]]
    source: ClassVar[str]

    def refuse_others(self, event: object) -> None:
        """Raise `Unsupported` unless the bound is proved for this kind of event."""
        if type(event) not in self.events:
            kinds = ", ".join(kind.__name__ for kind in self.events)
            kind = type(event).__name__
            use = [b.name for b in rdp_bounds() if type(event) in b.events and b.status == "proved"]
            instead = f"; use {' or '.join(use)}" if use and isinstance(self, RdpBound) else ""
            raise Unsupported(f"{self.name} is not proved for {kind}, only for {kinds}{instead}")


class RdpBound(_Bound):
    """A bound on the Renyi divergence of one event, at integer orders unless it says more.

    A subclass gives `one` (one order) or `many` (several at once). Values are raw: they may exceed
    the cap of `caps.cap_rdp`.

    Attributes:
        real_orders: whether real orders > 1 are allowed.
        streams: whether it belongs to the running best; False where another is never worse.
    """

    real_orders: ClassVar[bool] = False
    streams: ClassVar[bool] = False

    def rdp(self, event: Release, alpha: float) -> float:
        """Return the divergence of order alpha, raw.

        Raises:
            Unsupported: for an event of a kind it is not proved for.
            NotApplicable: outside of the parameters where it holds.
        """
        self.refuse_others(event)
        self._check_order(alpha)
        return float(self.many(event, np.array([alpha], dtype=np.float64), strict=True)[0])

    def rdp_vector(self, event: Release, orders: Iterable[float] | Array) -> Array:
        """Return the divergence at several ascending orders, raw.

        It is inf where the bound does not apply, so that a minimum passes over those orders.
        """
        self.refuse_others(event)
        array = np.asarray(orders, dtype=np.float64)
        for alpha in array:
            self._check_order(alpha)
        return self.many(event, array)

    def many(self, event: Any, orders: Array, strict: bool = False) -> Array:
        """Return the divergences at ascending orders; override where sharing work pays."""
        values = []
        for alpha in orders:
            try:
                values.append(self.one(event, float(alpha)))
            except NotApplicable:
                if strict:
                    raise
                values.append(math.inf)
        return np.array(values)

    def worth(self, event: Any) -> bool:
        """Say whether the running best of this event should evaluate the bound."""
        return self.streams

    def worth_from(self, event: Any) -> float:
        """Return the least order at which a search should evaluate the bound; it holds below."""
        return 0.0

    def worth_up_to(self, event: Any) -> float:
        """Return the largest order at which a search should evaluate the bound; it holds beyond."""
        return math.inf

    def one(self, event: Any, alpha: float) -> float:
        """Return the divergence at one order."""
        raise NotImplementedError

    def _check_order(self, alpha: float) -> None:
        whole = isinstance(alpha, Integral) or float(alpha).is_integer()
        if self.real_orders and not (alpha > 1.0 and math.isfinite(alpha)):
            raise ValueError(f"alpha is {alpha}; {self.name} takes real orders > 1")
        if not self.real_orders and not (whole and alpha >= 2):
            raise ValueError(f"alpha is {alpha}; {self.name} takes whole orders >= 2")


@dataclass(frozen=True)
class Result:
    """What a whole run costs by one bound.

    Attributes:
        epsilon: at the delta asked for, raw.
        alpha: the order that gave it; None where orders play no part.
        note: what a reader has to know, such as a fallback.
    """

    epsilon: float
    alpha: int | None = None
    note: str = ""


class RunBound(_Bound):
    """A bound on a whole run: events with their counts in, epsilon at delta out.

    To add one, put a file with a subclass into this package and write `compute`.
    """

    def epsilon(self, events: Counted, delta: float) -> Result:
        """Return the run's epsilon at delta.

        Several messages to independent shufflers are taken as one shuffle each, and equal events
        are counted together, before `compute` sees them. No events: epsilon 0.
        """
        check_delta(delta)
        merged = merge(events)
        for event, _ in merged:
            self.refuse_others(event)
        return self.compute(merged, delta) if merged else Result(0.0)

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return epsilon for different events that each happened at least once."""
        raise NotImplementedError


def check_delta(delta: float) -> None:
    """Refuse a delta outside of (0, 1)."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta}; it must lie in (0, 1)")


def merge(events: Counted) -> list[tuple[Release, int]]:
    """Count equal events together, one `Shuffle` per message of a multi-message one; drop zeros.

    Example:
        >>> merge([(MultiMessageShuffle((1.0, 1.0), 10), 3), (Shuffle(1.0, 10), 1)])[0][1]
        7
    """
    counts: dict[Release, int] = {}
    for event, times in events:
        if isinstance(times, bool) or not isinstance(times, Integral) or times < 0:
            raise ValueError(f"times is {times!r}; it must be a whole number >= 0")
        for part in _parts(event):
            counts[part] = counts.get(part, 0) + int(times)
    return [(event, times) for event, times in counts.items() if times]


def _parts(event: Release) -> list[Release]:
    if isinstance(event, MultiMessageShuffle):
        return [Shuffle(loss, event.n, event.randomizer) for loss in event.losses]
    return [event]


@cache
def _scan() -> tuple[list[RdpBound], list[RunBound]]:
    package = importlib.import_module(__package__ or "raydp_sim.privacy.bounds")
    rdp: list[RdpBound] = []
    run: list[RunBound] = []
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if cls.__module__ == module.__name__ and "name" in vars(cls):
                if issubclass(cls, RdpBound):
                    rdp.append(cls())
                elif issubclass(cls, RunBound):
                    run.append(cls())
    return rdp, run


def rdp_bounds() -> list[RdpBound]:
    """Return every bound on one event's divergence, with its default parameters."""
    return _scan()[0]


def run_bounds() -> list[RunBound]:
    """Return every bound on a whole run, with its default parameters."""
    return _scan()[1]


def find_rdp(name: str, event: Release) -> RdpBound:
    """Return the bound of this name for this event; `lower` exists for two kinds of event.

    Example:
        >>> find_rdp("upper1", Shuffle(1.0, 100)).source
        '000 Theorem 5.3.1 (5.4)'
    """
    named = [bound for bound in rdp_bounds() if bound.name == name]
    if not named:
        raise ValueError(_unknown(name, [bound.name for bound in rdp_bounds()]))
    fitting = [bound for bound in named if type(event) in bound.events]
    if not fitting:
        named[0].refuse_others(event)
    return fitting[0]


def find_run(name: str) -> RunBound:
    """Return the whole-run bound of this name.

    Example:
        >>> find_run("rdp-upper1").status
        'proved'
    """
    for bound in run_bounds():
        if bound.name == name:
            return bound
    raise ValueError(_unknown(name, [bound.name for bound in run_bounds()]))


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"bound is {name!r}; {hint}choose one of {', '.join(sorted(set(known)))}"
