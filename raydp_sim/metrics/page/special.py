"""Panels whose axis is not the number of the release: answers, regret, prices, sums of bytes."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raydp_sim.metrics.page.lines import RELEASE, Panel, withheld
from raydp_sim.metrics.page.results import RESULTS, SENT
from raydp_sim.metrics.page.seen import Seen
from raydp_sim.metrics.page.thin import Floats, by_release, kept, looked_up, numbers

_NAMED = 40  # categories or coordinates of an answer that are shown, the largest
_BARS = 2.0  # standard errors to each side
_RELEASED, _SIMULATED = "released", "simulation-only"


def answer(seen: Seen) -> Panel | None:
    """Return the last estimate of the first repetition with its noise, and the truth beside it."""
    rows = _last(seen, "estimates", ["coordinate", "name", "estimate", "standard_error"])
    if rows is None or rows.num_rows < 2:
        return None
    values, error = (seen.column(rows, name) for name in ("estimate", "standard_error"))
    names, truth = [str(name) for name in rows["name"].to_pylist()], None
    true = _last(seen, "truth", ["coordinate", "population"])
    if true is not None and true["coordinate"].equals(rows["coordinate"]):
        truth = seen.column(true, "population")
    shown = np.arange(len(values))
    if len(values) > _NAMED:
        shown = np.sort(np.argsort(-np.abs(values), kind="stable")[:_NAMED])
    title = "What was learned"
    if len(shown) < len(values):
        title += f": the {len(shown)} largest of {len(values):,}"
    release = rows["release"][0].as_py() + 1
    reach = _BARS * np.nan_to_num(error)
    series = [{"label": f"estimate, {_BARS:g} standard errors of noise", "colour": 0}]
    data = [numbers(each[shown]) for each in (values, values - reach, values + reach)]
    if truth is not None:
        series.append({"label": "truth (simulation)", "colour": 1})
        data.append(numbers(truth[shown]))
    return {
        "id": "answer",
        "tab": RESULTS,
        "kind": "answer",
        "title": title,
        "note": f"After release {release:,}.",
        "marks": [_RELEASED] if truth is None else [_RELEASED, _SIMULATED],
        "x": {"label": _axis(names), "names": [names[place] for place in shown]},
        "y": {"label": "estimate", "unit": ""},
        "series": series,
        "data": data,
    }


def _axis(names: list[str]) -> str:
    return "coordinate" if names == [str(place) for place in range(len(names))] else ""


def over_time(seen: Seen) -> Panel | None:
    """Return the estimate of a single number after every release, with its noise."""
    rows = seen.table("estimates", ["coordinate", "estimate", "standard_error"])
    rows = rows.filter(pc.equal(rows["repetition"], 0))
    if not rows.num_rows or pc.max(rows["coordinate"]).as_py() > 0:
        return None
    at = rows["release"].to_numpy() + 1.0
    values, error = (seen.column(rows, name) for name in ("estimate", "standard_error"))
    true = seen.table("truth", ["coordinate", "population"])
    true = true.filter(pc.equal(true["repetition"], 0))
    data, bands = [values], [(values - _BARS * error, values + _BARS * error)]
    series = [{"label": f"estimate so far, {_BARS:g} standard errors of noise", "colour": 0}]
    if true.num_rows == rows.num_rows:
        data.append(seen.column(true, "population"))
        bands.append((np.full(len(at), np.nan), np.full(len(at), np.nan)))
        series.append({"label": "truth (simulation)", "colour": 1})
    chosen = kept([*data])
    return {
        "id": "answer",
        "tab": RESULTS,
        "kind": "lines",
        "title": "What was learned",
        "note": "",
        "marks": [_RELEASED] if len(data) == 1 else [_RELEASED, _SIMULATED],
        "x": RELEASE,
        "y": {"label": "mean", "unit": ""},
        "series": series,
        "data": [numbers(column[chosen]) for column in (at, *data)],
        "bands": [[numbers(end[chosen]) for end in band] for band in bands],
        "withheld": withheld(seen),
        "rows": len(at),
    }


def price(seen: Seen) -> Panel | None:
    """Return the test accuracy against what it cost, by the best bound and the papers' own."""
    rows = _first(seen, "learning", ["test_accuracy"])
    spent = _first(seen, "releases", ["epsilon", "epsilon_seed"])
    if "test_accuracy" not in rows.column_names or not rows.num_rows or not spent.num_rows:
        return None
    accuracy, lines = seen.column(rows, "test_accuracy"), []
    for name, label, colour in (
        ("epsilon", "best proved bound", 0),
        ("epsilon_seed", "the papers' own bound", 2),
    ):
        cost = seen.column(spent, name)
        cost = looked_up(spent["release"].to_numpy(), cost, rows["release"].to_numpy())
        if (cost > 0).any() and not np.isinf(cost).any():
            lines.append((cost, label, colour))
    if not lines:
        return None
    x = np.unique(np.concatenate([cost[cost > 0] for cost, _, _ in lines]))
    data = [numbers(x)]
    for cost, _, _ in lines:
        whole = np.full(len(x), np.nan)
        whole[np.searchsorted(x, cost[cost > 0])] = accuracy[cost > 0]
        data.append(numbers(whole))
    return {
        "id": "price",
        "tab": RESULTS,
        "kind": "lines",
        "title": "What accuracy costs",
        "note": "",
        "marks": [_RELEASED],
        "x": {"label": "epsilon so far", "log": len(lines) > 1},
        "y": {"label": "accuracy on test samples", "unit": "share"},
        "series": [{"label": label, "colour": colour, "gaps": True} for _, label, colour in lines],
        "data": data,
        "bands": [],
        "withheld": [],
        "rows": len(x),
    }


