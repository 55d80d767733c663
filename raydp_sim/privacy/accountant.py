"""Every bound on a run side by side, the best of them, and the loss that meets a target."""

import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from raydp_sim.privacy.bound import (
    Counted,
    RdpBound,
    RunBound,
    Status,
    check_delta,
    find_run,
    merge,
    rdp_bounds,
    run_bounds,
)
from raydp_sim.privacy.composition.search import largest_within
from raydp_sim.privacy.curves.caps import cap_rdp, pure_epsilon
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import Release
from raydp_sim.privacy.floors.floors import refuse_below


@dataclass(frozen=True)
class Line:
    """One bound's answer, or why it has none.

    Attributes:
        name, status, source: of the bound.
        value: raw; None if refused.
        capped: value, but no more than the pure loss; None if refused.
        alpha: the order that gave it, where orders play a part.
        note: what a reader has to know, such as a fallback.
        refused: why there is no value; empty if there is one.
        seconds: of processor time it took.
    """

    name: str
    status: Status
    source: str
    value: float | None = None
    capped: float | None = None
    alpha: int | None = None
    note: str = ""
    refused: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Account:
    """What every bound says, in the order of their files.

    Attributes:
        lines: one per bound.
        best: name of the least proved one, by its capped value; None if none applies.
    """

    lines: tuple[Line, ...]
    best: str | None

    def __getitem__(self, name: str) -> Line:
        for line in self.lines:
            if line.name == name:
                return line
        raise KeyError(name)

    @property
    def epsilon(self) -> float:
        """The least proved value, capped."""
        if self.best is None:
            raise NotApplicable("no proved bound applies to these events")
        value = self[self.best].capped
        assert value is not None
        return value


def account(
    events: Counted,
    delta: float,
    names: Collection[str] | None = None,
    progress: Callable[[str], None] = lambda name: None,
) -> Account:
    """Return every whole-run bound's epsilon at delta for events with their counts.

    Args:
        events: with their counts.
        delta: in (0, 1).
        names: of the bounds to ask; None: all.
        progress: called with the name of each bound before it is asked.

    Raises:
        Contradiction: a proved bound, or the cap, says less than the events cost at least. It is
            then wrong, so there is no table and no best of it: see privacy.floors.

    Example:
        >>> from raydp_sim.privacy.events import SubsampledShuffle
        >>> table = account([(SubsampledShuffle(2.0, 10**6, 1000), 10**5)], 1e-8)
        >>> round(table["rdp-subsampled"].value, 4)
        1.0402
    """
    check_delta(delta)
    merged = merge(events)
    cap = sum(times * pure_epsilon(event) for event, times in merged)
    refuse_below("pure", cap, merged, delta, named=False)

    def ask(bound: RunBound) -> tuple[float, int | None, str]:
        progress(bound.name)
        result = bound.epsilon(events, delta)
        return result.epsilon, result.alpha, result.note

    chosen = [bound for bound in run_bounds() if names is None or bound.name in names]
    return _collect([(bound, ask) for bound in chosen], cap)


def rdp_table(event: Release, alpha: float) -> Account:
    """Return every bound's divergence of one event at one order.

    Example:
        >>> from raydp_sim.privacy.events import Shuffle
        >>> rdp_table(Shuffle(1.0, 100), 5).best
        'clones'
    """

    def ask(bound: RdpBound) -> tuple[float, int | None, str]:
        if type(event) in bound.events and not bound.real_orders and not float(alpha).is_integer():
            raise NotApplicable(f"{bound.name} takes whole orders")
        return bound.rdp(event, alpha), None, ""

    return _collect([(bound, ask) for bound in rdp_bounds()], cap_rdp(event, alpha))


def _collect(questions: list[tuple[Any, Callable[[Any], Any]]], cap: float) -> Account:
    lines = []
    for bound, ask in questions:
        start = time.process_time()
        try:
            value, alpha, note = ask(bound)
            line = Line(
                bound.name,
                bound.status,
                bound.source,
                value,
                min(value, cap),
                alpha,
                note,
                "",
                time.process_time() - start,
            )
        except (NotApplicable, Unsupported) as silence:
            line = Line(bound.name, bound.status, bound.source, refused=str(silence))
        lines.append(line)
    proved = [line for line in lines if line.status == "proved" and line.capped is not None]
    # Where several reach the cap, the one whose own value it is.
    best = min(proved, key=lambda line: (line.capped or 0.0, line.value or 0.0), default=None)
    return Account(tuple(lines), best.name if best else None)


def calibrate(
    target: float,
    delta: float,
    make_event: Callable[[float], Release],
    times: int,
    bound: str = "best",
    largest: float = 20.0,
) -> float:
    """Return the largest local loss epsilon0 whose run stays within the target.

    The value was itself evaluated and met the target; the true optimum is at most 2e-6 of it above
    where the bound rises with epsilon0.

    Args:
        target: epsilon > 0 of the run.
        delta: in (0, 1).
        make_event: the event for a given epsilon0.
        times: how often it happens, >= 1.
        bound: name of a whole-run bound, or "best": the proved one that is best there.
        largest: epsilon0 to try at most.

    Example:
        >>> from raydp_sim.privacy.events import SubsampledShuffle
        >>> make = lambda epsilon0: SubsampledShuffle(epsilon0, 10**6, 1000)
        >>> round(calibrate(1.0402186, 1e-8, make, 10**5, "rdp-subsampled"), 4)
        2.0
    """
    if not target > 0.0:
        raise ValueError(f"target is {target}; it must be > 0")

    def largest_by(name: str, least: float) -> float:
        chosen = find_run(name)

        def epsilon(epsilon0: float) -> float:
            event = make_event(epsilon0)
            added = times * pure_epsilon(event)
            if added <= target:
                return added  # the bound could only say less, and at large losses it is slow
            try:
                value = chosen.epsilon([(event, times)], delta).epsilon
            except NotApplicable:
                value = math.inf
            return min(value, added)

        return largest_within(epsilon, target, least, largest)

    least = 1e-6 * largest
    if bound != "best":
        found = largest_by(bound, least)
    else:
        found, tried = 0.0, set[str]()
        # What is best changes with epsilon0, so ask again where the last one ended.
        choice = account([(make_event(1.0), times)], delta).best
        while choice is not None and choice not in tried:
            tried.add(choice)
            found = max(found, largest_by(choice, found or least))
            choice = account([(make_event(found or least), times)], delta).best
    if found == 0.0:
        raise NotApplicable(f"{bound} allows no epsilon0 at epsilon {target:g}, delta {delta:g}")
    return found
