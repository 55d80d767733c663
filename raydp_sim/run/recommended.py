"""The answer of a run that plays a bandit: which action, how surely, and what learning cost."""

from pathlib import Path
from typing import Any

from raydp_sim.metrics import streams
from raydp_sim.metrics.bandits import STREAM


def recommended(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the section `bandit` of a summary, of the first repetition; nothing without one.

    Args:
        folder: of the streams.
        names: of the actions; they have numbers where there are none.
    """
    rows = [row for row in streams.read(folder, STREAM).to_pylist() if row["repetition"] == 0]
    if not rows:
        return {}
    last, taught = rows[-1], [row for row in rows if not row["void"]]
    kept_back = sum(row["reports"] == 0 for row in rows)
    action = last["recommended"]
    found: dict[str, Any] = {
        "repetition": 0,
        "action": action,
        "name": names[action] if names else str(action),
        "estimate": last["estimate"] if taught else None,
        "radius": taught[-1]["within"] if taught else None,
        "active": last["active"],
        "actions": rows[0]["active_before"],
        "batches": len(taught),
        "void": len(rows) - len(taught) - kept_back,
        "rounds": last["rounds"],
        "horizon": last["horizon"],
        "certificate": last["certificate"],
        "confidence": last["confidence"],
        "epsilon0": max(row["epsilon0"] for row in rows),
        "protects": last["protects"],
        "stream": f"metrics/{STREAM}",
    }
    return {STREAM: found}
