"""Every bound on a run side by side, the best of them, and the loss that meets a target."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from raydp_sim.privacy.bounds.base import (
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
from raydp_sim.privacy.caps import cap_rdp, pure_epsilon
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import Release


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


def account(events: Counted, delta: float) -> Account:
    """Return every whole-run bound's epsilon at delta for events with their counts.

    Example:
        >>> from raydp_sim.privacy.events import SubsampledShuffle
        >>> table = account([(SubsampledShuffle(2.0, 10**6, 1000), 10**5)], 1e-8)
        >>> round(table["rdp-subsampled"].value, 4)
        1.0402
    """
    check_delta(delta)
    cap = sum(times * pure_epsilon(event) for event, times in merge(events))

    def ask(bound: RunBound) -> tuple[float, int | None, str]:
        result = bound.epsilon(events, delta)
        return result.epsilon, result.alpha, result.note

    return _collect([(bound, ask) for bound in run_bounds()], cap)


def rdp_table(event: Release, alpha: float) -> Account:
    """Return every bound's divergence of one event at one order.

    Example:
        >>> from raydp_sim.privacy.events import Shuffle
        >>> rdp_table(Shuffle(1.0, 100), 5).best
        'clones'
    """

    def ask(bound: RdpBound) -> tuple[float, int | None, str]:
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
    best = min(proved, key=lambda line: line.capped or 0.0, default=None)
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

    The value was itself evaluated and met the target; the true optimum is at most 1e-6 of it above
    where the bound rises with epsilon0.

    Args:
        target: epsilon > 0 of the run.
        delta: in (0, 1).
        make_event: the event for a given epsilon0.
        times: how often it happens, >= 1.
        bound: name of a whole-run bound, or "best": whichever proved one allows most.
        largest: epsilon0 to try at most.

    Example:
        >>> from raydp_sim.privacy.events import SubsampledShuffle
        >>> make = lambda epsilon0: SubsampledShuffle(epsilon0, 10**6, 1000)
        >>> round(calibrate(1.0402186, 1e-8, make, 10**5, "rdp-subsampled"), 4)
        2.0
    """
    if not target > 0.0:
        raise ValueError(f"target is {target}; it must be > 0")
    if bound == "best":
        choices = [b for b in run_bounds() if b.status == "proved"]
    else:
        choices = [find_run(bound)]
    found = 0.0
    for choice in choices:
        try:
            found = _largest(choice, target, delta, make_event, times, found, largest)
        except Unsupported:
            if bound != "best":
                raise
    if found == 0.0:
        raise NotApplicable(f"{bound} allows no epsilon0 at epsilon {target:g}, delta {delta:g}")
    return found


def _largest(
    bound: RunBound,
    target: float,
    delta: float,
    make_event: Callable[[float], Release],
    times: int,
    found: float,
    largest: float,
) -> float:
    """Return the largest epsilon0 that the bound allows, if larger than what was found before."""

    def within(epsilon0: float) -> bool:
        event = make_event(epsilon0)
        try:
            value = bound.epsilon([(event, times)], delta).epsilon
        except NotApplicable:
            return False
        return min(value, times * pure_epsilon(event)) <= target

    low = found * (1.0 + 1e-6) if found else 1e-6 * largest
    if not within(low):
        return found
    high = low
    while high < largest:
        high = min(largest, 2.0 * high)
        if not within(high):
            break
        low = high
    while high - low > 1e-6 * low and low < largest:
        middle = 0.5 * (low + high)
        if within(middle):
            low = middle
        else:
            high = middle
    return low
