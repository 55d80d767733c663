"""Two panels of a run's picture: the estimate against the truth, and who took part."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from raydp_sim.metrics import estimates, streams
from raydp_sim.metrics.estimates import Named

BLUE, ORANGE, GREEN, PINK = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
"""Okabe and Ito's colours, which the colour-blind can tell apart."""

_SIDE_BY_SIDE = 30  # categories that are drawn as bars, the largest ones
_ALONG = 64  # coordinates that are drawn one beside the other
_GROUPS = 12
_BARS = 2.0  # standard errors to each side
_SEEN = "truth of those who took part"
_RING = {"marker": "o", "mfc": "none", "mec": "0.1", "ms": 8, "ls": "none", "zorder": 4}
_NOTE = f"noise, {_BARS:g} standard errors"


def draw_estimate(axis: Any, folder: Path, categories: bool) -> None:
    """Draw the last estimate of the first repetition with error bars, and the truth beside it.

    Args:
        axis: of the panel.
        folder: of the streams.
        categories: whether it is a histogram.
    """
    found, truth = estimates.last_estimate(folder), estimates.last_truth(folder)
    assert found is not None
    axis.set_title("What was learned", loc="left")
    seen = _others(folder, found, truth)
    if len(found) == 1:
        _over_time(axis, folder)
    elif categories:
        _histogram(axis, found, truth, seen)
    elif len(found) <= _ALONG or truth is None:
        _along(axis, found, truth, seen)
    else:
        _scatter(axis, found, truth)


def _reach(found: Named) -> np.ndarray:
    error = found.standard_error
    assert error is not None
    return _BARS * np.nan_to_num(error)


def _others(folder: Path, found: Named, truth: Named | None) -> Named | None:
    """Return the truth of those who took part, where noise does not hide that it is another."""
    seen = estimates.last_truth(folder, of="participants")
    if truth is None or seen is None:
        return None
    apart = float(((seen.values - truth.values) ** 2).sum())
    return seen if apart > float((_reach(found) ** 2).sum()) else None


def _histogram(axis: Any, found: Named, truth: Named | None, seen: Named | None) -> None:
    shown = np.argsort(-found.values, kind="stable")[:_SIDE_BY_SIDE]
    if len(found) <= _SIDE_BY_SIDE:
        shown = np.arange(len(found))
    else:
        axis.set_title(f"What was learned: {len(shown)} largest of {len(found):,}", loc="left")
    place = np.arange(len(shown))
    bars = {"color": BLUE, "alpha": 0.75, "label": "estimate"}
    axis.bar(place, found.values[shown], width=0.8, **bars)
    reach = _reach(found)[shown]
    axis.errorbar(place, found.values[shown], reach, fmt="none", ecolor="0.25", lw=1, label=_NOTE)
    if truth is not None:
        tick = {"marker": "_", "ms": max(5, 150 / len(shown)), "mew": 2.2, "ls": "none"}
        axis.plot(place, truth.values[shown], color=ORANGE, label="truth", zorder=3, **tick)
    if seen is not None:
        axis.plot(place, seen.values[shown], label=_SEEN, **_RING)
    names = [found.names[each] for each in shown]
    long = max(len(name) for name in names) > 3 or len(shown) > 16
    axis.set_xticks(place, names, rotation=90 if long else 0, fontsize=7 if long else 9)
    axis.axhline(0.0, color="0.5", lw=0.8)
    axis.set(xlabel="category", ylabel="share")


def _along(axis: Any, found: Named, truth: Named | None, seen: Named | None) -> None:
    place = np.arange(len(found))
    if truth is not None:
        line = {"color": ORANGE, "lw": 2.2, "where": "mid", "label": "truth"}
        axis.step(place, truth.values, **line)
    if seen is not None:
        axis.plot(place, seen.values, label=_SEEN, **_RING)
    bars = {"fmt": "o", "ms": 4, "color": BLUE, "ecolor": BLUE, "elinewidth": 1}
    axis.errorbar(place, found.values, _reach(found), label=f"estimate, {_NOTE}", **bars)
    if any(name != str(each) for each, name in enumerate(found.names)):
        axis.set_xticks(place, found.names, rotation=90, fontsize=7)
    else:
        axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set(xlabel="coordinate", ylabel="mean")


