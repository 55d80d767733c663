"""Panels of a run that releases majorities: votes behind labels, and how good these are."""

from pathlib import Path
from typing import Any

import numpy as np

from raydp_sim.metrics import estimates, streams
from raydp_sim.metrics.panels import BLUE, GREEN, ORANGE

_LINES = {
    "accuracy": ("labels that are right", BLUE),
    "majority_accuracy": ("majorities without noise that are right", GREEN),
    "disagreement": ("labels that are not the majority", ORANGE),
}
_KEPT = 200  # questions that are drawn one by one


def draw_votes(axis: Any, folder: Path) -> None:
    """Draw the tally of every question of the first repetition, coloured by the label released.

    Args:
        axis: of the panel.
        folder: of the streams.
    """
    votes, labels = (_first(folder, name) for name in ("votes", "labels"))
    query, label = votes["query"][:_KEPT], labels["label"][:_KEPT]
    lead = (2.0 * votes["tally"] - votes["votes"])[:_KEPT]
    for value, colour in ((1, BLUE), (0, ORANGE)):
        own = label == value
        axis.bar(query[own], lead[own], width=0.8, color=colour, label=f"{value} was released")
    truth = estimates.last_truth(folder)
    if truth is not None:
        wrong = truth.values[query] != label
        axis.plot(query[wrong], lead[wrong], "x", color="0.1", label="which is wrong", zorder=3)
    axis.axhline(0.0, color="0.5", lw=0.8)
    axis.set(xlabel="question", ylabel="votes for 1 minus votes for 0")
    axis.set_title("What was released, and the votes behind it", loc="left")


def draw_labels(axis: Any, folder: Path) -> None:
    """Draw how many labels so far are right, of those released and of majorities without noise.

    Args:
        axis: of the panel.
        folder: of the streams.
    """
    rows = streams.read(folder, "errors")
    release = rows["release"].to_numpy()
    for name, (words, colour) in _LINES.items():
        if name not in rows.column_names:
            continue  # where nobody knows the truth
        column, at = rows[name].to_numpy(), np.unique(release)
        mean = [column[release == each].mean() for each in at]
        axis.plot(at + 1, mean, color=colour, label=words)
    axis.set(xlabel="questions so far", ylabel="share", ylim=(-0.02, 1.02))
    axis.set_title("How good the labels are", loc="left")


def _first(folder: Path, stream: str) -> dict[str, np.ndarray]:
    rows = streams.read(folder, stream)
    own = rows["repetition"].to_numpy() == 0
    return {name: rows[name].to_numpy()[own] for name in rows.column_names}
