"""What two runs of one scenario have alike."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.run.directory import RunDir

Outcome = dict[str, Any]


def outcome(folder: Path) -> Outcome:
    """Return everything that has to be the same in two runs of one scenario, by name."""
    run = RunDir(folder)
    last = run.latest()
    found: Outcome = {"the ledger": store.read(folder / "ledger")}
    for stream in sorted(place.name for place in folder.glob("metrics/*")):
        if stream != "timing":  # the one that depends on the machine
            found[f"stream {stream!r}"] = streams.read(folder / "metrics", stream)
    for group, arrays in (last.saved or {}).items():
        for name, array in arrays.items():
            found[f"{name!r} of {group}"] = np.asarray(array)
    for name, column in (run.clients(last, 0, 1 << 32) or {}).items():
        found[f"client state {name!r}"] = column
    return found


def difference(one: Outcome, other: Outcome) -> str | None:
    """Return the first thing that two outcomes do not have alike; None if all is."""
    for name in [*one, *(name for name in other if name not in one)]:
        if name not in one or name not in other:
            return name
        a, b = one[name], other[name]
        same = a.equals(b) if isinstance(a, pa.Table) else a.tobytes() == b.tobytes()
        if not same:
            return name
    return None
