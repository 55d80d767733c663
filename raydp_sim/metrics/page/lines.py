"""Panels of lines over the releases: which columns are drawn together, and their points."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from raydp_sim.metrics import columns, streams
from raydp_sim.metrics.page.seen import Seen
from raydp_sim.metrics.page.thin import Floats, by_release, kept, numbers

Panel = dict[str, Any]
RELEASE = {"label": "release"}


class Line(NamedTuple):
    """A column of a stream, and how it is said and drawn.

    Attributes:
        stream, column: where it is.
        label: in words; None: as the column is called.
        colour: number of it.
        style: a solid line, `dashed`, or `below` other lines that it nearly coincides with.
    """

    stream: str
    column: str
    label: str | None = None
    colour: int = 0
    style: str = ""

    @property
    def words(self) -> str:
        """What the line is called."""
        return self.label or self.column.replace("_", " ")


class Drawn(NamedTuple):
    """A panel that may be there.

    Attributes:
        tab: of the page.
        title: what it answers.
        lines: those of them that there are.
        unit: of the values; None: that of the first column.
        label: of the values.
        log: whether the axis of values is logarithmic, where all are positive.
        zero: whether it begins at 0.
        note: what a reader has to know.
    """

    tab: str
    title: str
    lines: Sequence[Line]
    label: str
    unit: str | None = None
    log: bool = False
    zero: bool = False
    note: str = ""


def panel(seen: Seen, drawn: Drawn, marks: bool = True) -> Panel | None:
    """Return a panel; None where none of its lines is there to be seen.

    With several repetitions lines are means, and bands one standard error to each side.

    Args:
        seen: the run.
        drawn: which panel.
        marks: whether batches that were withheld are marked along the axis.
    """
    found = [line for line in drawn.lines if _has(seen, line)]
    points = [(line, *_points(seen, line)) for line in found]
    points = [each for each in points if np.isfinite(each[2]).any()]
    if not points:
        return None
    at = points[0][1]
    alike = all(np.array_equal(at, x) for _, x, _, _ in points)
    if not alike:
        at = np.unique(np.concatenate([x for _, x, _, _ in points]))
    repeated = any(np.isfinite(error).any() for *_, error in points)
    series, data = [], []
    for line, x, mean, error in points:
        look = {"label": line.words, "colour": line.colour, "style": line.style}
        series.append({**look, "gaps": True})
        data.append((mean, error) if alike else (_placed(at, x, mean), _placed(at, x, error)))
    log = drawn.log and all((mean[np.isfinite(mean)] > 0).any() for _, _, mean, _ in points)
    chosen = kept([mean for mean, _ in data])
    made = [numbers(at[chosen])] + [numbers(_fit(mean, log)[chosen]) for mean, _ in data]
    first = points[0][0]
    return {
        "id": drawn.title.lower().replace(" ", "-"),
        "tab": drawn.tab,
        "kind": "lines",
        "title": drawn.title,
        "note": drawn.note,
        "marks": sorted({_mark(seen, line.stream) for line, *_ in points}),
        "x": RELEASE,
        "y": {
            "label": drawn.label,
            "unit": _unit(seen, first) if drawn.unit is None else drawn.unit,
            "log": bool(log),
            "zero": drawn.zero and not log,
        },
        "series": series,
        "data": made,
        "bands": [_band(mean[chosen], error[chosen], log) for mean, error in data]
        if repeated
        else [],
        "withheld": withheld(seen) if marks else [],
        "rows": len(at),
    }


def withheld(seen: Seen) -> list[float | None]:
    """Return the releases, from 1, that were withheld since too few reports had come."""
    found = np.unique(seen.table("withheld", []).column("release").to_numpy()) + 1.0
    return numbers(found[kept([found])])


def unit(schema: pa.Schema, column: str) -> str:
    """Return what a column is measured in; nothing if that is not said."""
    found: bytes = (schema.field(column).metadata or {}).get(b"unit", b"")
    return found.decode()


def _placed(at: Floats, x: Floats, values: Floats) -> Floats:
    whole = np.full(len(at), np.nan)
    whole[np.searchsorted(at, x)] = values
    return whole


def _has(seen: Seen, line: Line) -> bool:
    return line.stream in seen.schemas and line.column in seen.schemas[line.stream].names


def _unit(seen: Seen, line: Line) -> str:
    return unit(seen.schemas[line.stream], line.column)


def _mark(seen: Seen, stream: str) -> str:
    return streams.visibility(seen.schemas[stream])


def _points(seen: Seen, line: Line) -> tuple[Floats, Floats, Floats]:
    rows = seen.table(line.stream, _together(seen, line.stream))
    at, [(mean, error)] = by_release(
        rows["release"].to_numpy().astype(np.int64), [seen.column(rows, line.column)]
    )
    return at, mean, error


def _together(seen: Seen, stream: str) -> list[str]:
    """Return the columns that are read at once, so that a part is read once: all numbers."""
    kinds = (pa.types.is_floating, pa.types.is_integer)
    schema = seen.schemas[stream]
    known = columns.KEYS
    return [f.name for f in schema if f.name not in known and any(is_(f.type) for is_ in kinds)]


def _fit(values: Floats, log: bool) -> Floats:
    return np.where(values > 0, values, np.nan) if log else values


def _band(mean: Floats, error: Floats, log: bool) -> list[list[float | None]]:
    # On a logarithmic axis a band may not reach 0.
    low = np.maximum(mean - error, mean / 10) if log else mean - error
    return [numbers(_fit(low, log)), numbers(_fit(mean + error, log))]
