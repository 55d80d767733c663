"""The summary of a run, computed from what it left on disk."""

import math
from typing import Any

import numpy as np

from raydp_sim.accounting import amplifies, sampling_counts
from raydp_sim.metrics import streams
from raydp_sim.privacy import store
from raydp_sim.privacy.ledger import Ledger
from raydp_sim.provenance import provenance
from raydp_sim.rundir import RunDir
from raydp_sim.scenario import Scenario


def summarize(scenario: Scenario, run: RunDir, wall_s: float) -> dict[str, Any]:
    """Return the summary document: privacy, communication, final metrics, timing, provenance.

    With several repetitions, metrics are means over their last releases and carry standard errors;
    privacy is that of the worst repetition, for each repetition stands for a deployment of its own.
    """
    run.check_paid()
    rows = streams.read(run.metrics, "releases").to_pylist()
    withheld = streams.read(run.metrics, "withheld").num_rows
    last = {row["repetition"]: row for row in rows}
    scores = [name for name in (rows[0] if rows else {}) if name not in streams.RELEASES]
    metrics, errors = {}, {}
    for name in scores:
        finals = np.array([row[name] for row in last.values()])
        metrics[name] = float(finals.mean())
        if len(finals) > 1:
            errors[name] = float(finals.std(ddof=1) / math.sqrt(len(finals)))
    metrics["releases"] = len(rows) / scenario.repeat
    metrics["withheld"] = withheld / scenario.repeat
    metrics["missing"] = sum(row["missing"] for row in rows) / scenario.repeat
    stages = scenario.task.stages(scenario.bound_mechanism)
    reports = sum(row["batch_size"] for row in rows)
    document: dict[str, Any] = {
        "scenario": scenario.name,
        "seed": scenario.seed,
        "repeat": scenario.repeat,
        "clients": scenario.population.clients,
        "rounds": scenario.task.rounds,
        "trust": scenario.trust,
        "privacy": _privacy(scenario, run),
        "communication": {
            "bits_per_report": max(stage.bits for stage, _ in stages),
            "wire_bytes": sum(row["wire_bytes"] for row in rows),
        },
        "metrics": metrics,
        "timing": {"wall_s": wall_s, "reports_per_s": reports / wall_s if wall_s > 0 else 0.0},
        "provenance": provenance(),
        "run_dir": str(run.path),
    }
    if errors:
        document["standard_errors"] = errors
    played = len(rows) + withheld
    if played < scenario.task.rounds * scenario.repeat:
        document["ended_early"] = (
            f"{played} of {scenario.task.rounds * scenario.repeat} releases were played: then no "
            "batch closed for as long as participation.patience allows; let more clients come "
            "(population.availability), lower participation.batch, or be more patient"
        )
    return document


def _privacy(scenario: Scenario, run: RunDir) -> dict[str, Any]:
    """Account for what the ledger says happened, repetition by repetition."""
    stages = [stage for stage, _ in scenario.task.stages(scenario.bound_mechanism)]
    alone = [stage.epsilon_of_report for stage in stages]
    guarantees = []
    rows = store.read(run.ledger)
    repetitions = rows["repetition"].to_numpy()
    for repetition in range(scenario.repeat):
        ledger = Ledger(scenario.population.clients, scenario.privacy.delta)
        ledger.open_view(stages[0].event())
        for index in np.flatnonzero(repetitions == repetition):
            charge = store.Charge.of_row(rows.slice(int(index), 1).to_pylist()[0])
            ledger.charge(charge.event, charge.participants, charge.shuffled)
        guarantees.append(ledger.guarantee(exact=True))
    worst = max(guarantees, key=lambda guarantee: guarantee.epsilon)
    return {
        "epsilon": worst.epsilon,
        "delta": worst.delta,
        "epsilon_local": max((loss for loss in alone if loss is not None), default=None),
        "bound": worst.bound,
        "assumption": worst.assumption,
        "per_client": {"max": worst.epsilon, "median": worst.median},
        "sampling": _sampling(scenario),
    }


def _sampling(scenario: Scenario) -> str:
    """Say whether sampling was counted and, if not, why not."""
    if not amplifies(scenario, scenario.bound_mechanism):
        return "not counted: there is no shuffled stream of a pure randomizer"
    why = sampling_counts(scenario)
    return "counted" if why is None else f"not counted: {why}"
