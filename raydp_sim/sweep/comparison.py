"""Runs side by side: what differs in their scenarios and in what came of them."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from raydp_sim.metrics.differences import differences as differences
from raydp_sim.metrics.tables import labels as labels
from raydp_sim.sweep.grid import shown

_BLUE, _ORANGE, _GREEN = "#0072B2", "#E69F00", "#009E73"  # Okabe and Ito's


def draw(names: Sequence[str], rows: Sequence[Mapping[str, Any]], measure: str | None) -> bytes:
    """Return a picture as a PNG: a line per run with its error, epsilon and bits.

    Args:
        names: of the runs.
        rows: each with `error`, `standard_error`, `epsilon` and `wire_bytes`.
        measure: which error it is.
    """
    # Matplotlib is slow to import and only needed here.
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    height = 1.6 + 0.36 * len(rows)
    figure, axes = plt.subplots(
        1, 3, figsize=(11, height), sharey=True, layout="constrained", width_ratios=(2, 1.4, 1.4)
    )
    places = range(len(rows))
    words = (measure or "error").replace("_", " ")
    errors = [row["error"] for row in rows]
    spread = [row["standard_error"] or 0.0 for row in rows]
    known = [place for place in places if errors[place] is not None]
    least = [min(spread[place], 0.9 * errors[place]) for place in known]
    axes[0].errorbar(
        [errors[place] for place in known],
        known,
        xerr=[least, [spread[place] for place in known]],
        fmt="o",
        color=_BLUE,
        capsize=3,
    )
    bars = " (bars: one standard error)" if any(spread) else ""
    axes[0].set_xlabel(f"{words}{bars}")
    if known and all(errors[place] > 0.0 for place in known):
        axes[0].set_xscale("log")
    finite = [row["epsilon"] if row["epsilon"] < float("inf") else 0.0 for row in rows]
    axes[1].barh(places, finite, color=_ORANGE, height=0.55)
    for place, row in enumerate(rows):
        if row["epsilon"] == float("inf"):
            axes[1].text(0.0, place, " infinite", va="center", fontsize=9)
    axes[1].set_xlabel("epsilon, client charged most")
    axes[2].barh(places, [row["wire_bytes"] / 1e6 for row in rows], color=_GREEN, height=0.55)
    axes[2].set_xlabel("MB of reports")
    axes[0].set_yticks(places, names)
    axes[0].set_ylim(len(rows) - 0.5, -0.5)
    for axis in axes:
        axis.grid(alpha=0.25, axis="x")
        axis.spines[["top", "right"]].set_visible(False)
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    plt.close(figure)
    return buffer.getvalue()


def cell(value: Any) -> str:
    """Return a value for a table: long ones are cut with a sign that they are.

    Example:
        >>> cell(None), cell(0.5), cell([0.25] * 9)
        ('not set', '0.5', '[0.25, 0.25, and more]')
    """
    if value is None:
        return "not set"
    text = shown(value)
    if isinstance(value, list) and len(text) > 30:
        return f"[{', '.join(shown(each) for each in value[:2])}, and more]"
    return text
