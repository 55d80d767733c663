"""Who took part and when: heat maps over virtual time, and how often clients were charged."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from raydp_sim.metrics.page.lines import Panel
from raydp_sim.metrics.page.results import CLIENTS, PRIVACY
from raydp_sim.metrics.page.seen import Seen
from raydp_sim.metrics.page.source import stamped
from raydp_sim.metrics.page.thin import Floats, looked_up, numbers
from raydp_sim.privacy.ledger import store

HOUR, DAY = 3600.0, 86400.0
_CELLS = 96  # columns of a heat map, most
_CLIENTS = 48  # rows of one: clients are put together by their numbers
_GROUPS = 24
_BARS = 40
_UNITS = ((DAY, "days"), (HOUR, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def span(times: Floats) -> tuple[Floats, float, str]:
    """Return the ends of equal cells over virtual time, and a unit that suits them.

    Args:
        times: in virtual seconds, at least one.

    Example:
        >>> edges, unit, name = span(np.array([0.0, 3 * DAY]))
        >>> len(edges), float(edges[-1] / unit), name
        (73, 3.0, 'days')
    """
    last = float(times.max())
    scale, name = next(
        ((size, word) for size, word in _UNITS if last >= 2.0 * size), (1.0, "seconds")
    )
    if last >= DAY:
        # Cells of whole hours, so that the day shows.
        hours = max(1, int(np.ceil(last / HOUR / _CELLS)))
        cells = max(1, int(np.ceil(last / HOUR / hours)))
        return np.arange(cells + 1, dtype=np.float64) * hours * HOUR, scale, name
    cells = int(min(_CELLS, max(1, len(np.unique(times)))))
    return np.linspace(0.0, last if last > 0 else 1.0, cells + 1), scale, name


def by_day(seen: Seen) -> Panel | None:
    """Return the reports by hour of the day and day, where a run lasts at least two days.

    When clients are there shows in when their reports come: a release closes when enough have.
    """
    rows = seen.table("releases", ["time", "batch_size"])
    rows = rows.filter(pc.equal(rows["repetition"], 0))
    if not rows.num_rows:
        return None
    time, size = seen.column(rows, "time"), seen.column(rows, "batch_size")
    if time.max() < 2.0 * DAY:
        return None
    hours = np.arange(int(time.max() // HOUR) + 2, dtype=np.float64) * HOUR
    spread = _spread(np.append(0.0, time), size, hours)
    days = int(np.ceil(len(spread) / 24))
    cells = np.full(days * 24, np.nan)
    # The last hour is not over.
    cells[: len(spread) - 1] = spread[:-1]
    return _map(
        "hours",
        "When clients are there, by day and hour",
        "Reports an hour, by the virtual clock; those of a release are spread evenly over the time "
        "since the one before it.",
        ["released"],
        cells.reshape(days, 24),
        [f"day {day + 1}" for day in range(days)],
        {"label": "hour of the day", "unit": "", "from": 0.0, "to": 24.0},
        "reports an hour",
    )


def _spread(times: Floats, sizes: Floats, edges: Floats) -> Floats:
    """Return reports in cells of time, if those between two times come evenly."""
    so_far = np.interp(edges, times, np.append(0.0, np.cumsum(sizes)))
    return np.asarray(np.diff(so_far), np.float64)


def answering(seen: Seen) -> Panel | None:
    """Return by group and virtual time the share of its clients that took part in a release."""
    rows = seen.table("groups", ["group", "clients", "reports"])
    rows = rows.filter(pc.equal(rows["repetition"], 0))
    if not rows.num_rows or not seen.table("releases", []).num_rows:
        return None
    names = sorted(set(rows["group"].to_pylist()))[:_GROUPS]
    time = _times(seen, rows["release"].to_numpy())
    fine = np.isfinite(time)
    edges, scale, unit = span(time[fine])
    share = seen.column(rows, "reports") / np.maximum(1.0, seen.column(rows, "clients"))
    group = np.array([str(name) for name in rows["group"].to_pylist()])
    cells = np.stack([_means(time, share, fine & (group == name), edges) for name in names])
    return _map(
        "groups",
        "Who is there, by group",
        "Mean share of a group's clients whose report is in a release.",
        ["simulation-only"],
        cells,
        names,
        {"label": "virtual time", "unit": unit, "from": 0.0, "to": float(edges[-1] / scale)},
        "share of the group",
    )


def _means(time: Floats, values: Floats, own: NDArray[np.bool_], edges: Floats) -> Floats:
    place = np.clip(np.searchsorted(edges, time[own], "right") - 1, 0, len(edges) - 2)
    count = np.bincount(place, minlength=len(edges) - 1)
    total = np.bincount(place, values[own], minlength=len(edges) - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(total / count, np.float64)


def _times(seen: Seen, wanted: NDArray[np.int64]) -> Floats:
    """Return when releases closed, in virtual seconds; of one not yet there, not a number."""
    rows = seen.table("releases", ["time"])
    rows = rows.filter(pc.equal(rows["repetition"], 0))
    return looked_up(rows["release"].to_numpy(), seen.column(rows, "time"), wanted)


class Turns:
    """How often each client was charged, and when: taken from a ledger charge by charge.

    Charges that were counted are not read again while the run is played.
    """

    def __init__(self) -> None:
        self.place, self.seen = 0, set[tuple[int, int]]()
        self.compacted = stamped(None)
        self.counts = np.zeros(0, np.int64)
        self.times: list[float] = []
        self.cohorts: list[NDArray[np.float64]] = []

    def take(self, folder: Path, clients: int) -> None:
        """Count what is new, of the first repetition."""
        if len(self.counts) != clients:
            self.__init__()  # type: ignore[misc]  # another population: begin anew
            self.counts = np.zeros(clients, np.int64)
        found = store.logged_after(folder, self.place)
        if found is not None:
            rows, self.place = found
            charges = [store.Charge.of_row(row) for row in rows if row["repetition"] == 0]
        elif (stamp := stamped(folder / store.COMPACTED)) != self.compacted:
            self.compacted, charges = stamp, list(store.charges(folder, 0))
        else:
            return
        size = -(-clients // _CLIENTS)
        for charge in charges:
            if (charge.repetition, charge.release) in self.seen:
                continue
            self.seen.add((charge.repetition, charge.release))
            ids = np.asarray(charge.participants, np.int64)
            self.counts[ids] += 1
            self.times.append(charge.time)
            self.cohorts.append(np.bincount(ids // size, minlength=-(-clients // size)) / size)


def taking_part(seen: Seen, turns: Turns) -> list[Panel]:
    """Return how often clients took part, and which of them when; nothing without the ledger."""
    clients = seen.about["clients"]
    if not seen.charged or not isinstance(clients, int) or clients < 1:
        return []
    turns.take(seen.source.path / "ledger", clients)
    if not turns.times:
        return []
    found = [_often(turns)]
    if len(turns.times) > 1:
        found.append(_when(turns, clients))
    return found


def _often(turns: Turns) -> Panel:
    most = int(turns.counts.max())
    wide = max(1, -(-(most + 1) // _BARS))
    bars = np.bincount(turns.counts // wide)
    at = np.arange(len(bars)) * wide
    never, mean = float((turns.counts == 0).mean()), float(turns.counts.mean())
    return {
        "id": "often",
        "tab": CLIENTS,
        "kind": "bars",
        "title": "How often clients took part",
        "note": f"{never:.1%} never did; {mean:.4g} releases on average, {most:,} at most.",
        "marks": ["ledger"],
        "x": {"label": "releases that a client was in", "unit": "", "wide": wide},
        "y": {"label": "clients", "unit": "", "zero": True},
        "series": [{"label": "clients", "colour": 0}],
        "data": [at.tolist(), bars.tolist()],
    }


def _when(turns: Turns, clients: int) -> Panel:
    time = np.array(turns.times)
    edges, scale, unit = span(time)
    place = np.clip(np.searchsorted(edges, time, "right") - 1, 0, len(edges) - 2)
    cohorts = np.stack(turns.cohorts)
    total = np.zeros((len(edges) - 1, cohorts.shape[1]))
    np.add.at(total, place, cohorts)
    size = -(-clients // _CLIENTS)
    names = [f"{first:,}" for first in range(0, clients, size)]
    what = "client" if size == 1 else f"clients from number, {size:,} to a row"
    empty = np.bincount(place, minlength=len(edges) - 1) == 0
    total[empty] = np.nan
    return _map(
        "when",
        "Which clients took part when",
        f"Releases that a client was in, mean over {'each' if size == 1 else 'a row of'} clients.",
        ["ledger"],
        total.T,
        names,
        {"label": "virtual time", "unit": unit, "from": 0.0, "to": float(edges[-1] / scale)},
        "releases per client",
        what,
    )


def spread(seen: Seen) -> Panel | None:
    """Return what share of the clients has spent at most how much, of a run that is over."""
    found = seen.summary.get("privacy", {}).get("per_client")
    if not seen.charged or not isinstance(found, dict):
        return None
    names = ("min", "p5", "p25", "median", "p75", "p95", "max")
    places = list(zip(names, (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0), strict=True))
    values = [found.get(name) for name, _ in places]
    if any(not isinstance(value, (int, float)) for value in values):
        return None
    never = found.get("never", 0.0)
    return {
        "id": "spread",
        "tab": PRIVACY,
        "kind": "lines",
        "title": "Epsilon over the clients",
        "note": f"{never:.1%} of the clients were never charged." if never else "",
        "marks": ["ledger"],
        "x": {"label": "share of the clients that have spent no more", "unit": ""},
        "y": {"label": "epsilon", "unit": "", "zero": True},
        "series": [{"label": "epsilon of the run", "colour": 0, "style": "steps"}],
        "data": [[share for _, share in places], numbers(np.array(values, np.float64))],
        "bands": [],
        "withheld": [],
        "rows": len(places),
    }


def spending(epsilons: Floats) -> Panel | None:
    """Return how many clients have spent how much; None where there is no guarantee.

    Args:
        epsilons: of every client.
    """
    most = float(epsilons.max(initial=0.0))
    if not np.isfinite(most) or not len(epsilons):
        return None
    wide = most / _BARS if most > 0.0 else 1.0
    bars = np.bincount(np.minimum((epsilons / wide).astype(np.int64), _BARS - 1))
    never = float((epsilons == 0.0).mean())
    return {
        "id": "spread",
        "tab": PRIVACY,
        "kind": "bars",
        "title": "Epsilon over the clients",
        "note": f"{never:.1%} of the clients were never charged." if never else "",
        "marks": ["ledger"],
        "x": {"label": "epsilon so far", "unit": "", "wide": wide, "bins": True},
        "y": {"label": "clients", "unit": "", "zero": True},
        "series": [{"label": "clients", "colour": 0}],
        "data": [numbers((np.arange(len(bars), dtype=np.float64) + 0.5) * wide), bars.tolist()],
    }


def _map(
    name: str,
    title: str,
    note: str,
    marks: list[str],
    cells: Floats,
    rows: list[str],
    x: dict[str, Any],
    value: str,
    y: str = "",
) -> Panel:
    return {
        "id": name,
        "tab": CLIENTS,
        "kind": "heat",
        "title": title,
        "note": note,
        "marks": marks,
        "x": x,
        "y": {"label": y, "names": rows},
        "value": value,
        "cells": [numbers(row, 4) for row in cells],
    }


def panels(seen: Seen, turns: Turns) -> list[Panel]:
    """Return those that there are."""
    found = [by_day(seen), answering(seen), *taking_part(seen, turns), spread(seen)]
    return [each for each in found if each is not None]
