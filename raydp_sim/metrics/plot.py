"""The picture of a run: what was learned, how far off it is, what clients spent, who took part."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from raydp_sim.metrics import streams
from raydp_sim.metrics.bandits import draw_batches, draw_regret
from raydp_sim.metrics.descent import draw_descent
from raydp_sim.metrics.estimates import last_estimate
from raydp_sim.metrics.level_panels import draw_followed, followed
from raydp_sim.metrics.panels import BLUE, GREEN, ORANGE, PINK, draw_estimate, draw_groups
from raydp_sim.metrics.training import draw_accuracy, draw_loss, draw_price
from raydp_sim.metrics.vote_panels import draw_labels, draw_votes

_LABELS = {
    "squared_error_cohort": "one release, against its cohort",
    "squared_error_population": "one release, against the population",
    "running_squared_error": "mean of the releases so far, against the population",
}
_COLOURS = (BLUE, ORANGE, GREEN, PINK)
_BELOW = ("squared_error_population", "epsilon_median")
_MARKED = 60  # with more releases than this, markers only smear the line


@dataclass(frozen=True)
class Looks:
    """What a picture cannot tell from the streams.

    Attributes:
        categories: whether the estimate is a histogram.
        breakdown: the section of the summary, where the population has groups.
    """

    categories: bool = False
    breakdown: dict[str, Any] | None = None


def plot_run(
    folder: Path,
    expected: Callable[[int], float] | None = None,
    looks: Looks = Looks(),  # frozen
    path: Path | None = None,
) -> Path:
    """Draw a run and return the picture's path.

    The estimate against the truth, the error and what was spent over the releases, and who took
    part. With several repetitions lines are means and bands one standard error to each side;
    estimate and groups are the first repetition's.

    Args:
        folder: the run directory.
        expected: the worst-case expected squared error of a release with so many reports, if known.
        looks: what else the picture needs to know.
        path: of the picture, whose suffix says in which format; `plot.png` of the run directory
            unless given.
    """
    # Matplotlib is slow to import and only needed at the end.
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    metrics = folder / "metrics"
    table, withheld = streams.joined(metrics), streams.read(metrics, "withheld")
    drawn: list[Callable[[Any], None]] = []
    over_time = followed(metrics)
    drawn += [partial(draw_followed, folder=metrics, category=each) for each in over_time]
    if not over_time and last_estimate(metrics) is not None:
        drawn.append(partial(draw_estimate, folder=metrics, categories=looks.categories))
    tested, trained, played, voted = (
        streams.read(metrics, each).num_rows > 0
        for each in ("learning", "training", "bandit", "votes")
    )
    if voted:
        drawn = [partial(draw, folder=metrics) for draw in (draw_votes, draw_labels)]
    elif played:
        drawn.insert(0, partial(draw_regret, folder=metrics))
    elif trained:
        # Where everyone trains alone there is no common model whose accuracy would have a price.
        panels = (draw_accuracy, draw_price, draw_loss) if tested else (draw_accuracy, draw_loss)
        drawn += [partial(draw, folder=metrics) for draw in panels]
    elif streams.read(metrics, "epochs").num_rows:
        drawn.append(partial(draw_descent, folder=metrics))
    else:
        drawn.append(partial(_errors, table=table, withheld=withheld, expected=expected))
    spending = _spending_twice if trained else _spending
    spent = partial(spending, table=table, withheld=withheld)
    if looks.breakdown is None:
        groups = []
    else:
        groups = [partial(draw_groups, breakdown=looks.breakdown)]
    if played:
        drawn += [*groups, partial(draw_batches, folder=metrics), spent]  # below the regret
    else:
        drawn += [spent, *groups]
    rows = 2 if len(drawn) >= 4 else 1
    columns = -(-len(drawn) // rows)
    size = (5.5 * columns, 5.0 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained")
    for axis, draw in zip(axes.ravel(), drawn, strict=False):
        draw(axis)
    for axis in axes.ravel()[len(drawn) :]:
        axis.set_axis_off()
    for axis in axes.ravel():
        axis.grid(alpha=0.25, which="major")
        axis.spines[["top", "right"]].set_visible(False)
        if axis.get_legend_handles_labels()[0] and axis.get_legend() is None:
            _legend(axis)
    figure.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr, call-arg]  # constrained
    path = path or folder / "plot.png"
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path


def _legend(axis: Any) -> None:
    """Say below a panel what is drawn in it: inside there is no place that is always empty."""
    from matplotlib.transforms import ScaledTranslation

    # Names of categories may stand upright: how far the axis reaches down is measured, in inches.
    drop = (axis.bbox.y0 - axis.xaxis.get_tightbbox().y0) / axis.figure.dpi
    below = axis.transAxes + ScaledTranslation(0.0, -drop, axis.figure.dpi_scale_trans)
    place = {"loc": "upper left", "bbox_to_anchor": (0.0, 0.0), "bbox_transform": below}
    axis.legend(frameon=False, fontsize=8, **place)


def _errors(
    axis: Any, table: pa.Table, withheld: pa.Table, expected: Callable[[int], float] | None
) -> None:
    """Draw how far off the releases were."""
    named = streams.scores(dict.fromkeys(table.column_names))
    scores = [name for name in named if "squared" in name or "bound" in name]
    for name, colour in zip(scores, _COLOURS * len(scores), strict=False):
        _line(axis, table, name, _LABELS.get(name, name.replace("_", " ")), colour)
    if expected is not None and "squared_error_cohort" in scores:
        _expectation(axis, table, expected)
    if any((table[name].to_numpy() > 0).any() for name in scores):
        axis.set_yscale("log")
    axis.set_ylabel("squared error")
    axis.set_title("How far off the estimate is", loc="left")
    _releases(axis, withheld)


def _spending_twice(axis: Any, table: pa.Table, withheld: pa.Table) -> None:
    """Draw what clients have spent by the papers' own bound too, where they have one."""
    known = table.filter(table["epsilon"].is_valid())
    if known["epsilon_seed"].null_count == 0:
        _line(axis, known, "epsilon_seed", "by the papers' own bound", GREEN)
    _spending(axis, table, withheld)


