"""Who takes part when: heat maps over virtual time, from what is released and by groups."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from raydp_sim.metrics.page.lines import Panel
from raydp_sim.metrics.page.results import CLIENTS
from raydp_sim.metrics.page.seen import Seen
from raydp_sim.metrics.page.thin import Floats, looked_up, numbers

HOUR, DAY = 3600.0, 86400.0
_CELLS = 96  # columns of a heat map, most
_GROUPS = 24
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

    It is what a reader of the protocol can see of who is there when.
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
    return heat_map(
        "hours",
        "When reports come, by day and hour",
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
    return heat_map(
        "groups",
        "Who takes part, by group",
        "Mean share of a group's clients whose report is in a release.",
        ["simulation-only"],
        cells,
        names,
        {"label": "virtual time", "unit": unit, "from": 0.0, "to": float(edges[-1] / scale)},
        "share of the group",
    )


def moments(seen: Seen) -> Floats | None:
    """Return the middles of the cells of virtual time; None before the first release."""
    rows = seen.table("releases", ["time"])
    rows = rows.filter(pc.equal(rows["repetition"], 0))
    if not rows.num_rows:
        return None
    edges, _, _ = span(seen.column(rows, "time"))
    return (edges[:-1] + edges[1:]) / 2.0


def there(times: Floats, names: Sequence[str], shares: Floats) -> Panel:
    """Return by group and virtual time the share of its clients that could take part.

    Args:
        times: as of `moments`.
        names: of the groups.
        shares: of each group's clients, by moment.
    """
    last = float(times[-1] + times[0])
    scale, unit = next(
        ((size, word) for size, word in _UNITS if last >= 2.0 * size), (1.0, "seconds")
    )
    return heat_map(
        "availability",
        "Who is available",
        "Share of the clients that could be asked in the middle of each cell, whether or not they "
        "were; of a large population some thousands are looked at.",
        ["simulation-only"],
        shares[:_GROUPS],
        [*names[:_GROUPS]],
        {"label": "virtual time", "unit": unit, "from": 0.0, "to": last / scale},
        "share available",
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


def heat_map(
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
    """Return a heat map: a row per name, columns over the axis."""
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


def panels(seen: Seen) -> list[Panel]:
    """Return those that there are."""
    return [each for each in (by_day(seen), answering(seen)) if each is not None]
