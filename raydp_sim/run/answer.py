"""The answer of a run in its summary: what was estimated, how surely, and what is true."""

from pathlib import Path
from typing import Any

from raydp_sim.metrics import estimates, streams
from raydp_sim.metrics.bandits import STREAM
from raydp_sim.scenario import Scenario, bound_mechanism

SHOWN = 256  # coordinates that a summary holds; more are only in the streams

_NOISE = "the randomizers' noise, given who took part"


def are_categories(scenario: Scenario) -> bool:
    """Say whether what is estimated is a histogram."""
    return bound_mechanism(scenario).domain.norm == "category"


def _kind(scenario: Scenario, folder: Path) -> str:
    if streams.read(folder, STREAM).num_rows:
        return "actions"
    return "histogram" if are_categories(scenario) else "vector"


def answered(scenario: Scenario, folder: Path) -> dict[str, Any]:
    """Return the sections `estimate` and `truth` of a summary, of the first repetition.

    Args:
        scenario: that was played.
        folder: of its streams.
    """
    found, truth = (look(folder) for look in (estimates.last_estimate, estimates.last_truth))
    if found is None:
        return {}
    section: dict[str, Any] = {
        "kind": _kind(scenario, folder),
        "release": found.release,
        "repetition": 0,
        "coordinates": len(found),
        "standard_error_of": _NOISE,
        "stream": f"metrics/{estimates.ESTIMATES}",
    }
    if len(found) > SHOWN:
        return {"estimate": section}
    error = found.standard_error
    assert error is not None
    section["names"] = list(found.names)
    section["values"] = found.values.tolist()
    section["standard_error"] = error.tolist()
    if truth is None:
        return {"estimate": section}
    seen = estimates.last_truth(folder, of="participants")
    assert seen is not None
    known = {"population": truth.values.tolist(), "participants": seen.values.tolist()}
    return {"estimate": section, "truth": {"visibility": "simulation-only", **known}}
