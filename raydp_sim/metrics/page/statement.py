"""What is said of a run's privacy: how much was spent, whom it holds against, on which terms."""

import math
from typing import Any

import numpy as np
import pyarrow.compute as pc

from raydp_sim.metrics.guarantee import FILE
from raydp_sim.metrics.page.seen import Seen
from raydp_sim.metrics.page.source import document


def spent(seen: Seen) -> dict[str, Any] | None:
    """Return epsilon so far with its delta, bound and assumption; None if that is not open.

    Of several repetitions it is the dearest, for each stands for a deployment of its own.
    """
    if not seen.released:
        return None
    over = seen.summary.get("privacy")
    if isinstance(over, dict):
        each = over.get("per_client", {})
        return {
            "epsilon": over.get("epsilon"),
            "median": each.get("median"),
            "delta": over.get("delta"),
            "bound": over.get("bound"),
            "assumption": over.get("assumption"),
            "guarantee": over.get("guarantee"),
        }
    rows = seen.table("releases", ["epsilon", "epsilon_median", "delta", "bound"])
    rows = rows.filter(pc.is_valid(rows["epsilon"]))
    if not rows.num_rows:
        return None
    last = int(np.argmax(seen.column(rows, "epsilon")))
    row = rows.slice(last, 1).to_pylist()[0]
    said = document(seen.source.path / FILE)
    known = said.get("assumption") if said.get("bound") == row["bound"] else None
    return {
        "epsilon": _finite(row["epsilon"]),
        "median": _finite(row["epsilon_median"]),
        "delta": row["delta"],
        "bound": row["bound"],
        "assumption": known,
        "guarantee": "none" if row["bound"] == "none" else "stated",
    }


def lines(seen: Seen) -> list[tuple[str, str]]:
    """Return the privacy statement, a name and a sentence each; none where it is not open."""
    found = spent(seen)
    if found is None:
        return []
    over = seen.summary.get("privacy", {})
    said = [("epsilon", f"{epsilon(found['epsilon'])} for the client charged most, so far")]
    if seen.summary:
        said = [("epsilon", f"{epsilon(found['epsilon'])} for the client charged most")]
    if found["median"] is not None:
        said.append(("median client", epsilon(found["median"])))
    if over.get("planned") is not None:
        said.append(("planned", f"{epsilon(over['planned'])} for a client in every release"))
    views = seen.summary.get("views", {}).get("rows") or [{}]
    last = views[-1].get("epsilon")
    if last is not None and found["epsilon"] is not None and last < found["epsilon"]:
        proved = f"{epsilon(last)} at delta {views[-1]['delta']:g}"
        said.append(("shuffled", f"{proved} for {views[-1]['view']}, if the shuffler is honest"))
    if found["guarantee"] == "none":
        said.append(("guarantee", "none: the scenario says privacy.guarantee: none"))
    if found["delta"] is not None:
        said.append(("delta", f"{found['delta']:.4g}"))
    if over.get("epsilon_local") is not None:
        said.append(("one report", f"epsilon {epsilon(over['epsilon_local'])}, to anyone"))
    said.append(("bound", str(found["bound"])))
    unsaid = "said in full when the run is over"
    said.append(("which holds for", found["assumption"] or unsaid))
    if "amplification" in over:
        used = over["amplification"]
        others = [f"no {name}: {why}" for name, why in used["not_used"].items() if name != "none"]
        said.append(("amplification", "; ".join([used["used"], *others])))
    for name in ("sampling", "presence"):
        if name in over:
            said.append((name, str(over[name])))
    if "target" in over:
        target = over["target"]
        reached = f"reached {epsilon(target['reached'])}"
        words = f"epsilon {target['epsilon']:g} at delta {target['delta']:g}; {reached}"
        said.append(("target", words))
    if "bandit" in seen.summary:
        said.append(("protected", str(seen.summary["bandit"].get("protects", ""))))
    return said


def epsilon(value: float | None) -> str:
    """Say an epsilon; JSON has no word for infinite.

    Example:
        >>> epsilon(0.123456), epsilon(None)
        ('0.1235', 'infinite')
    """
    return "infinite" if value is None or math.isinf(value) else f"{value:.4g}"


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value