def _spending(axis: Any, table: pa.Table, withheld: pa.Table) -> None:
    """Draw what clients have spent; often the median client has spent as much as any."""
    table = table.filter(table["epsilon"].is_valid())  # some releases may have none worked out
    if np.isfinite(table["epsilon"].to_numpy()).all():
        _line(axis, table, "epsilon_median", "median client", ORANGE)
        _line(axis, table, "epsilon", "client charged most", BLUE)
    else:
        axis.text(0.5, 0.5, "no guarantee: infinite", ha="center", transform=axis.transAxes)
    axis.set_ylim(bottom=0)
    axis.set_ylabel("epsilon so far")
    axis.set_title("What the clients have spent", loc="left")
    _releases(axis, withheld)


def _releases(axis: Any, withheld: pa.Table) -> None:
    """Number the releases, and mark those that were withheld along the axis."""
    from matplotlib.ticker import MaxNLocator

    axis.set_xlabel("release")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if withheld.num_rows:
        place = np.unique(withheld["release"].to_numpy()) + 1
        mark = {"marker": "x", "ls": "none", "color": "0.2", "ms": 5, "clip_on": False}
        label = f"withheld: batch too small ({withheld.num_rows:,})"
        along = axis.get_xaxis_transform()
        axis.plot(place, np.full(len(place), 0.015), transform=along, label=label, **mark)


def _line(axis: Any, table: pa.Table, name: str, label: str, colour: str) -> None:
    """Draw one column against the number of the release, as a mean over repetitions."""
    releases, groups = _by_release(table, name)
    if not len(releases):
        return
    mean = np.array([group.mean() for group in groups])
    line: dict[str, Any] = {"lw": 1.5, "marker": "o" if len(releases) <= _MARKED else ""}
    if name in _BELOW:
        # Nearly the same as another line, which has to stay visible on top of it.
        line = {"lw": 5, "alpha": 0.4, "marker": "o" if len(releases) == 1 else "", "zorder": 1}
    axis.plot(releases, mean, color=colour, label=label, markersize=3.5, **line)
    if max(len(group) for group in groups) > 1:
        error = np.array([_standard_error(group) for group in groups])
        # On a log axis a band may not reach 0.
        axis.fill_between(
            releases,
            np.maximum(mean - error, mean / 10),
            mean + error,
            color=colour,
            alpha=0.2,
            lw=0,
        )


def _expectation(axis: Any, table: pa.Table, expected: Callable[[int], float]) -> None:
    releases, sizes = _by_release(table, "batch_size")
    if not len(releases):
        return
    try:
        line = [float(np.mean([expected(int(size)) for size in group])) for group in sizes]
    except NotImplementedError:
        return  # a mechanism of the user's own need not know its error
    label = "worst-case expectation, against its cohort"
    if len(releases) == 1:
        axis.axhline(line[0], color="0.35", ls="--", lw=1.2, label=label)
    else:
        axis.plot(releases, line, color="0.35", ls="--", lw=1.2, label=label)


def _by_release(table: pa.Table, name: str) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the numbers of the releases, from 1, and each one's values over the repetitions."""
    release, values = table["release"].to_numpy(), table[name].to_numpy()
    order = np.argsort(release, kind="stable")
    found, starts = np.unique(release[order], return_index=True)
    return found + 1, np.split(values[order], starts[1:]) if len(found) else []


def _standard_error(group: np.ndarray) -> float:
    return float(group.std(ddof=1)) / math.sqrt(len(group)) if len(group) > 1 else 0.0
