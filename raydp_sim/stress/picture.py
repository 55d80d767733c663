"""The picture of `raydp-sim stress`: one row per scenario, one small panel per measure."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import bad_field
from raydp_sim.stress.measures import Measures

# Okabe and Ito's colours, which the colour-blind can tell apart.
_BLUE, _ORANGE, _GREEN, _RED, _PINK = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
_GREY = "#999999"
Array = NDArray[np.float64]


def draw(rows: Sequence[Measures], path: Path) -> None:
    """Draw the comparison; the first row is the baseline.

    Raises:
        InputError: when the picture cannot be written.
    """
    # Matplotlib is slow to import and only needed here.
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    panels = (_error, _bias, _batch, _withheld, _epsilon, _gini, _waste)
    height = 1.7 + 0.42 * len(rows)
    figure, axes = plt.subplots(1, len(panels), figsize=(15, height), sharey=True)
    # In inches from below and above: room for legends and titles, however many rows there are.
    figure.subplots_adjust(0.105, 1.15 / height, 0.985, 1 - 0.4 / height, wspace=0.17)
    place = np.arange(len(rows), dtype=np.float64)
    for axis, panel in zip(axes, panels, strict=True):
        panel(axis, rows, place)
        _plain(axis, len(rows))
    axes[0].set_yticks(place, [row.name for row in rows], fontsize=10)
    axes[0].set_ylim(len(rows) - 0.5, -0.5)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        raise bad_field("--plot", str(path), f"it cannot be written: {error}") from None
    finally:
        plt.close(figure)


def _error(axis: Any, rows: Sequence[Measures], place: Array) -> None:
    """Draw the expected error of the mean of all releases in its two parts, and what it was."""
    noise = _values([row.noise for row in rows])
    bias = _values([None if row.bias is None else row.bias**2 for row in rows])
    unit = noise[0] + bias[0]
    unit = unit if np.isfinite(unit) and unit > 0 else 1.0
    axis.barh(place, noise / unit, color=_BLUE, height=0.6, label="noise")
    axis.barh(place, bias / unit, left=noise / unit, color=_ORANGE, height=0.6, label="bias²")
    came = _values([row.running_error for row in rows]) / unit
    axis.plot(came, place, "D", ms=4.5, mfc="white", mec="0.1", label="this run")
    axis.axvline(1.0, color="0.4", lw=1, ls=":")
    _title(axis, "final error", f"multiples of {rows[0].name}")
    _legend(axis, 3)


def _bias(axis: Any, rows: Sequence[Measures], place: Array) -> None:
    axis.barh(place, _values([row.bias for row in rows]), color=_ORANGE, height=0.6)
    chance = _values([row.chance_bias for row in rows])
    axis.plot(chance, place, "|", ms=15, mew=2, color="0.1", label="by chance")
    axis.locator_params(axis="x", nbins=3)
    _title(axis, "bias", "participants to population")
    _legend(axis, 1)


def _batch(axis: Any, rows: Sequence[Measures], place: Array) -> None:
    low = _values([row.batch_p5 if row.made else None for row in rows])
    middle = _values([row.batch_median if row.made else None for row in rows])
    axis.hlines(place, low, middle, color=_BLUE, lw=5, alpha=0.45)
    axis.plot(low, place, "|", ms=11, mew=2, color=_BLUE, label="5 %")
    axis.plot(middle, place, "o", ms=7, color=_BLUE, label="median")
    least = _values([float(row.min_batch) for row in rows])
    axis.plot(least, place, "|", ms=15, mew=2, color=_RED, label="min_batch")
    axis.set_xlim(0, 1.08 * max(1.0, float(np.nanmax(np.append(middle, least)))))
    _title(axis, "reports in a release", "of those released")
    _legend(axis, 3)


def _withheld(axis: Any, rows: Sequence[Measures], place: Array) -> None:
    played = _values([float(max(1, row.made + row.withheld_count)) for row in rows])
    share = 100 * _values([float(row.withheld_count) for row in rows]) / played
    axis.barh(place, share, color=_RED, height=0.6)
    axis.set_xlim(0, max(10.0, 1.05 * float(np.nanmax(share))))
    _title(axis, "withheld", "% of batches")


def _epsilon(axis: Any, rows: Sequence[Measures], place: Array) -> None:
    real, plan = _values([row.epsilon for row in rows]), _values([row.planned for row in rows])
    axis.hlines(place, real, plan, color=_GREY, lw=1.5)
    axis.plot(real, place, "o", ms=7, color=_GREEN, label="realised")
    axis.plot(plan, place, "o", ms=6, mfc="white", mec="0.3", label="planned")
    axis.set_xlim(left=0)
    _title(axis, "epsilon", "client charged most")
    _legend(axis, 2)


def _gini(axis: Any, rows: Sequence[Measures], place: Array) -> None:
    axis.barh(place, _values([row.gini for row in rows]), color=_PINK, height=0.6)
    never = _values([row.never for row in rows])
    axis.plot(never, place, "D", ms=4.5, mfc="white", mec="0.1", label="share that never took part")
    axis.set_xlim(0, 1)
    axis.set_xticks((0.0, 0.5, 1.0))
    _title(axis, "uneven turns", "Gini of participations")
    _legend(axis, 1)


def _waste(axis: Any, rows: Sequence[Measures], place: Array) -> None:
    left = np.zeros(len(rows))
    for name, label, colour in (
        ("dropped", "lost", _RED),
        ("late", "late", _ORANGE),
        ("withheld", "withheld", _BLUE),
        ("under_way", "under way", _GREY),
    ):
        width = 100 * _values([getattr(row.waste, name) for row in rows])
        axis.barh(place, width, left=left, color=colour, height=0.6, label=label)
        left = left + width
    axis.set_xlim(0, max(10.0, 1.05 * float(left.max())))
    _title(axis, "wasted work", "% of reports begun")
    _legend(axis, 2)


def _values(values: Sequence[float | None]) -> Array:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _title(axis: Any, name: str, unit: str) -> None:
    axis.set_title(name, loc="left", fontsize=11, fontweight="bold")
    axis.set_xlabel(unit, fontsize=9)


def _legend(axis: Any, columns: int) -> None:
    # Below the labels of the axis, by inches.
    height = axis.get_position().height * axis.figure.get_figheight()
    axis.legend(
        frameon=False,
        fontsize=8,
        loc="upper left",
        bbox_to_anchor=(-0.06, -0.5 / height),
        ncols=columns,
        handlelength=1.1,
        handletextpad=0.4,
        columnspacing=0.9,
        borderaxespad=0.0,
    )


def _plain(axis: Any, rows: int) -> None:
    axis.grid(axis="x", alpha=0.25)
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)
    axis.tick_params(axis="x", labelsize=8)
    for place in range(0, rows, 2):
        axis.axhspan(place - 0.5, place + 0.5, color="0.5", alpha=0.07, lw=0, zorder=0)
