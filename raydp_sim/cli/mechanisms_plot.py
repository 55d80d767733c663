"""The picture of `raydp-sim mechanisms --plot`: error against bits, local and shuffled."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.compare import Budget, Entry, Offer

# Okabe and Ito's colours, which the colour-blind can tell apart, each with a marker of its own.
_STYLES = {
    "l2 ball": ("#0072B2", "o"),
    "linf ball": ("#D55E00", "s"),
    "l1 ball": ("#009E73", "^"),
    "lp ball": ("#CC79A7", "D"),
    "scalar": ("#444444", "v"),
    "binary": ("#E69F00", "P"),
    "bit": ("#8C6D31", "X"),
    "category": ("#56B4E9", "*"),
}
_OTHER = ("#999999", "h")
_FONT = 8.5


def draw(entries: list[Entry], budget: Budget, path: Path) -> None:
    """Draw every mechanism's worst-case error against its bits into a PNG file.

    Args:
        entries: of `catalogue`.
        budget: they were built at.
        path: of the picture.
    """
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    panels = (
        (f"Local model: each report ε = {budget.epsilon:g}", [(e, e.own) for e in entries]),
        (
            f"Shuffle model: the release ε = {budget.epsilon:g}, δ = {budget.delta:g}",
            [(e, e.shuffled or Offer()) for e in entries],
        ),
    )
    with plt.rc_context({"font.size": 10}):
        figure, axes = plt.subplots(1, 2, figsize=(13.5, 6.6), layout="constrained", sharey=True)
        handles: dict[str, Any] = {}
        shown = []
        for axis, (title, offers) in zip(axes, panels, strict=True):
            shown.append(_panel(axis, title, offers, handles))
        axes[0].set_ylabel(f"worst-case squared error of the mean of {budget.clients:,}")
        figure.suptitle(
            f"Error against communication, d = {budget.dimension:,}, radius 1 "
            "(compare within one colour)",
            x=0.01,
            ha="left",
            fontsize=12,
            fontweight="bold",
        )
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower center",
            ncols=max(1, len(handles)),
            frameon=False,
        )
        figure.draw_without_rendering()  # the layout decides where labels can go
        figure.set_layout_engine("none")
        for axis, points in zip(axes, shown, strict=True):
            _label(axis, points)
        try:
            figure.savefig(path, dpi=140)
        except OSError as error:
            raise bad_field("--plot", str(path), f"it cannot be written: {error}") from None
        finally:
            plt.close(figure)


Point = tuple[float, float, str, str]


def _panel(
    axis: Any, title: str, offers: list[tuple[Entry, Offer]], handles: dict[str, Any]
) -> list[Point]:
    points: list[Point] = []
    for entry, offer in offers:
        if offer.mse is None or offer.bits is None or entry.guarantee == "none":
            continue
        colour, marker = _STYLES.get(entry.domain, _OTHER)
        central = entry.trust == "central"
        (line,) = axis.plot(
            [offer.bits],
            [offer.mse],
            ls="",
            marker=marker,
            markersize=8,
            color=colour,
            mfc="white" if central else colour,
            mew=1.4,
        )
        name = entry.domain + (", central noise" if central else "")
        handles.setdefault(name, line)
        points.append((float(offer.bits), offer.mse, entry.kind, colour))
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.margins(x=0.14, y=0.08)
    axis.set_xlabel("bits of one client's report")
    axis.set_title(title, loc="left", fontsize=10.5)
    axis.grid(alpha=0.22, which="major")
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelleft=True)
    if not points:
        axis.text(0.5, 0.5, "nothing applies", transform=axis.transAxes, ha="center")
    return points


def _label(axis: Any, points: list[Point]) -> None:
    """Write each kind beside its point, where it covers neither points nor other labels.

    Places around the point are tried from near to far; far ones get a line to their point.
    """
    from matplotlib.transforms import Bbox

    figure = axis.figure
    renderer = figure.canvas.get_renderer()
    scale = figure.dpi / 72.0
    at = [axis.transData.transform((x, y)) for x, y, _, _ in points]
    taken = [Bbox.from_extents(*(p - 6.0 * scale), *(p + 6.0 * scale)) for p in at]
    inside = axis.get_window_extent(renderer)
    for x, y, kind, colour in sorted(points):
        best, label = None, None
        for distance, angle in _places():
            shift = distance * np.array([np.cos(angle), np.sin(angle)])
            side = "left" if shift[0] > 1e-6 else "right" if shift[0] < -1e-6 else "center"
            if label is not None:
                label.remove()
            label = axis.annotate(
                kind,
                xy=(x, y),
                xytext=tuple(shift),
                textcoords="offset points",
                ha=side,
                va="center",
                color=colour,
                fontsize=_FONT,
                arrowprops={"arrowstyle": "-", "lw": 0.6, "color": colour, "shrinkB": 3}
                if distance > 12
                else None,
            )
            box = _text_box(label, renderer)
            fits = inside.x0 <= box.x0 and box.x1 <= inside.x1 + 20 * scale
            fits = fits and inside.y0 <= box.y0 and box.y1 <= inside.y1
            if fits and not any(box.overlaps(other) for other in taken):
                best = box
                break
        if label is not None:
            taken.append(best or _text_box(label, renderer))


def _places() -> list[tuple[float, float]]:
    angles = (0.0, np.pi, 0.5, -0.5, np.pi - 0.5, np.pi + 0.5, 1.2, -1.2, np.pi / 2, -np.pi / 2)
    return [(distance, angle) for distance in (9.0, 16.0, 26.0, 38.0, 52.0) for angle in angles]


def _text_box(label: Any, renderer: Any) -> Any:
    """Return where the words are, without the line to their point."""
    from matplotlib.text import Text

    label.update_positions(renderer)
    return Text.get_window_extent(label, renderer).padded(1.0)
