"""The picture of a figure: all panels on one sheet, proved bounds solid, all others dashed."""

import math
from io import BytesIO
from typing import Any

import pyarrow as pa

from raydp_sim.figures.model import Figure, Panel

# Okabe and Ito's colours, which the colour-blind can tell apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_AXES = {
    "alpha": "order α",
    "clients": "clients n",
    "epsilon0": "local loss ε₀",
    "rounds": "rounds T",
    "rdp": "Rényi divergence",
    "epsilon": "ε of the run",
    "dimension": "dimension d",
    "coordinates": "sampled coordinates s",
    "levels": "levels",
    "samples": "samples of each client m",
    "mse": "mean squared error",
    "bits": "bits of a report",
    "regret": "total regret",
    "categories": "categories k",
    "randomness": "randomness R, bits",
    "likelihood": "likelihood",
    "l1": "ℓ1 error",
    "information": "information of a bit",
    "kept": "numbers sent k",
    "alike": "clients that hold one vector",
    "correlation": "correlation R",
    "sketched": "mean squared error",
    "multiple": "multiple m",
    "tally": "votes for 1",
    "asked": "votes asked M",
    "queries": "queries Q",
    "right": "accuracy of a vote",
    "gamma": "noise function γ",
    "error": "error of the majority",
    "accuracy": "accuracy of labels",
    "guarantee": "",
    "risk": "objective on private data",
    "epochs": "epochs",
}
# A lower bound on divergences is none on epsilon once it is converted, which loses by itself.
_SUFFIX = {
    ("rdp", "proved"): "",
    ("rdp", "lower"): ", lower bound",
    ("rdp", "heuristic"): ", heuristic",
    ("epsilon", "proved"): "",
    ("epsilon", "lower"): " (no bound on ε)",
    ("epsilon", "heuristic"): ", heuristic",
    ("mse", "exact"): "",
    ("mse", "bound"): " (bound)",
    ("mse", "simulated"): ", simulated",
    ("mse", "formula"): "",
    ("mse", "order"): " (order only)",
    ("bits", "exact"): "",
    ("bits", "formula"): "",
    ("bits", "order"): " (order only)",
    ("regret", "simulated"): "",
    ("l1", "simulated"): ", simulated",
    ("l1", "predicted"): "",
    ("likelihood", "formula"): "",
    ("information", "formula"): "",
    ("sketched", "exact"): "",
    ("sketched", "formula"): "",
    ("sketched", "simulated"): ", simulated",
    ("gamma", "formula"): "",
    ("error", "formula"): "",
    ("error", "simulated"): "",
    ("accuracy", "formula"): "",
    ("guarantee", "formula"): "",
    ("risk", "simulated"): "",
}
_SOLID = ("proved", "exact", "bound")


def draw(figure: Figure, tables: dict[str, pa.Table]) -> bytes:
    """Return the picture as a PNG.

    Args:
        figure: what to draw.
        tables: each panel's data, by name.
    """
    # Matplotlib is slow to import and only needed at the end.
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    count = len(tables)
    columns = min(count, 3) if count != 4 else 2
    rows = math.ceil(count / columns)
    size = (max(4.1 * columns, 7.0), 3.3 * rows + 1.1)
    sheet, grid = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    curves = dict.fromkeys(c for panel in figure.panels.values() for c in panel.curves)
    # Curves that the legend calls the same look the same.
    every = dict.fromkeys(figure.labels.get(curve, curve) for curve in curves)
    order = {label: index for index, label in enumerate(every)}
    styles = {curve: order[figure.labels.get(curve, curve)] for curve in curves}
    handles: dict[str, Any] = {}
    for axis, name in zip(grid.flat, tables, strict=False):
        panel = figure.panels[name]
        _panel(axis, panel, tables[name], figure.labels, styles, handles)
        axis.set_title(f"({name}) {panel.title}", loc="left", fontsize=9)
    for axis in list(grid.flat)[count:]:
        axis.set_axis_off()
    if figure.title:
        sheet.suptitle(figure.title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    if handles:
        wide = 0.5 + 0.066 * max(map(len, handles))
        sheet.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower center",
            ncols=min(len(handles), max(1, int(size[0] / wide))),
            frameon=False,
            fontsize=8.5,
        )
    sink = BytesIO()
    sheet.savefig(sink, format="png", dpi=130)
    plt.close(sheet)
    return sink.getvalue()


def _panel(
    axis: Any,
    panel: Panel,
    table: pa.Table,
    labels: dict[str, str],
    styles: dict[str, int],
    handles: dict[str, Any],
) -> None:
    for curve in panel.curves:
        rows = [row for row in table.to_pylist() if row["curve"] == curve and row["value"]]
        rows.sort(key=lambda row: row[panel.sweep])
        if not rows:
            continue
        status = rows[0]["status"]
        style, again = styles[curve], styles[curve] // len(_COLOURS)
        # Colours come again after eight curves, then with other marks and strokes.
        joined = panel.quantity in ("regret", "risk")
        drawn = status == "simulated" and not joined
        stroke = "-" if status in _SOLID or joined else "--"
        if again:
            stroke = "-." if stroke == "-" else ":"
        (line,) = axis.plot(
            [row[panel.sweep] for row in rows],
            [row["value"] for row in rows],
            color=_COLOURS[style % len(_COLOURS)],
            ls="" if drawn else stroke,
            lw=1.6,
            marker=_MARKERS[(style + 3 * again) % len(_MARKERS)],
            markersize=6.0 if drawn else 3.6,
            mfc="none" if drawn else None,
        )
        _bars(axis, panel.sweep, rows, line.get_color())
        handles.setdefault(labels.get(curve, curve) + _SUFFIX[panel.quantity, status], line)
    axis.set_xscale(panel.x_scale)
    axis.set_yscale(panel.y_scale)
    few = len(panel.values) <= 10 and max(panel.values) < 100 * min(panel.values)
    if panel.x_scale == "log" and few:
        # Between two powers of ten the labels of a log axis run into each other.
        axis.set_xticks(panel.values, [f"{x:g}" for x in panel.values])
        axis.set_xticks([], minor=True)
    x_axis = _AXES[panel.sweep]
    if panel.sweep == "epsilon":
        x_axis = "ε (local: ε₀)" if panel.quantity == "regret" else "ε of the release"
    axis.set_xlabel(x_axis, fontsize=9)
    axis.set_ylabel(_AXES[panel.quantity], fontsize=9)
    axis.tick_params(which="both", labelsize=8)
    axis.grid(alpha=0.25, which="major")
    axis.spines[["top", "right"]].set_visible(False)


def _bars(axis: Any, sweep: str, rows: list[dict[str, Any]], colour: str) -> None:
    """Draw what was drawn at random with one standard error to either side."""
    known = [row for row in rows if row["spread"] is not None]
    if known:
        axis.errorbar(
            [row[sweep] for row in known],
            [row["value"] for row in known],
            yerr=[row["spread"] for row in known],
            fmt="none",
            ecolor=colour,
            elinewidth=0.9,
            capsize=2.0,
        )
