"""The picture of a run: how far off its estimates are, and what its clients have spent."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from raydp_sim.metrics import streams

_LABELS = {
    "squared_error_cohort": "one release, against its cohort",
    "squared_error_population": "one release, against the population",
    "running_squared_error": "mean of the releases so far, against the population",
}
# Okabe and Ito's colours, which the colour-blind can tell apart.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
_MARKED = 60  # with more releases than this, markers only smear the line


def plot_run(folder: Path, expected: Callable[[int], float] | None = None) -> Path:
    """Draw error and privacy over the releases of a run into `plot.png` and return its path.

    With several repetitions the lines are means and the bands one standard error to each side.

    Args:
        folder: the run directory.
        expected: the worst-case expected squared error of a release with so many reports, if known.
    """
    # Matplotlib is slow to import and only needed at the end.
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import MaxNLocator

    table = streams.read(folder / "metrics", "releases")
    scores = [
        name
        for name in table.column_names
        if name not in streams.RELEASES and "probability" not in name
    ]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    for name, colour in zip(scores, _COLOURS * len(scores), strict=False):
        _line(left, table, name, _LABELS.get(name, name.replace("_", " ")), colour)
    if expected is not None and "squared_error_cohort" in scores:
        _expectation(left, table, expected)
    _line(right, table, "epsilon", "client charged most", _COLOURS[0])
    _line(right, table, "epsilon_median", "median client", _COLOURS[1])
    left.set_ylabel("squared error")
    left.set_title("How far off the estimate is", loc="left")
    right.set_ylabel("epsilon so far")
    right.set_title("What the clients have spent", loc="left")
    if any((table[name].to_numpy() > 0).any() for name in scores):
        left.set_yscale("log")
    right.set_ylim(bottom=0)
    for axis in (left, right):
        axis.set_xlabel("release")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axis.grid(alpha=0.25, which="major")
        axis.spines[["top", "right"]].set_visible(False)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(frameon=False, fontsize=9)
    figure.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr, call-arg]  # constrained
    path = folder / "plot.png"
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path


def _line(axis: Any, table: pa.Table, name: str, label: str, colour: str) -> None:
    """Draw one column against the number of the release, as a mean over repetitions."""
    releases, groups = _by_release(table, name)
    if not len(releases):
        return
    mean = np.array([group.mean() for group in groups])
    line: dict[str, Any] = {"lw": 1.5, "marker": "o" if len(releases) <= _MARKED else ""}
    if name == "squared_error_population":
        # Nearly the same as the cohort's line, which has to stay visible on top of it.
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
