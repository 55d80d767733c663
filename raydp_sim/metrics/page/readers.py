"""Several analysts of one run side by side: what each sees of it, at which level of privacy."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raydp_sim.metrics.page.lines import RELEASE, Drawn, Line, Panel, panel
from raydp_sim.metrics.page.seen import Seen
from raydp_sim.metrics.page.thin import kept, numbers

ANALYSTS = "analysts"
_PUBLIC = "public"
_SHOWN = 40  # categories
_FOLLOWED = 4  # of them, those that change most


def names(seen: Seen) -> list[str]:
    """Return the readers whose streams are open, the least private first and the public last."""
    own = [name for name in seen.schemas if name.startswith("analyst-")]
    own.sort(key=_order)
    return own + [_PUBLIC] * (_PUBLIC in seen.schemas)


def _order(reader: str) -> tuple[bool, int, str]:
    return reader == _PUBLIC, len(reader), reader


def panels(seen: Seen) -> list[Panel]:
    """Return the panels of analysts; none where a run has none, or the token opens none."""
    readers = names(seen)
    if not readers:
        return []
    rows = {reader: _first(seen, reader) for reader in readers}
    rows = {reader: own for reader, own in rows.items() if own.num_rows}
    if not rows:
        return []
    truth = _first(seen, "shares")
    found = [_now(rows, truth, seen)]
    if len(np.unique(next(iter(rows.values()))["release"].to_numpy())) > 1:
        found += [_followed(rows, truth, seen, each) for each in _moving(rows)]
    return [*found, *_scored(seen)]


def table(seen: Seen) -> dict[str, Any] | None:
    """Return a row per view of a run that is over: its level, what it costs, how good it is.

    Errors are left out where the token does not open what only a simulation knows; a reader's own
    token sees its own row.
    """
    rows = seen.summary.get("views", {}).get("rows")
    if not isinstance(rows, list):
        return None
    if not seen.released:
        rows = [row for row in rows if row.get("view") == seen.grant.reader]
    head = ["view", "level", "epsilon of a report", "epsilon of the run", "delta"]
    if seen.simulated:
        head += ["l1 error", "expected", "heavy hitters found"]
    head.append("gains from shuffling")
    lines = []
    for row in rows:
        errors = row.get("errors", {})
        level = str(row.get("level", ""))
        if "promoted_to" in row:
            level += f", later {row['promoted_to']}"
        line = [row.get("view"), level, row.get("epsilon_local")]
        line += [row.get("epsilon"), row.get("delta")]
        if seen.simulated:
            line += [errors.get("l1_raw"), errors.get("predicted_l1_raw"), errors.get("recall")]
        lines.append([*line, row.get("shuffling")])
    return {"head": head, "rows": lines} if lines else None


def _first(seen: Seen, stream: str) -> pa.Table:
    rows = seen.table(stream)
    return rows.filter(pc.equal(rows["repetition"], 0))


def _now(rows: dict[str, pa.Table], truth: pa.Table, seen: Seen) -> Panel:
    """Return the last release as each of them sees it, category by category."""
    series, data, release = [], [], 0
    for colour, (reader, own) in enumerate(rows.items()):
        release = pc.max(own["release"]).as_py()
        last = own.filter(pc.equal(own["release"], release)).sort_by("coordinate")
        values, error = (
            seen.column(last, name)[:_SHOWN] for name in ("estimate", "standard_error")
        )
        series.append({"label": reader, "colour": colour})
        data.append([numbers(each) for each in (values, values - error, values + error)])
    count = len(data[0][0])
    line = None
    true = truth.filter(pc.equal(truth["release"], release)) if truth.num_rows else truth
    if true.num_rows:
        line = numbers(seen.column(true.sort_by("coordinate"), "population")[:_SHOWN])
    return {
        "id": "analysts-now",
        "tab": ANALYSTS,
        "kind": "beside",
        "title": f"Release {release + 1} as each analyst sees it",
        "note": "Bars are one standard error to each side.",
        "marks": ["released"] if line is None else ["released", "simulation-only"],
        "x": {"label": "category", "names": [str(place) for place in range(count)]},
        "y": {"label": "share", "unit": ""},
        "series": series,
        "data": data,
        "truth": line,
    }


def _moving(rows: dict[str, pa.Table]) -> list[int]:
    """Return the categories that change most, as the least private of the readers sees it."""
    own = next(iter(rows.values()))
    ends = [pc.min(own["release"]).as_py(), pc.max(own["release"]).as_py()]
    first, last = (
        own.filter(pc.equal(own["release"], end)).sort_by("coordinate")["estimate"].to_numpy()
        for end in ends
    )
    if len(first) != len(last):
        return []
    return sorted(np.argsort(-np.abs(last - first), kind="stable")[:_FOLLOWED].tolist())


def _followed(rows: dict[str, pa.Table], truth: pa.Table, seen: Seen, category: int) -> Panel:
    """Return the share of one category over the releases, as each of them sees it."""
    own = {reader: _of(table, category) for reader, table in rows.items()}
    at = np.unique(np.concatenate([table["release"].to_numpy() for table in own.values()]))
    series, data, bands = [], [], []

    def add(label: str, colour: int, table: pa.Table, name: str, style: str = "") -> None:
        place = np.searchsorted(at, table["release"].to_numpy())
        whole = np.full((2, len(at)), np.nan)
        whole[0, place] = seen.column(table, name)
        whole[1, place] = seen.column(table, "standard_error")
        series.append({"label": label, "colour": colour, "style": style})
        data.append(whole[0])
        bands.append((whole[0] - whole[1], whole[0] + whole[1]))

    for colour, (reader, table) in enumerate(own.items()):
        add(reader, colour, table, "estimate")
    true = _of(truth, category) if truth.num_rows else truth
    if true.num_rows:
        true = true.filter(pc.is_in(true["release"], value_set=pa.array(at)))
    if true.num_rows:
        add("truth (simulation)", -1, true, "population")
    chosen = kept(data)
    return {
        "id": f"category-{category}",
        "tab": ANALYSTS,
        "kind": "lines",
        "title": f"Category {category} as each analyst sees it",
        "note": "Bands are one standard error to each side.",
        "marks": ["released", "simulation-only"] if true.num_rows else ["released"],
        "x": RELEASE,
        "y": {"label": "share", "unit": ""},
        "series": series,
        "data": [numbers((at + 1.0)[chosen]), *(numbers(each[chosen]) for each in data)],
        "bands": [[numbers(end[chosen]) for end in band] for band in bands],
        "withheld": [],
        "rows": len(at),
    }


def _of(table: pa.Table, category: int) -> pa.Table:
    return table.filter(pc.equal(table["coordinate"], category))


def _scored(seen: Seen) -> list[Panel]:
    """Return how far off each of them is, and how many bits of keys they were handed."""
    found = []
    for stream, column, title, label, log in (
        ("views", "l1_raw", "How far off each analyst is", "l1 error against the cohort", True),
        ("keys", "delivered", "Keys that were handed out", "bits of keys", False),
    ):
        rows = seen.table(stream, ["reader", column])
        if column not in rows.column_names or not rows.num_rows:
            continue
        # In the order of the other panels, so that everyone keeps the colour.
        readers = sorted(set(rows["reader"].to_pylist()), key=_order)
        split = _Split(seen, stream, rows, readers)
        lines = tuple(Line(stream, name, name, place) for place, name in enumerate(readers))
        unit = "share" if stream == "views" else "bits"
        made = panel(split, Drawn(ANALYSTS, title, lines, label, unit, log), marks=False)
        if made is not None:
            found.append(made)
    return found


class _Split(Seen):
    """A stream with a row per reader, as one with a column per reader."""

    def __init__(self, seen: Seen, stream: str, rows: pa.Table, readers: list[str]) -> None:
        super().__init__(seen.name, seen.source, seen.grant)
        (value,) = [name for name in rows.column_names if name not in (*_KEY, "reader")]
        own = {each: rows.filter(pc.equal(rows["reader"], each)) for each in readers}
        keys = {name: own[readers[0]][name] for name in _KEY}
        columns = {each: table[value] for each, table in own.items()}
        lengths = {table.num_rows for table in own.values()}
        self._rows = pa.table({**keys, **columns} if len(lengths) == 1 else keys)
        schema = self._rows.schema.with_metadata(seen.schemas[stream].metadata)
        self.schemas = {stream: schema}

    def table(self, stream: str, names: Any = None) -> pa.Table:
        """Return the columns of all readers."""
        return self._rows


_KEY = ("repetition", "release")
