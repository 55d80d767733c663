"""Panels of a run that plays a bandit: the regret, and below it the batches and what is left."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raydp_sim.metrics import streams
from raydp_sim.metrics.panels import BLUE, GREEN, ORANGE

STREAM = "bandit"


def draw_regret(axis: Any, folder: Path) -> None:
    """Draw regret and certificate over the rounds, up to the horizon; a line per repetition.

    Rounds in batches are drawn solid; after them everyone plays the best estimate.
    """
    rows = streams.read(folder, STREAM)
    truth = streams.read(folder, "errors")
    for repetition in np.unique(rows["repetition"].to_numpy()):
        own, known = (_of(table, repetition) for table in (rows, truth))
        # Releases before the first batch, as of contexts, have errors but no batch.
        known = known.filter(pc.is_in(known["release"], value_set=own["release"].combine_chunks()))
        first = repetition == 0
        label = "certificate: no more than that, if the radii hold"
        if own["certificate"].null_count == 0:
            _line(axis, own, own, "certificate", ORANGE, label if first else None)
        label = "regret (simulation)"
        _line(axis, own, known, "regret", BLUE, label if first else None)
    axis.set(xscale="log", yscale="log", xlabel="round", ylabel="lost to the best action so far")
    axis.set_xlim(1, rows["horizon"].to_numpy()[0])
    axis.set_title("What learning cost", loc="left")


def _line(
    axis: Any, played: pa.Table, of: pa.Table, name: str, colour: str, label: str | None
) -> None:
    rounds, so_far = played["rounds"].to_numpy(), of[f"{name}_so_far"].to_numpy()
    style = {"color": colour, "lw": 1.5, "ms": 3.5}
    axis.plot(rounds, so_far, marker="o", label=label, **style)
    ends = [so_far[-1], of[name].to_numpy()[-1]]
    axis.plot([rounds[-1], played["horizon"].to_numpy()[-1]], ends, ls=":", **style)


def draw_batches(axis: Any, folder: Path) -> None:
    """Draw the slots of every batch of the first repetition, those filled, and actions left."""
    rows = _of(streams.read(folder, STREAM), 0)
    ends = rows["rounds"].to_numpy()
    slots, reports, void = (rows[name].to_numpy() for name in ("slots", "reports", "void"))
    middle = np.sqrt(np.maximum(1, ends - slots) * ends.astype(float))
    # As wide as the rounds that a batch took, on an axis of logarithms.
    wide = {"width": 0.8 * (ends - np.maximum(1, ends - slots)), "align": "center"}
    axis.bar(middle, slots, color="0.85", label="slots handed out", **wide)
    axis.bar(middle, reports, color=GREEN, alpha=0.7, label="reports that came", **wide)
    if void.any():
        mark = {"marker": "x", "ls": "none", "color": "0.2"}
        axis.plot(middle[void], slots[void], label="void or withheld: played again", **mark)
    axis.set(xscale="log", yscale="log", xlabel="round", ylabel="clients of a batch")
    axis.set_xlim(1, rows["horizon"].to_numpy()[0])
    axis.set_title("Batches, and actions that are left", loc="left")
    left = axis.twinx()
    active = np.append(rows["active_before"].to_numpy(), rows["active"].to_numpy()[-1])
    left.step(np.append(1, ends), active, where="post", color=BLUE, lw=1.5)
    left.set_ylim(bottom=0)
    left.set_ylabel("active actions", color=BLUE)
    left.spines["top"].set_visible(False)
    axis.plot([], [], color=BLUE, lw=1.5, label="active actions")


def _of(rows: pa.Table, repetition: int) -> pa.Table:
    return rows.filter(pc.equal(rows["repetition"], int(repetition)))
