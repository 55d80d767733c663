"""Pictures of a run."""

from pathlib import Path

from raydp_sim.metrics import streams


def plot_run(folder: Path) -> Path:
    """Draw error and privacy over the releases of a run into `plot.png` and return its path."""
    # Matplotlib is slow to import and only needed at the end.
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    table = streams.read(folder / "metrics", "releases")
    scores = [name for name in table.column_names if name not in streams.RELEASES]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    first = table.filter(table["repetition"].to_numpy() == 0) if table.num_rows else table
    releases = first["release"].to_numpy()
    labels = {
        "squared_error_cohort": "against the cohort's mean",
        "squared_error_population": "against the population's mean",
        "running_squared_error": "running mean",
    }
    for name in scores:
        left.plot(releases, first[name].to_numpy(), marker=".", label=labels.get(name, name))
    if table.num_rows:
        left.set_yscale("log")
        left.legend(frameon=False)
    left.set(xlabel="release", ylabel="squared error", title="How far off the estimate is")
    right.plot(releases, first["epsilon"].to_numpy(), marker=".", label="worst client")
    right.plot(releases, first["epsilon_median"].to_numpy(), marker=".", label="median client")
    right.set(xlabel="release", ylabel="epsilon so far", title="What the clients have spent")
    right.set_ylim(bottom=0)
    right.legend(frameon=False)
    for axis in (left, right):
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    path = folder / "plot.png"
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path
