"""The benchmark of mechanisms: reports per CPU-second, whether epsilon matters, and the error."""

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from raydp_sim.errors import InputError
from raydp_sim.figures.simulate import drawn
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.mechanisms.compare import Budget, built_with
from raydp_sim.random import Stream

EPSILONS = (1.0, 2.0, 4.0, 8.0)
VECTORS, CATEGORIES = "vectors of the l2 ball", "categories"
_UNIT = {VECTORS: "vectors", CATEGORIES: "reports"}
_NORM = {"l2": VECTORS, "category": CATEGORIES}
# Of one process and CPU-second, at every epsilon.
_GOALS: dict[str, dict[str | None, float]] = {
    VECTORS: {"privunit": 1e5, "l2": 2e4, "l2, kashin": 2e4, "sqkr": 2e4},
    CATEGORIES: {None: 2e7},
}
# Further ways to play a kind, shown as rows of their own.
_VARIANTS: dict[str, dict[str, Any]] = {"l2": {"rotation": "kashin"}}
_NOTES = {"rappor": "draws a coin per category for each report"}
# Doubles of inputs that are in memory at a time.
_BLOCK = 1 << 21
_REPEATS, _SECONDS = 3, 2.0


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Attributes:
        dimension: of the vectors.
        vectors: how many of them.
        categories: how many there are.
        reports: of a category each.
        epsilons: of one report.
    """

    dimension: int = 1000
    vectors: int = 10_000
    categories: int = 256
    reports: int = 1_000_000
    epsilons: tuple[float, ...] = EPSILONS

    def of(self, group: str) -> tuple[int, int]:
        """Return the dimension or number of categories, and the reports, of a group."""
        if group == VECTORS:
            return self.dimension, self.vectors
        return self.categories, self.reports


@dataclass(frozen=True)
class Row:
    """One mechanism at one epsilon.

    Attributes:
        group: `VECTORS` or `CATEGORIES`.
        name: of the mechanism.
        epsilon: of one report; None if it has none.
        rate: reports per CPU-second of one process, randomizing alone.
        floor: the same of NumPy drawing d normals per vector, or one uniform per category.
        measured: squared error of the mean of this batch.
        exact: its expectation, as the mechanism states it.
        goal: least rate; None if there is no goal.
        note: what to know of the rate.
    """

    group: str
    name: str
    epsilon: float | None
    rate: float
    floor: float
    measured: float
    exact: float
    goal: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached."""
        return None if self.goal is None else self.rate >= self.goal


