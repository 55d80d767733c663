"""The views of a run's analysts side by side: what each may have learned, and how well."""

from typing import Any

import numpy as np
import pyarrow as pa

from raydp_sim.mechanisms.leveled import Leveled
from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.privacy.ledger.views import Guarantee
from raydp_sim.run.directory import RunDir
from raydp_sim.scenario import Scenario, bound_mechanism, setting_of
from raydp_sim.scenario.views import View, account, views
from raydp_sim.stream.levels import Levels
from raydp_sim.stream.sealed import RECORD_BITS
from raydp_sim.tasks.level_rows import KEYS, REFINED, VIEWS


def view_section(scenario: Scenario, run: RunDir) -> dict[str, Any]:
    """Return the section `views` of a summary: one row per view; nothing without levels.

    Privacy is that of the worst repetition, errors and bits are means over repetitions.
    """
    levels, mechanism = setting_of(scenario).levels, bound_mechanism(scenario)
    if levels is None or not isinstance(mechanism, Leveled):
        return {}
    scored, keys = (streams.read(run.metrics, name) for name in (VIEWS, KEYS))
    rows = [
        {
            **_said(scenario, mechanism, view, levels, run),
            **(_errors(scored, view.name) if len(view.readers) == 1 else {}),
            **(_bits(keys, view.name, scenario.repeat) if len(view.readers) == 1 else {}),
        }
        for view in views(levels)
    ]
    first = _of(keys, "public")
    drawn = float(np.sum(first["drawn"].to_numpy())) if first.num_rows else 0.0
    reports = int(np.sum(first["reports"].to_numpy())) if first.num_rows else 0
    ledger = {
        "entropy_per_report": mechanism.key_entropy,
        "drawn": drawn / scenario.repeat,
        "delivered": sum(row.get("key_bits", 0.0) for row in rows),
        "record_ids": RECORD_BITS * reports / scenario.repeat,
    }
    found: dict[str, Any] = {"rows": rows, "keys": ledger, "path": _path(levels)}
    if (refined := _refined(run)) is not None:
        found["promotions"] = refined
    return {"views": found}


def sent_beside(scenario: Scenario) -> dict[str, int]:
    """Return the bits that go with every report where analysts hold keys, promotions left out."""
    levels, mechanism = setting_of(scenario).levels, bound_mechanism(scenario)
    if levels is None or not isinstance(mechanism, Leveled):
        return {}
    keys = mechanism.key_bits * (len(levels.names) - 1)
    return {"record_id_bits": RECORD_BITS, "key_bits_per_report": keys}


def _path(levels: Levels) -> str:
    return "straight from clients" if levels.direct else "sealed, by the shuffler"


def _said(
    scenario: Scenario, mechanism: Leveled, view: View, levels: Levels, run: RunDir
) -> dict[str, Any]:
    """Return what the worst repetition has cost in a view."""
    level = min(levels.level(reader, 0) for reader in view.readers)
    last = min(levels.level(reader, scenario.task.rounds - 1) for reader in view.readers)
    found = [_proved(scenario, mechanism, view, run, each) for each in range(scenario.repeat)]
    row: dict[str, Any] = {"view": view.name, "level": level + 1}
    if last != level:
        row["promoted_to"] = last + 1
    row["epsilon_local"] = mechanism.levels[last]
    proved = [(guarantee, how) for guarantee, how in found if guarantee is not None]
    if len(proved) < len(found):
        return {**row, "epsilon": None, "shuffling": found[0][1]}
    worst, how = max(proved, key=lambda each: each[0].epsilon)
    proof = {"epsilon": worst.epsilon, "delta": worst.delta, "bound": worst.bound}
    return {**row, **proof, "shuffling": how}


def _proved(
    scenario: Scenario, mechanism: Leveled, view: View, run: RunDir, repetition: int
) -> tuple[Guarantee | None, str]:
    """Return what a repetition has cost in a view, and how shuffling counts; keep no ledger."""
    found = account(scenario, mechanism, view, list(store.charges(run.ledger, repetition)))
    return None if found.ledger is None else found.ledger.guarantee(), found.amplified


def _of(table: pa.Table, reader: str) -> pa.Table:
    if not table.num_rows:
        return table
    return table.filter(pa.compute.equal(table["reader"], reader))


def _errors(scored: pa.Table, reader: str) -> dict[str, Any]:
    """Return the mean errors of a reader's releases, and those that were expected."""
    own = _of(scored, reader)
    if not own.num_rows:
        return {}
    names = [name for name in own.column_names if name.startswith(("l1_", "l2_", "predicted_"))]
    found = {name: _mean(own[name]) for name in (*names, "hitters", "precision", "recall")}
    recovered = own["recovered"].to_pylist()
    if None not in recovered:
        found["recovered"] = all(recovered)
    return {"errors": found}


def _mean(column: pa.ChunkedArray) -> float | None:
    return pa.compute.mean(column).as_py() if column.null_count < len(column) else None


def _bits(keys: pa.Table, reader: str, repeat: int) -> dict[str, Any]:
    """Return how many bits of keys a reader was handed, and how many reports it lacks."""
    own = _of(keys, reader)
    if not own.num_rows:
        return {}
    total = {
        name: int(np.sum(own[name].to_numpy())) for name in ("delivered", "promoted", "missing")
    }
    found: dict[str, Any] = {"key_bits": (total["delivered"] + total["promoted"]) / repeat}
    if total["promoted"] or total["missing"]:
        found |= {
            "promotion_bits": total["promoted"] / repeat,
            "missing": total["missing"] / repeat,
        }
    return found


def _refined(run: RunDir) -> dict[str, Any] | None:
    """Return what promotions did for the estimates of earlier releases, on average."""
    rows = streams.read(run.metrics, REFINED)
    if not rows.num_rows:
        return None
    found: dict[str, Any] = {"releases": rows.num_rows}
    for name in ("promoted", "missing"):
        found[name] = int(np.sum(rows[name].to_numpy()))
    for name in ("l1_before", "l1_after", "l2_before", "l2_after"):
        found[name] = _mean(rows[name])
    return found
