"""Panels of a picture for several analysts: what each says over time, against the truth."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from raydp_sim.metrics import streams
from raydp_sim.metrics.panels import BLUE, GREEN, ORANGE, PINK

_COLOURS = (BLUE, ORANGE, GREEN, PINK, "0.5", "tab:purple", "tab:brown", "tab:olive")


def followed(folder: Path) -> list[int]:
    """Return the categories to follow: the one that gains most over the releases, and loses most.

    Nothing where there are no analysts, or one release alone.

    Args:
        folder: of the streams.
    """
    known = _first(streams.read(folder, "shares"))
    if not known.num_rows or len(set(known["release"].to_pylist())) < 2:
        return []
    releases = np.unique(known["release"].to_numpy())
    first, last = (_column(known, "release", r, "population") for r in releases[[0, -1]])
    gains = last - first
    return list(dict.fromkeys([int(np.argmax(gains)), int(np.argmin(gains))]))


def draw_followed(axis: Any, folder: Path, category: int) -> None:
    """Draw the share of one category as each analyst sees it, and as it is.

    Bands are one standard error to each side. Earlier releases that a promotion has opened further
    are drawn again, with open marks.
    """
    truth = _of(_first(streams.read(folder, "shares")), "coordinate", category)
    axis.plot(
        truth["release"].to_numpy() + 1, truth["population"], color="0.1", lw=2, label="truth"
    )
    readers = list(dict.fromkeys(streams.read(folder, "views")["reader"].to_pylist()))
    again = _first(streams.read(folder, "reopened"))
    # The least private last, where nothing covers it.
    for number, name in sorted(enumerate(readers), key=lambda pair: (pair[0] > 0, -pair[0])):
        own = _of(_first(streams.read(folder, name)), "coordinate", category)
        x, y = own["release"].to_numpy() + 1, own["estimate"].to_numpy()
        colour, error = _COLOURS[number % len(_COLOURS)], own["standard_error"].to_numpy()
        axis.fill_between(x, y - error, y + error, color=colour, alpha=0.12, lw=0)
        axis.plot(x, y, color=colour, lw=1.2, marker="o", ms=3, label=name)
        if again.num_rows:
            mine = _of(_of(again, "reader", name), "coordinate", category)
            if mine.num_rows:
                place = {"ls": "--", "marker": "o", "mfc": "none", "ms": 5, "lw": 1.0}
                label = f"{name}, opened again by its promotion"
                axis.plot(
                    mine["of"].to_numpy() + 1, mine["after"], color=colour, label=label, **place
                )
    axis.set_xlabel("release")
    axis.set_ylabel(f"share of category {category}")
    axis.set_title(f"Category {category} as each analyst sees it", loc="left")


def _first(table: pa.Table) -> pa.Table:
    return _of(table, "repetition", 0) if table.num_rows else table


def _of(table: pa.Table, column: str, value: Any) -> pa.Table:
    return table.filter(pc.equal(table[column], value))


def _column(table: pa.Table, by: str, value: Any, name: str) -> NDArray[Any]:
    return np.asarray(_of(table, by, value)[name].to_numpy())