def rows(
    size: Size | None = None,
    kinds: Iterable[str] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> Iterator[Row]:
    """Measure every mechanism for vectors or categories; yield each row as it is there.

    Args:
        size: how much is measured.
        kinds: which; None: all that are registered and can be compared.
        progress: called with what is being measured.
    """
    size = size or Size()
    floors: dict[str, float] = {}
    compared = [kind for kind, cls in MECHANISMS.kinds.items() if cls.compared]
    for kind in compared if kinds is None else kinds:
        for extra in ({}, *([_VARIANTS[kind]] if kind in _VARIANTS else [])):
            for epsilon in size.epsilons:
                found = _found(kind, epsilon, size, extra)
                if found is None:
                    break
                group, mechanism = found
                named = ", ".join([kind, *map(str, extra.values())])
                progress(f"{named} at epsilon {epsilon:g}")
                if group not in floors:
                    floors[group] = _floor(group, size)
                goals = _GOALS[group]
                goal = goals.get(named, goals.get(None))
                yield _row(group, named, mechanism, epsilon, size, floors[group], goal)
                if mechanism.guarantee == "none":
                    break


def _found(
    kind: str, epsilon: float, size: Size, extra: dict[str, Any]
) -> tuple[str, Mechanism] | None:
    """Return a mechanism that clients run, of either group, or None."""
    cls = MECHANISMS.kinds[kind]
    if cls.where != "client":
        return None
    for group in _UNIT:
        dimension, n = size.of(group)
        try:
            made = built_with(cls, Budget(dimension, n, epsilon), **extra)
        except InputError:
            continue
        domain = made.domain
        if _NORM.get(domain.norm) == group and domain.dimension == dimension:
            return group, made
    return None


def _row(
    group: str,
    name: str,
    mechanism: Mechanism,
    epsilon: float,
    size: Size,
    floor: float,
    goal: float | None,
) -> Row:
    _, n = size.of(group)
    step = max(1, min(n, _BLOCK // mechanism.domain.width))
    mechanism.randomize(drawn(mechanism.domain, 2, Stream(1)), _clients(0, 0, 2))  # first touch
    taken: list[float] = []
    measured = exact = 0.0
    while len(taken) < _REPEATS and sum(taken) < _SECONDS:
        seconds, measured, exact = _batch(mechanism, n, step, len(taken))
        taken.append(seconds)
    return Row(
        group,
        name,
        None if mechanism.guarantee == "none" else epsilon,
        n / max(statistics.median(taken), 1e-9),
        floor,
        measured,
        exact,
        goal,
        _NOTES.get(mechanism.kind, ""),
    )


def _clients(repeat: int, first: int, last: int) -> Any:
    return Stream(7).at("bench", repeat).clients(np.arange(first, last))


def _batch(mechanism: Mechanism, n: int, step: int, repeat: int) -> tuple[float, float, float]:
    """Return the CPU-seconds of randomizing n values, the error of their mean, and its exact one.

    Drawing the inputs, folding and decoding are not timed.
    """
    counts, seconds, exact = mechanism.zero(), 0.0, 0.0
    truth: Any = 0.0
    for first in range(0, n, step):
        last = min(first + step, n)
        values = drawn(mechanism.domain, last - first, Stream(5).at("inputs", first))
        stream = _clients(repeat, first, last)
        start = time.process_time()
        payload = mechanism.randomize(values, stream).payload
        seconds += time.process_time() - start
        for message in range(mechanism.messages_per_report):
            index = np.full(len(payload), message)
            counts = mechanism.fold(counts, index, payload[:, message])
        exact += float(mechanism.mse(values).sum()) / n**2
        truth = truth + _sum(mechanism, values) / n
    estimate = mechanism.decode(counts, Stream(3))
    return seconds, float(((estimate - truth) ** 2).sum()), exact


def _sum(mechanism: Mechanism, values: Any) -> Any:
    if mechanism.domain.norm == "category":
        numbers = values[:, 0].astype(np.int64)
        return np.bincount(numbers, minlength=mechanism.domain.dimension).astype(np.float64)
    return values.sum(axis=0)


def _floor(group: str, size: Size) -> float:
    """Return reports per CPU-second of NumPy only drawing: nothing private does less."""
    dimension, n = size.of(group)
    generator = np.random.Generator(np.random.SFC64(1))
    step = max(1, min(n, _BLOCK // (dimension if group == VECTORS else 1)))
    taken = []
    for _ in range(_REPEATS):
        start = time.process_time()
        for first in range(0, n, step):
            count = min(step, n - first)
            if group == VECTORS:
                generator.standard_normal((count, dimension))
            else:
                generator.random(count)
        taken.append(time.process_time() - start)
    return n / max(statistics.median(taken), 1e-9)


def spreads(found: list[Row]) -> dict[str, float]:
    """Return by mechanism how many times its slowest epsilon takes as long as its fastest.

    Example:
        >>> two = [Row(VECTORS, "a", e, r, 1.0, 0.0, 0.0) for e, r in ((1.0, 10.0), (2.0, 5.0))]
        >>> spreads(two)
        {'a': 2.0}
    """
    rates: dict[str, list[float]] = {}
    for row in found:
        rates.setdefault(row.name, []).append(row.rate)
    return {name: max(each) / min(each) for name, each in rates.items() if len(each) > 1}


def document(found: list[Row], machine: dict[str, object]) -> dict[str, object]:
    """Return the whole benchmark as one document."""
    return {
        "benchmark": "mechanisms",
        "machine": machine,
        "rows": [asdict(row) | {"to_floor": row.rate / row.floor, "met": row.met} for row in found],
        "slowest_to_fastest_epsilon": spreads(found),
        "met": all(row.met is not False for row in found),
    }
