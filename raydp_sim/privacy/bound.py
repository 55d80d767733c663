"""What every bound states about itself, and how bounds are found by name."""

import difflib
import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import MultiMessageShuffle, Release, Shuffle
from raydp_sim.privacy.floors.floors import refuse_below

Array = NDArray[np.float64]
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
        by_name: whether it makes use of the randomizer that an event names.
    """

    real_orders: ClassVar[bool] = False
    by_name: ClassVar[bool] = False
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

    To add one, put a file with a subclass into `bounds/` and write `compute`.

    Attributes:
        by_name: whether it makes use of the randomizer that an event names; False: it holds for
            every randomizer of that loss, and is held against the one that leaks most.
        sharp: whether runs ask it alone where it holds, and no slower or larger ones.
    """

    by_name: ClassVar[bool] = False
    sharp: ClassVar[bool] = False

    def epsilon(self, events: Counted, delta: float) -> Result:
        """Return the run's epsilon at delta.

        Several messages to independent shufflers are taken as one shuffle each, and equal events
        are counted together, before `compute` sees them. No events: epsilon 0.

        Raises:
            Contradiction: a proved bound says less than the run costs at least, so it is wrong.
        """
        check_delta(delta)
        merged = merge(events, self.taken_apart)
        for event, _ in merged:
            self.refuse_others(event)
        if not merged:
            return Result(0.0)
        found = self.compute(merged, delta)
        if self.status == "proved":
            refuse_below(self.name, found.epsilon, merged, delta, self.by_name)
        return found

    def taken_apart(self, event: Release) -> list[Release]:
        """Return the events whose composition one event is, as `compute` is to see them."""
        return parts(event)

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return epsilon for different events that each happened at least once."""
        raise NotImplementedError


def check_delta(delta: float) -> None:
    """Refuse a delta outside of (0, 1)."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta}; it must lie in (0, 1)")


def parts(event: Release) -> list[Release]:
    """Return one `Shuffle` per message of a multi-message shuffle, any other event as it is.

    Example:
        >>> [part.epsilon0 for part in parts(MultiMessageShuffle((1.0, 0.5), 10))]
        [1.0, 0.5]
    """
    if isinstance(event, MultiMessageShuffle):
        return [Shuffle(loss, event.n, event.randomizer, unit=event.unit) for loss in event.losses]
    return [event]


def merge(
    events: Counted, split: Callable[[Release], list[Release]] = parts
) -> list[tuple[Release, int]]:
    """Count equal events together, one `Shuffle` per message of a multi-message one; drop zeros.

    What protects items and what protects clients is never composed: no bound says anything of it.

    Example:
        >>> merge([(MultiMessageShuffle((1.0, 1.0), 10), 3), (Shuffle(1.0, 10), 1)])[0][1]
        7
    """
    counts: dict[Release, int] = {}
    for event, times in events:
        if isinstance(times, bool) or not isinstance(times, Integral) or times < 0:
            raise ValueError(f"times is {times!r}; it must be a whole number >= 0")
        for part in split(event):
            counts[part] = counts.get(part, 0) + int(times)
    merged = [(event, times) for event, times in counts.items() if times]
    if len({event.unit for event, _ in merged}) > 1:
        raise ValueError("events of items and of clients are never composed")
    return merged


@cache
def _scan() -> tuple[list[RdpBound], list[RunBound]]:
    package = importlib.import_module("raydp_sim.privacy.bounds")
    rdp: list[RdpBound] = []
    run: list[RunBound] = []
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        run += getattr(module, "RUNS", ())
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
