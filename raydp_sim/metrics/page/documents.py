"""The JSON documents of the page: a run, the list of runs, a stream, runs side by side."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raydp_sim.metrics import columns, streams
from raydp_sim.metrics.differences import differences
from raydp_sim.metrics.page import crowd, readers, results, special, statement
from raydp_sim.metrics.page import turns as ledger
from raydp_sim.metrics.page.lines import Drawn, Line, Panel, panel, unit
from raydp_sim.metrics.page.seen import Seen
from raydp_sim.metrics.page.turns import Turns

_ROWS = 20  # of a stream, the last ones
_COLUMNS = 12  # of a stream that are drawn
_LONG = 80  # characters of a cell
# What a run is judged by, the first that it has: stream, column, in words.
_MEASURES = (
    ("learning", "test_accuracy", "test accuracy"),
    ("personal", "personal_accuracy", "personal accuracy"),
    ("errors", "regret_so_far", "regret"),
    ("errors", "running_squared_error", "squared error"),
    ("errors", "squared_error_population", "squared error"),
    ("errors", "squared_error_public", "squared error"),
    ("errors", "squared_error", "squared error"),
)


def listed(seen: Seen, updated: float) -> dict[str, Any]:
    """Return the line of a run in the list.

    Args:
        seen: the run.
        updated: when something last came, in seconds since 1970.
    """
    spent = statement.spent(seen)
    return {
        **seen.about,
        "task": seen.kind("task"),
        "mechanism": seen.kind("mechanism"),
        "done": _done(seen),
        "total": seen.total,
        "epsilon": None if spent is None else spent["epsilon"],
        "infinite": spent is not None and spent["epsilon"] is None,
        "measure": _measure(seen),
        "updated": round(updated, 3),
    }


def run(seen: Seen, turns: Turns) -> dict[str, Any]:
    """Return everything that the page of a run shows.

    Args:
        seen: the run.
        turns: what was counted of its ledger before.
    """
    # What a run is for comes first: its answer, what it lost or learned, and then what that cost.
    panels = [*special.answers(seen), *results.panels(seen), *special.costs(seen)]
    panels += [*crowd.panels(seen), *ledger.panels(seen, turns), *readers.panels(seen)]
    spent = statement.spent(seen)
    return {
        **seen.about,
        "description": str(seen.scenario.get("description") or ""),
        "task": seen.kind("task"),
        "mechanism": seen.kind("mechanism"),
        "done": _done(seen),
        "total": seen.total,
        "spent": spent,
        "measure": _measure(seen),
        "facts": _facts(seen),
        "privacy": statement.lines(seen),
        "views": readers.table(seen),
        "panels": panels,
        "streams": [_stream(seen, name) for name in seen.schemas],
        "text": seen.scenario_text(),
        "whole": seen.simulated,
        "plot": has_plot(seen),
        "version": seen.source.version(),
    }


def has_plot(seen: Seen) -> bool:
    """Say whether the run's picture may be seen: it shows errors, and what groups spent."""
    every = seen.released and seen.simulated and seen.charged
    return every and (seen.source.path / "plot.png").is_file()


def stream(seen: Seen, name: str) -> dict[str, Any]:
    """Return a stream: what it is, its last rows, and lines where it has a row per release.

    Args:
        seen: the run.
        name: of a stream that is open.
    """
    schema, rows = seen.schemas[name], seen.table(name)
    last = rows.slice(max(0, rows.num_rows - _ROWS))
    known = columns.known(name)
    return {
        "name": name,
        "visibility": streams.visibility(schema),
        "row": "" if known is None else known.row,
        "rows": rows.num_rows,
        "columns": [
            {"name": field.name, "unit": unit(schema, field.name), "meaning": _meaning(field)}
            for field in schema
        ],
        "last": [[_cell(value) for value in row.values()] for row in last.to_pylist()],
        "panels": _drawn(seen, name, rows),
    }


def compared(runs: Sequence[Seen]) -> dict[str, Any]:
    """Return runs side by side: what differs in their scenarios, what came of them, their lines."""
    differ = differences([seen.scenario for seen in runs])
    rows: list[list[Any]] = [[field, *map(_cell, values)] for field, values in differ.items()]
    spent = [statement.spent(seen) for seen in runs]
    measures = [_measure(seen) for seen in runs]
    came: list[list[Any]] = [["releases", *map(_done, runs)]]
    for word in dict.fromkeys(each["label"] for each in measures if each):
        own = [each["value"] if each and each["label"] == word else None for each in measures]
        came.append([word, *own])
    if any(spent):
        said = [each and statement.epsilon(each["epsilon"]) for each in spent]
        came.append(["epsilon, client charged most", *said])
        came.append(["bound", *(each and each["bound"] for each in spent)])
        came.append(["which holds for", *(each and each["assumption"] for each in spent)])
    sent = [pc.sum(seen.table("releases", ["wire_bytes"])["wire_bytes"]).as_py() for seen in runs]
    if any(seen.released for seen in runs):
        came.append(["bytes of reports", *sent])
    return {
        "runs": [{**seen.about, "done": _done(seen), "total": seen.total} for seen in runs],
        "differ": rows,
        "came": came,
        "panels": _together(runs),
    }