def _scatter(axis: Any, found: Named, truth: Named) -> None:
    ends = np.array([truth.values.min(), truth.values.max()])
    axis.plot(ends, ends, color=ORANGE, lw=2, label="where the estimate is true", zorder=3)
    reach = float(np.sqrt(np.mean(_reach(found) ** 2)))
    axis.fill_between(ends, ends - reach, ends + reach, color=ORANGE, alpha=0.2, lw=0, label=_NOTE)
    axis.plot(truth.values, found.values, ".", color=BLUE, ms=3, alpha=0.5, label="a coordinate")
    axis.set(xlabel="truth", ylabel="estimate")


def _over_time(axis: Any, folder: Path) -> None:
    rows = streams.read(folder, estimates.ESTIMATES)
    rows = rows.filter(pc.equal(rows["repetition"], 0))
    place = rows["release"].to_numpy() + 1
    values, error = rows["estimate"].to_numpy(), rows["standard_error"].to_numpy()
    bars = {"fmt": "o", "ms": 4, "color": BLUE, "ecolor": BLUE, "elinewidth": 1}
    reach = _BARS * np.nan_to_num(error)
    axis.errorbar(place, values, reach, label=f"estimate so far, {_NOTE}", **bars)
    if (truth := estimates.last_truth(folder)) is not None:
        axis.axhline(float(truth.values[0]), color=ORANGE, lw=2, label="truth", zorder=1)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set(xlabel="release", ylabel="mean")


def draw_groups(axis: Any, breakdown: dict[str, Any]) -> None:
    """Draw each group's share of the clients and of the reports, what it spent and its error."""
    rows = breakdown["groups"]
    title = f"Who took part, by {breakdown['by']}"
    if len(rows) > _GROUPS:
        title += f" ({_GROUPS} of {len(rows)})"
        apart = [abs(row["share_of_reports"] - row["share_of_clients"]) for row in rows]
        rows = [rows[each] for each in sorted(np.argsort(apart)[-_GROUPS:])]
    place = np.arange(len(rows))
    for name, colour, shift in (("clients", "0.7", -0.2), ("reports", GREEN, 0.2)):
        widths = [row[f"share_of_{name}"] for row in rows]
        axis.barh(place + shift, widths, 0.4, color=colour, label=name)
    most = max(max(row["share_of_clients"], row["share_of_reports"]) for row in rows)
    for each, row in zip(place, rows, strict=True):
        beside = max(row["share_of_clients"], row["share_of_reports"]) + 0.02 * most
        text = f"epsilon {row['epsilon']['median']:.3g}"
        if row["epsilon"]["max"] > row["epsilon"]["median"]:
            text += f" to {row['epsilon']['max']:.3g}"
        if row.get("squared_error") is not None and np.isfinite(row["squared_error"]):
            text += f"\nsquared error {row['squared_error']:.2g}"
        axis.text(beside, each, text, va="center", fontsize=8)
    axis.set_yticks(place, [row["group"] for row in rows])
    axis.set_xlim(0, 1.55 * most)
    axis.set_xticks([tick for tick in axis.get_xticks() if 0.0 <= tick <= min(1.0, most)])
    axis.invert_yaxis()
    axis.set_xlabel("share; epsilon of the median client to the one charged most")
    axis.set_title(title, loc="left")
    # Above the panel: inside it stands the text.
    above = {"loc": "lower right", "bbox_to_anchor": (1.0, 0.985), "ncols": 2}
    axis.legend(frameon=False, fontsize=8, **above)