def regret(seen: Seen) -> Panel | None:
    """Return what a bandit has lost so far against the best action, and what it certifies."""
    names = ["rounds", "horizon", "certificate_so_far"]
    rows = _first(seen, "bandit", names)
    if not rows.num_rows:
        return None
    at, columns = seen.column(rows, "rounds"), []
    certified = seen.column(rows, "certificate_so_far")
    if np.isfinite(certified).any():
        columns.append((certified, "certificate: no more than that, if the radii hold", 1))
    true = _first(seen, "errors", ["regret_so_far"])
    if "regret_so_far" in true.column_names:
        lost = seen.column(true, "regret_so_far")
        own = looked_up(true["release"].to_numpy(), lost, rows["release"].to_numpy())
        if np.isfinite(own).any():
            columns.append((own, "regret (simulation)", 0))
    if not columns:
        return None
    horizon = float(seen.column(rows, "horizon")[0])
    return {
        "id": "regret",
        "tab": RESULTS,
        "kind": "lines",
        "title": "What learning cost",
        "note": f"Lost to the best action so far, of {horizon:,.0f} rounds in all.",
        "marks": [_RELEASED, _SIMULATED] if len(columns) > 1 else [_RELEASED],
        "x": {"label": "round", "unit": "clients", "log": True},
        "y": {"label": "lost so far", "unit": "reward", "log": True},
        "series": [{"label": label, "colour": colour} for _, label, colour in columns],
        "data": [numbers(at), *(numbers(_positive(column)) for column, _, _ in columns)],
        "bands": [],
        "withheld": [],
        "rows": len(at),
    }


def actions(seen: Seen) -> Panel | None:
    """Return how many actions a bandit still plays after every batch."""
    rows = _first(seen, "bandit", ["rounds", "active", "slots", "reports"])
    if not rows.num_rows:
        return None
    data = [numbers(seen.column(rows, name)) for name in ("rounds", "active")]
    return {
        "id": "actions",
        "tab": RESULTS,
        "kind": "lines",
        "title": "Actions that are left",
        "note": "",
        "marks": [_RELEASED],
        "x": {"label": "round", "unit": "clients", "log": True},
        "y": {"label": "active actions", "unit": "", "zero": True},
        "series": [{"label": "after the batch", "colour": 2, "style": "steps"}],
        "data": data,
        "bands": [],
        "withheld": [],
        "rows": rows.num_rows,
    }


def traffic(seen: Seen) -> Panel | None:
    """Return the bytes of all reports so far, over the releases."""
    rows = seen.table("releases", ["wire_bytes", "bits"])
    if not rows.num_rows:
        return None
    at, found = by_release(
        rows["release"].to_numpy(), [seen.column(rows, name) for name in ("wire_bytes", "bits")]
    )
    columns = [np.cumsum(np.nan_to_num(mean)) for mean, _ in found]
    columns[1] = columns[1] / 8.0
    chosen = kept(columns)
    return {
        "id": "traffic",
        "tab": SENT,
        "kind": "lines",
        "title": "Sent so far",
        "note": "",
        "marks": [_RELEASED],
        "x": RELEASE,
        "y": {"label": "all reports so far", "unit": "bytes", "zero": True},
        "series": [
            {"label": "each report in whole bytes, as it travels", "colour": 0},
            {"label": "bits as encoded, in bytes", "colour": 2, "style": "dashed"},
        ],
        "data": [numbers(column[chosen]) for column in (at, *columns)],
        "bands": [],
        "withheld": [],
        "rows": len(at),
    }


def _first(seen: Seen, stream: str, names: list[str]) -> pa.Table:
    rows = seen.table(stream, names)
    return rows.filter(pc.equal(rows["repetition"], 0))


def _last(seen: Seen, stream: str, names: list[str]) -> pa.Table | None:
    rows = _first(seen, stream, names)
    if not rows.num_rows:
        return None
    rows = rows.filter(pc.equal(rows["release"], pc.max(rows["release"])))
    return rows.sort_by("coordinate")


def _positive(column: Floats) -> Floats:
    return np.where(column > 0, column, np.nan)


def answers(seen: Seen) -> list[Panel]:
    """Return what was learned, and what a bandit lost meanwhile; those that there are."""
    made = (over_time(seen) or answer(seen), regret(seen), actions(seen))
    return [each for each in made if each is not None]


def costs(seen: Seen) -> list[Panel]:
    """Return what accuracy cost, and what was sent; those that there are."""
    return [each for each in (price(seen), traffic(seen)) if each is not None]
