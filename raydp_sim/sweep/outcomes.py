"""What is kept of every point of a sweep, and which point is best."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from raydp_sim.sweep.grid import Point, shown

# From what the whole run has learned to what one release has; of bandits, what learning cost.
_MEASURES = ("running_squared_error", "squared_error_population", "squared_error_cohort", "regret")


@dataclass(frozen=True)
class Outcome:
    """A point that was played.

    Attributes:
        point: the values swept.
        error: its error, the mean over repetitions; None if nothing was released.
        standard_error: of that mean; None with one repetition.
        epsilon: of the client charged most.
        delta: that goes with it.
        epsilon_local: of one report; None where reports have no guarantee of their own.
        bits: of one report.
        wire_bytes: of all reports.
        releases: per repetition.
        wall_s: seconds that it took.
    """

    point: Point
    error: float | None
    standard_error: float | None
    epsilon: float
    delta: float
    epsilon_local: float | None
    bits: int
    wire_bytes: int
    releases: float
    wall_s: float

    @classmethod
    def of(cls, point: Point, summary: Mapping[str, Any], measure: str | None) -> "Outcome":
        """Take a point's row from the summary of its run."""
        privacy, sent = summary["privacy"], summary["communication"]
        return cls(
            point=point,
            error=summary["metrics"].get(measure),
            standard_error=summary.get("standard_errors", {}).get(measure),
            epsilon=privacy["epsilon"],
            delta=privacy["delta"],
            epsilon_local=privacy["epsilon_local"],
            bits=sent["bits_per_report"],
            wire_bytes=sent["wire_bytes"],
            releases=summary["metrics"]["releases"],
            wall_s=summary["timing"]["wall_s"],
        )

    def document(self) -> dict[str, Any]:
        """Return the row: the values swept first."""
        row = {name: value for name, value in vars(self).items() if name != "point"}
        return {**self.point.values, **row}


def measure_of(summaries: Sequence[Mapping[str, Any]]) -> str | None:
    """Return by which error runs can be compared: one that all who released anything have.

    Example:
        >>> measure_of([{"metrics": {"squared_error_cohort": 2.0, "releases": 1}}])
        'squared_error_cohort'
    """
    scored = [run["metrics"] for run in summaries if run["metrics"]["releases"]]
    common = [name for name in (scored[0] if scored else ()) if all(name in run for run in scored)]
    known = [name for name in _MEASURES if name in common]
    other = [name for name in common if "squared" in name]
    return next(iter(known + other), None)


def table(outcomes: Sequence[Outcome], measure: str | None) -> pa.Table:
    """Return one row per point; a field of several types is given as text.

    Its metadata say which error `error` is.
    """
    rows = [outcome.document() for outcome in outcomes]
    columns: dict[str, pa.Array] = {}
    swept = outcomes[0].point.values if outcomes else {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        if name in swept:
            columns[name] = pa.array(_alike(values))
        else:
            real = name not in ("bits", "wire_bytes")
            columns[name] = pa.array(values, pa.float64() if real else pa.int64())
    return pa.table(columns).replace_schema_metadata({"error": measure or "none"})


def _alike(values: list[Any]) -> list[Any]:
    for kinds in ((bool,), (int, float), (str,)):
        if all(isinstance(value, kinds) for value in values):
            mixed = kinds == (int, float) and any(isinstance(value, float) for value in values)
            if kinds == (int, float) and any(isinstance(value, bool) for value in values):
                break
            return [float(value) for value in values] if mixed else values
    return [shown(value) for value in values]


@dataclass(frozen=True)
class Best:
    """The points worth a look.

    Attributes:
        least_error: of all points; of equal ones that with the least epsilon.
        close: other points whose error is within two standard errors of the difference.
        cheapest: the least error among points of the least epsilon; None if epsilon does not vary.
    """

    least_error: Outcome
    close: int
    cheapest: Outcome | None


def best(outcomes: Sequence[Outcome]) -> Best | None:
    """Return the best points; None if nothing was released at any.

    Example:
        >>> made = [Outcome(Point({"a": a}), e, None, 1.0 / e, 0.0, None, 1, 1, 1, 0.1)
        ...         for a, e in ((1, 0.5), (2, 0.25))]
        >>> found = best(made)
        >>> str(found.least_error.point), str(found.cheapest.point)
        ('a=2', 'a=1')
    """
    able = [one for one in outcomes if one.error is not None and math.isfinite(one.error)]
    if not able:
        return None
    first = min(able, key=_order)
    low = min(one.epsilon for one in able)
    varied = any(not math.isclose(one.epsilon, low, rel_tol=1e-9) for one in able)
    cheap = [one for one in able if math.isclose(one.epsilon, low, rel_tol=1e-9)]
    close = sum(one is not first and _close(first, one) for one in able)
    return Best(first, close, min(cheap, key=_order) if varied else None)


def _order(one: Outcome) -> tuple[float, float, str]:
    return one.error or 0.0, one.epsilon, one.point.folder


def _close(first: Outcome, other: Outcome) -> bool:
    if first.standard_error is None or other.standard_error is None:
        return False
    assert first.error is not None and other.error is not None
    apart = other.error - first.error
    return apart <= 2.0 * math.hypot(first.standard_error, other.standard_error)
