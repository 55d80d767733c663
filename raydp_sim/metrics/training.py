"""Panels of a run that trains a model: accuracy over the rounds and at its price, and the loss."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from raydp_sim.metrics import streams
from raydp_sim.metrics.panels import BLUE, GREEN, ORANGE, PINK

_TEST, _VALIDATION = "test samples", "validation samples"


def draw_accuracy(axis: Any, folder: Path) -> None:
    """Draw the accuracy on held-out samples after every release that was evaluated."""
    rows = streams.read(folder, "learning")
    _curve(axis, rows, "test_accuracy", _TEST, BLUE)
    _curve(axis, rows, "validation_accuracy", _VALIDATION, ORANGE)
    training = streams.read(folder, "training")
    _curve(axis, training, "training_accuracy", "cohort, before its step (simulation)", PINK, 1)
    own = streams.read(folder, "personal")
    _curve(axis, own, "personal_accuracy", "personal models, own samples (simulation)", GREEN)
    _curve(axis, own, "alone_accuracy", "trained alone, own samples (simulation)", PINK, 1)
    axis.set(xlabel="release", ylabel="accuracy")
    axis.set_title("What the model learned", loc="left")


def draw_price(axis: Any, folder: Path) -> None:
    """Draw the test accuracy against what it cost, by the best bound and by the papers' own."""
    rows, spent = streams.read(folder, "learning"), streams.read(folder, "releases")
    axis.set(xlabel="epsilon so far", ylabel="accuracy on test samples")
    axis.set_title("What accuracy costs", loc="left")
    at = {key: place for place, key in enumerate(_keys(spent))}
    keys = _keys(rows)
    known = [each for each, key in enumerate(keys) if key in at]
    places = [at[keys[each]] for each in known]
    accuracy, repetition = (rows[k].to_numpy()[known] for k in ("test_accuracy", "repetition"))
    for name, label, colour in (
        ("epsilon", "best bound", BLUE),
        ("epsilon_seed", "the papers' own bound", GREEN),
    ):
        price = np.array(spent[name].to_pylist(), dtype=np.float64)[places]
        if not len(price) or not np.isfinite(price).all():
            continue
        for each in np.unique(repetition):
            own = repetition == each
            axis.plot(
                price[own],
                accuracy[own],
                color=colour,
                marker="o",
                ms=3,
                lw=1.2,
                label=label if each == repetition[0] else None,
            )
    if axis.lines:
        axis.set_xscale("log")  # the two are often a factor of ten and more apart
    else:
        axis.text(0.5, 0.5, "no guarantee: infinite", ha="center", transform=axis.transAxes)


def draw_loss(axis: Any, folder: Path) -> None:
    """Draw the losses."""
    rows, training = streams.read(folder, "learning"), streams.read(folder, "training")
    _curve(axis, training, "training_loss", "cohort, before its step (simulation)", PINK, 1)
    _curve(axis, rows, "test_loss", _TEST, BLUE)
    _curve(axis, rows, "validation_loss", _VALIDATION, ORANGE)
    axis.set(xlabel="release", ylabel="cross-entropy")
    axis.set_title("The loss", loc="left")


def _keys(rows: pa.Table) -> list[tuple[int, ...]]:
    return list(zip(*(rows[name].to_pylist() for name in streams.KEY), strict=True))


def _curve(axis: Any, rows: pa.Table, name: str, label: str, colour: str, below: float = 2) -> None:
    """Draw a column against the number of the release, as a mean over repetitions."""
    if name not in rows.column_names:
        return
    release, values = rows["release"].to_numpy(), rows[name].to_numpy()
    places = np.unique(release)
    groups = [values[release == place] for place in places]
    mean = np.array([group.mean() for group in groups])
    line = {"lw": 1.5, "marker": "o" if len(places) <= 60 else "", "ms": 3.5, "zorder": below}
    axis.plot(places + 1, mean, color=colour, label=label, **line)
    if max(len(group) for group in groups) > 1:
        error = np.array([group.std(ddof=1) / len(group) ** 0.5 for group in groups])
        axis.fill_between(
            places + 1, mean - error, mean + error, color=colour, alpha=0.2, lw=0, zorder=below
        )
