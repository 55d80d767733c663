"""Whole runs in two ways: divergences added order by order, or one shuffle's epsilon composed."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from raydp_sim.privacy import events as ev
from raydp_sim.privacy.bound import RdpBound, Result, RunBound
from raydp_sim.privacy.composition.conversion import ALPHA_MAX, best_order
from raydp_sim.privacy.composition.theorems import Kind, compose, compose_unequal
from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.curves.sampling import subsample
from raydp_sim.privacy.errors import NotApplicable


class RdpRun(RunBound):
    """Add one bound's divergences over the run and convert at the best order.

    Unequal events are added order by order on common orders; the time does not depend on counts.

    Attributes:
        bound: of each event.
        alpha_max: largest order tried.
        quick: whether the bound is costly, so that fewer orders are tried.
    """

    bound: ClassVar[RdpBound]
    alpha_max: ClassVar[int] = ALPHA_MAX
    note: ClassVar[str] = ""
    quick: ClassVar[bool] = False

    def curve(self, event: Any, orders: Array) -> Array:
        """Return one event's divergences, raw; inf where the bound is silent or too slow."""
        swift = orders <= self.bound.worth_up_to(event)
        values = np.full(len(orders), math.inf)
        values[swift] = self.bound.rdp_vector(event, orders[swift])
        return values

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return the least epsilon over whole orders."""

        def total(orders: Array) -> Array:
            vectors = [times * _curve(self, event, orders.tobytes()) for event, times in events]
            summed: Array = sum(vectors[1:], start=vectors[0])
            return summed

        best = best_order(total, delta, self.alpha_max, quick=self.quick)
        if math.isinf(best.epsilon):
            raise NotApplicable(f"{self.name} holds at no order tried")
        return Result(best.epsilon, best.alpha, self.note)


@lru_cache(maxsize=4096)
def _curve(run: RdpRun, event: Any, orders: bytes) -> Array:
    """Return one event's divergences: a run that goes on asks for those of one release again."""
    values = run.curve(event, np.frombuffer(orders))
    values.flags.writeable = False
    return values


def added(name: str, bound: RdpBound, events: tuple[type[Any], ...], **more: Any) -> RdpRun:
    """Return the run bound that adds one bound's divergences; a row of a table of such.

    Args:
        name: of the run bound.
        bound: on one event.
        events: kinds of event that it is for.
        more: other attributes of `RdpRun`, and its status.
    """
    stated = {"name": name, "bound": bound, "events": events, "source": bound.source}
    run: RdpRun = type(name, (RdpRun,), {**stated, **more})()
    return run


Amplifier = Callable[[float, int, float], float]
"""(epsilon0, messages, delta) -> epsilon of one shuffle; raises NotApplicable where silent."""

# Messages shuffled, and the rates that multiply e^epsilon - 1 and delta (001 Lemmas 7 and 11).
SHAPES: dict[type, Callable[[Any], tuple[int, float, float]]] = {
    ev.Shuffle: lambda e: (e.n, 1.0, 1.0),
    ev.SubsampledShuffle: lambda e: (e.sampled, e.rate, e.rate),
    ev.CldpRound: lambda e: (
        e.sampled_clients * e.sampled_points,
        e.rate if e.sampled_points == 1 else e.sampled_points / e.points,
        e.rate,
    ),
}


class ComposedRun(RunBound):
    """Amplify one round by shuffling, then by sampling, and compose the rounds.

    delta' = split delta goes to the composition, delta~ = (1 - split) delta/(gamma T) to each
    shuffle; the seeds take one half. Where the shuffle's bound is silent the round is
    (epsilon0, 0), and the note says so.
    """

    events = tuple(SHAPES)
    split: ClassVar[float] = 0.5
    kind: ClassVar[Kind] = "kov"

    def amplify(self, epsilon0: float, messages: int, delta: float) -> float:
        """Return epsilon of one shuffle."""
        raise NotImplementedError

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return the composed epsilon."""
        return composed(events, delta, self.amplify, self.kind, self.split)


def amplified(name: str, amplifier: Amplifier, source: str, **more: Any) -> ComposedRun:
    """Return the run bound that composes a bound on one shuffle; a row of a table of such.

    Args:
        name: of the run bound.
        amplifier: epsilon of one shuffle.
        source: of both theorems.
        more: other attributes of `ComposedRun`.
    """
    stated = {"name": name, "amplify": staticmethod(amplifier), "source": source}
    run: ComposedRun = type(name, (ComposedRun,), {**stated, **more})()
    return run


def composed(
    events: list[tuple[Any, int]],
    delta: float,
    amplify: Amplifier,
    kind: Kind = "kov",
    split: float = 0.5,
) -> Result:
    """Return epsilon of a run by composing (epsilon, delta) of its rounds.

    Args:
        events: different `Shuffle`, `SubsampledShuffle` or `CldpRound` with counts >= 1.
        delta: of the whole run.
        amplify: the bound on one shuffle.
        kind: the composition theorem; kov_exact needs equal events.
        split: share of delta that the composition gets, in (0, 1).

    Example:
        >>> from raydp_sim.privacy.bounds.closed_forms import fmt_closed
        >>> event = ev.SubsampledShuffle(2.0, 10**6, 1000)
        >>> round(composed([(event, 10**5)], 1e-8, fmt_closed).epsilon, 3)
        14.48
    """
    if not 0.0 < split < 1.0:
        raise ValueError(f"split is {split}; it must lie in (0, 1)")
    rounds = sum(times for _, times in events)
    uses, fallbacks = [], []
    for event, times in events:
        messages, rate, delta_rate = SHAPES[type(event)](event)
        each = (1.0 - split) * delta / (delta_rate * rounds)
        epsilon = 0.0
        if each < 1.0:
            try:
                epsilon = min(event.epsilon0, amplify(event.epsilon0, messages, each))
            except NotApplicable as silence:
                epsilon = event.epsilon0
                fallbacks.append(f"a round is taken as (epsilon0, 0): {silence}")
        uses.append((subsample(epsilon, each, rate)[0], times))
    note = "; ".join(fallbacks)
    if kind == "kov_exact":
        if len(uses) > 1:
            raise NotApplicable("kov_exact needs equal events")
        return Result(compose(*uses[0], split * delta, kind), None, note)
    return Result(compose_unequal(uses, split * delta, kind), None, note)
