"""A panel of a run's picture: how the objective of shuffled gradients went."""

from pathlib import Path
from typing import Any

import numpy as np

from raydp_sim.metrics import streams
from raydp_sim.metrics.panels import BLUE, ORANGE


def draw_descent(axis: Any, folder: Path) -> None:
    """Draw the excess risk after every epoch, and which epochs use private records.

    With several repetitions a mean, and a band of one standard deviation to each side.

    Args:
        axis: of the panel.
        folder: of the streams.
    """
    errors, epochs = (streams.read(folder, name).to_pylist() for name in ("errors", "epochs"))
    risk: dict[int, list[float]] = {}
    for score, row in zip(errors, epochs, strict=True):
        risk.setdefault(row["epoch"], []).append(score["excess_risk"])
    place = np.array(sorted(risk))
    mean, spread = (np.array([f(risk[each]) for each in place]) for f in (np.mean, np.std))
    axis.plot(place, mean, color=BLUE, lw=1.8, label="excess risk (simulation only)")
    if max(len(each) for each in risk.values()) > 1:
        axis.fill_between(place, mean - spread, mean + spread, color=BLUE, alpha=0.2, lw=0)
    some = sorted({row["epoch"] for row in epochs if row["private_steps"]})
    if some:
        axis.axvspan(some[0] - 0.5, some[-1] + 0.5, color=ORANGE, alpha=0.12, lw=0)
        axis.plot([], [], color=ORANGE, alpha=0.3, lw=8, label="epochs with private records")
    positive = mean[mean > 0.0]
    if len(positive) == len(mean) and positive.max() > 20.0 * positive.min():
        axis.set_yscale("log")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_title("How far from the least loss", loc="left")
    axis.set(xlabel="epoch", ylabel="objective on private records, above its least")