def _together(runs: Sequence[Seen]) -> list[Panel]:
    """Return panels with a line per run, of what at least one of them has."""
    found: list[Panel] = []
    for name, column, title, label in (
        ("learning", "test_accuracy", "Accuracy on test samples", "accuracy"),
        ("errors", "running_squared_error", "Error of the mean so far", "squared error"),
        ("errors", "squared_error_population", "Error of a release", "squared error"),
        ("errors", "regret_so_far", "Regret so far", "regret"),
        ("releases", "epsilon", "Epsilon so far, client charged most", "epsilon"),
        ("releases", "batch_size", "Batch sizes", "batch"),
        ("releases", "wire_bytes", "Bytes of a release", "sent"),
    ):
        error, zero = label == "squared error", name == "releases"
        drawn = Drawn("", title, (Line(name, column),), label, log=error, zero=zero)
        own = [panel(seen, drawn, marks=False) for seen in runs]
        if not any(own):
            continue
        found.append(_overlaid([seen.name for seen in runs], own))
    return found


def _overlaid(names: Sequence[str], panels: Sequence[Panel | None]) -> Panel:
    there = [(place, made) for place, made in enumerate(panels) if made is not None]
    at = sorted({x for _, made in there for x in made["data"][0]})
    place_of = {x: place for place, x in enumerate(at)}
    data: list[list[float | None]] = []
    for _, made in there:
        line: list[float | None] = [None] * len(at)
        for x, y in zip(*made["data"], strict=True):
            line[place_of[x]] = y
        data.append(line)
    first = there[0][1]
    return {
        **first,
        "series": [{"label": names[place], "colour": place, "gaps": True} for place, _ in there],
        "data": [at, *data],
        "bands": [],
        "y": {**first["y"], "log": all(made["y"]["log"] for _, made in there)},
    }


def _done(seen: Seen) -> int | None:
    """Return how many releases were made or withheld; None if that is not open."""
    if not seen.released:
        return None
    return sum(int(seen.table(name, []).num_rows) for name in ("releases", "withheld"))


def _measure(seen: Seen) -> dict[str, Any] | None:
    """Return the last value of what a run is judged by, mean over repetitions."""
    for name, column, label in _MEASURES:
        if name not in seen.schemas or column not in seen.schemas[name].names:
            continue
        rows = seen.table(name, [column])
        rows = rows.filter(pc.is_valid(rows[column]))
        if not rows.num_rows:
            continue
        ends = np.flatnonzero(np.diff(rows["repetition"].to_numpy(), append=-1))
        value = float(seen.column(rows, column)[ends].mean())
        return {"label": label, "value": value if math.isfinite(value) else None}
    return None


def _facts(seen: Seen) -> list[tuple[str, str]]:
    """Return what is said of a run beside its pictures."""
    about = seen.about
    found = [("trust", str(about["trust"]))]
    if isinstance(about["clients"], int):
        found.append(("clients", f"{about['clients']:,}"))
    sent = seen.summary.get("communication", {})
    if seen.released and "bits_per_report" in sent:
        found.append(("a report", f"{sent['bits_per_report']:,} bits"))
    if seen.released and "wire_bytes" in sent:
        words = f"{sent['reports']:,} reports, {sent['wire_bytes']:,} bytes"
        found.append(("in all", words))
    if seen.released and "bandit" in seen.summary:
        found.append(("recommended", str(seen.summary["bandit"].get("name", ""))))
    if seen.released and seen.charged and "ended_early" in seen.summary:
        found.append(("ended early", str(seen.summary["ended_early"])))
    wall = seen.summary.get("timing", {}).get("wall_s")
    if seen.simulated and wall is not None:
        found.append(("wall time", f"{wall:,.1f} s"))
    return found


def _stream(seen: Seen, name: str) -> dict[str, Any]:
    known = columns.known(name)
    schema = seen.schemas[name]
    return {
        "name": name,
        "visibility": streams.visibility(schema),
        "row": "" if known is None else known.row,
        "columns": len(schema.names),
    }


def _drawn(seen: Seen, name: str, rows: pa.Table) -> list[Panel]:
    """Return a panel per column of numbers, where there is one row per release."""
    keys = rows.select(streams.KEY).group_by(streams.KEY).aggregate([]).num_rows
    if keys < 2 or keys < rows.num_rows:
        return []
    schema = seen.schemas[name]
    kinds = (pa.types.is_floating, pa.types.is_integer)
    found = []
    for field in schema:
        if field.name in streams.KEY or not any(is_(field.type) for is_ in kinds):
            continue
        words = field.name.replace("_", " ")
        drawn = Drawn("data", words, (Line(name, field.name),), words, note=_meaning(field))
        made = panel(seen, drawn)
        if made is not None and any(made["data"][1]):  # what is 0 everywhere needs no picture
            found.append(made)
    return found[:_COLUMNS]


def _meaning(field: Any) -> str:
    found: bytes = (field.metadata or {}).get(b"meaning", b"")
    return found.decode()


def _cell(value: Any) -> Any:
    """Return a value for a table: a number as it is, anything else as a short text."""
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (int, bool)):
        return value
    text = str(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]} ..."
