"""Runs over their releases in one picture: an error or accuracy, and what was spent."""

from pathlib import Path

from raydp_sim.metrics import streams

# In this order: the first of them that every run has is drawn.
_MEASURES = ("test_accuracy", "running_squared_error", "squared_error_population")


def draw(names: list[str], folders: list[Path], path: Path) -> None:
    """Draw the first repetition of some runs.

    Args:
        names: of the runs.
        folders: of their streams.
        path: of the picture; its suffix says in which format.
    """
    # Matplotlib is slow to import and only needed here.
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    tables = [_joined(folder) for folder in folders]
    known = [name for name in _MEASURES if all(name in columns for columns, _ in tables)]
    for name, (columns, spent) in zip(names, tables, strict=True):
        axes[1].plot(spent["release"], spent["epsilon"], label=name)
        if known:
            axes[0].plot(columns["release"], columns[known[0]], label=name)
    axes[0].set_ylabel(known[0].replace("_", " ") if known else "no measure that all runs have")
    axes[1].set_ylabel("epsilon so far")
    for axis in axes:
        axis.set_xlabel("release")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    axes[1].legend(frameon=False, fontsize=8)
    figure.savefig(path)
    plt.close(figure)


Columns = dict[str, list[float]]


def _joined(folder: Path) -> tuple[Columns, Columns]:
    """Return the columns that a run is scored by, and those of its releases."""
    scored = streams.read(folder, "learning")
    if not scored.num_rows:
        scored = streams.read(folder, "errors")
    found = []
    for rows in (scored, streams.read(folder, "releases")):
        first = rows.filter(rows["repetition"].to_numpy() == 0) if rows.num_rows else rows
        found.append({name: first[name].to_pylist() for name in first.column_names})
    return found[0], found[1]
