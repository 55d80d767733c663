"""The answer of a run that trains a model: how good it is on held-out samples, at which epsilon."""

import math
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from raydp_sim.metrics import streams

STREAM, PERSONAL = "learning", "personal"
_NOT_SCORES = {*streams.KEY, "round", "step_size", "clients"}
_PUBLIC_SPLIT = (
    "models are chosen by samples that are taken to be public; looking at them is not accounted for"
)
_PRIVATE_SPLIT = (
    "clients' own samples are private; choosing by how models do on them is not accounted for"
)


def learned(folder: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Return the last scores of a run, as means over repetitions, and their standard errors.

    Args:
        folder: of the streams.
    """
    means, errors = dict[str, float](), dict[str, float]()
    for stream in (STREAM, PERSONAL):
        _finals(streams.read(folder, stream).to_pylist(), means, errors)
    return means, errors


def _finals(rows: list[dict[str, Any]], means: dict[str, float], errors: dict[str, float]) -> None:
    """Add the last scores of a stream."""
    last = {row["repetition"]: row for row in rows}
    for name in rows[-1] if rows else ():
        if name in _NOT_SCORES:
            continue
        finals = np.array([row[name] for row in last.values()])
        means[name] = float(finals.mean())
        if len(finals) > 1:
            errors[name] = float(finals.std(ddof=1) / math.sqrt(len(finals)))


def section(folder: Path, run: Path, complete: Collection[int] = ()) -> dict[str, Any]:
    """Return the section `learning` of a summary; nothing where no model was evaluated.

    Args:
        folder: of the streams.
        run: the run's directory.
        complete: repetitions that the task itself ended.
    """
    stream = STREAM if streams.read(folder, STREAM).num_rows else PERSONAL
    rows = streams.read(folder, stream).to_pylist()
    if not rows:
        return {}
    found: dict[str, Any] = {
        "release": rows[-1]["release"],
        "round": rows[-1]["round"],
        "evaluations": len(rows),
        "stream": f"metrics/{stream}",
        "models": sorted(str(path.relative_to(run)) for path in (run / "model").rglob("*.npz")),
    }
    own = streams.read(folder, PERSONAL).column_names
    if any(name.endswith("_validation_accuracy") for name in own):
        found["personal_validation"] = _PRIVATE_SPLIT
    if "validation_accuracy" in rows[-1]:
        found |= _chosen([row for row in rows if row["repetition"] == rows[-1]["repetition"]])
        if rows[-1]["repetition"] not in complete:
            del found["stopped"]
    return {STREAM: found}


def _chosen(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Say which model is the best by the validation split, and why a run may have ended."""
    best = max(rows, key=lambda row: (row["validation_accuracy"], -row["round"]))
    name = f"round {best['round']}"
    since = sum(row["round"] > best["round"] for row in rows)
    return {
        "validation": _PUBLIC_SPLIT,
        "best": f"{name}: accuracy {best['validation_accuracy']:.4g} on validation samples",
        "stopped": (
            f"after round {rows[-1]['round']}: {since} evaluations in a row were no better on "
            f"validation samples than {name}"
        ),
    }
