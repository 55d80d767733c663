"""What a sweep directory was made from, so that it is continued by the same sweep only."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from raydp_sim.durable import write_durable
from raydp_sim.errors import InputError
from raydp_sim.sweep.grid import Axis, shown

NAME = "sweep.json"


def manifest(source: str, axes: Sequence[Axis], documents: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a sweep by its file, its grid and a digest of every point's whole scenario.

    Args:
        source: the scenario file.
        axes: what is swept.
        documents: every point's resolved scenario, by its folder.
    """
    return {
        "scenario": source,
        "over": {axis.field: [shown(value) for value in axis.values] for axis in axes},
        "points": {folder: _digest(documents[folder]) for folder in sorted(documents)},
    }


def check(folder: Path, made: Mapping[str, Any]) -> None:
    """Refuse to continue a directory of another sweep.

    Neither the order of fields nor that of values makes it another.

    Raises:
        InputError: says what differs.
    """
    option = f"--out is {str(folder)!r}"
    try:
        found = json.loads((folder / NAME).read_text(encoding="utf-8"))
        before = {field: sorted(values) for field, values in found["over"].items()}
        digests = dict(found["points"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{option}; its {NAME} is damaged: give another directory") from None
    now = {field: sorted(values) for field, values in made["over"].items()}
    if before != now:
        grid = " ".join(f"--over {field}={','.join(found['over'][field])}" for field in before)
        raise InputError(f"{option}; it holds another grid, {grid}: give another directory")
    if digests != made["points"]:
        source = found.get("scenario")
        raise InputError(
            f"{option}; its points were made from {source} with other contents or settings: give "
            "another directory"
        )


def write(folder: Path, made: Mapping[str, Any]) -> None:
    """Write it down, before anything is played."""
    write_durable(folder / NAME, (json.dumps(made, indent=2) + "\n").encode())


def _digest(document: Any) -> str:
    text = json.dumps(document, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
