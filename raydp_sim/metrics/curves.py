"""Learning curves: how good a model was when, and what that had cost by then."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from raydp_sim.metrics import streams
from raydp_sim.metrics.panels import BLUE, GREEN, ORANGE

Floats = NDArray[np.float64]

COLUMNS = ("run", "repetition", "round", "test_accuracy", "test_loss", "epsilon", "epsilon_seed")
"""Of a table of curves: `epsilon` by the best bound, `epsilon_seed` by the papers' own."""
# Models are evaluated now and then, so a run may end a little before an epsilon that it was for.
_CLOSE = 0.99


@dataclass(frozen=True)
class Reached:
    """What the runs of a table had reached at some point of their training.

    Attributes:
        round: releases until then.
        epsilon: by the best bound.
        epsilon_seed: by the papers' own; not a number where they have none.
        accuracy: on test samples, mean over runs and repetitions.
        spread: standard deviation of a single one; not a number if there is but one.
        runs: how many there are.
    """

    round: int
    epsilon: float
    epsilon_seed: float
    accuracy: float
    spread: float
    runs: int


def curves(name: str, folder: Path) -> pa.Table:
    """Return the learning curves of a run, one row per release that was evaluated.

    Args:
        name: of the run, for the first column.
        folder: of its streams.
    """
    rows, spent = streams.read(folder, "learning"), streams.read(folder, "releases")
    cost = spent.select([*streams.KEY, "epsilon", "epsilon_seed"]).to_pylist()
    at = {(row["repetition"], row["release"]): row for row in cost}
    found = []
    for row in rows.to_pylist():
        price = at[row["repetition"], row["release"]]
        known = {"run": name, "round": row["release"] + 1, **price, **row}
        found.append({column: known[column] for column in COLUMNS})
    kinds = (pa.string(), *2 * (pa.int64(),), *4 * (pa.float64(),))
    return pa.Table.from_pylist(found, pa.schema(zip(COLUMNS, kinds, strict=True)))


def reached(table: pa.Table, epsilon_seed: float | None = None) -> Reached | None:
    """Return where the runs stood at the last release within an epsilon of the papers' own bound.

    By default at the last release that all of them have. None where they have none, or end before
    they have spent that much.

    Example:
        >>> rows = {"run": ["a", "b"], "repetition": [0, 0], "round": [6, 6], "epsilon": [0.1, 0.1]}
        >>> scores = {"test_accuracy": [0.5, 0.7], "test_loss": [1.0, 1.0]}
        >>> table = pa.table({**rows, **scores, "epsilon_seed": [1.0, 1.0]})
        >>> found = reached(table, 1.0)
        >>> found.round, round(found.accuracy, 6), round(found.spread, 3)
        (6, 0.6, 0.141)
    """
    rounds, cost = table["round"].to_numpy(), _numbers(table, "epsilon_seed")
    own = {run: _of(table, run) for run in _runs(table)}
    shared = set.intersection(*(set(rounds[places]) for places in own.values())) if own else set()
    if epsilon_seed is not None:
        if not _CLOSE * epsilon_seed <= cost.max(initial=0.0):
            return None
        shared -= set(rounds[~(cost <= epsilon_seed)])
    if not shared:
        return None
    last = max(shared)
    places = [int(mine[rounds[mine] == last][0]) for mine in own.values()]
    accuracy = _numbers(table, "test_accuracy")[places]
    spread = float(accuracy.std(ddof=1)) if len(places) > 1 else float("nan")
    epsilon = float(_numbers(table, "epsilon")[places].max())
    seed = float(cost[places].max())
    return Reached(int(last), epsilon, seed, float(accuracy.mean()), spread, len(places))


def write_csv(table: pa.Table, path: Path) -> None:
    """Write a table of curves as text."""
    with path.open("wb") as file:
        pyarrow.csv.write_csv(table, file)


def read_csv(path: Path) -> pa.Table:
    """Read back what `write_csv` wrote."""
    return pyarrow.csv.read_csv(path)


def draw(table: pa.Table, printed: dict[float, float | None], path: Path) -> None:
    """Draw accuracy against rounds, and against epsilon by both bounds with the printed points."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    accuracy = _numbers(table, "test_accuracy")
    for number, run in enumerate(_runs(table)):
        places, first = _of(table, run), number == 0
        left.plot(table["round"].to_numpy()[places], accuracy[places], color=BLUE, lw=0.9)
        for name, colour, label in (
            ("epsilon", BLUE, "best proved bound"),
            ("epsilon_seed", GREEN, "the papers' own bound"),
        ):
            price = _numbers(table, name)[places]
            if np.isfinite(price).all():
                shown = label if first else None
                right.plot(price, accuracy[places], color=colour, lw=0.9, label=shown)
    points = [(at, value) for at, value in printed.items() if value is not None]
    if points:
        right.plot(*zip(*points, strict=True), "s", color=ORANGE, label="printed in the paper")
    left.set(xlabel="round", ylabel="accuracy on test samples", title="one line per run")
    right.set(xlabel="epsilon so far", xscale="log", ylabel="accuracy on test samples")
    if right.lines:
        right.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncol=3)
    for axis in (left, right):
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _numbers(table: pa.Table, name: str) -> Floats:
    return np.array(table[name].to_pylist(), dtype=np.float64)


def _runs(table: pa.Table) -> list[tuple[Any, ...]]:
    keys = zip(table["run"].to_pylist(), table["repetition"].to_pylist(), strict=True)
    return list(dict.fromkeys(keys))


def _of(table: pa.Table, run: tuple[Any, ...]) -> NDArray[np.int64]:
    name, repetition = (np.array(table[column].to_pylist()) for column in ("run", "repetition"))
    return np.flatnonzero((name == run[0]) & (repetition == run[1]))
