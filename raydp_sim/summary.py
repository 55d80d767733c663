"""The summary of a run, computed from what it left on disk."""

import math
from typing import Any

import numpy as np

from raydp_sim.accounting import amplifies, planned, sampling_counts, worst_release
from raydp_sim.metrics import streams
from raydp_sim.privacy import store
from raydp_sim.privacy.filter import Filter
from raydp_sim.privacy.histories import Standing, replayed, standing
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
    spent = document["privacy"].get("budget", {}).get("exhausted", 0.0)
    if played < scenario.task.rounds * scenario.repeat:
        remedy = (
            f"{spent:.0%} of the clients have used up their budget; raise privacy.budget.epsilon, "
            "or lower mechanism.epsilon_local or task.rounds"
            if spent > 0.0
            else "let more clients come (population.availability), lower participation.batch, or "
            "be more patient"
        )
        document["ended_early"] = (
            f"{played} of {scenario.task.rounds * scenario.repeat} releases were played: then no "
            f"batch closed for as long as participation.patience allows; {remedy}"
        )
    return document


def _privacy(scenario: Scenario, run: RunDir) -> dict[str, Any]:
    """Account for what the ledger says happened, repetition by repetition."""
    mechanism, budget = scenario.bound_mechanism, scenario.privacy.budget
    stages = [stage for stage, _ in scenario.task.stages(mechanism)]
    alone = [stage.epsilon_of_report for stage in stages]
    worst, unable = _worst(scenario, run)
    found = worst.guarantee
    document: dict[str, Any] = {
        "epsilon": found.epsilon,
        "delta": found.delta,
        "planned": planned(scenario, mechanism),
        "epsilon_local": max((loss for loss in alone if loss is not None), default=None),
        "bound": found.bound,
        "assumption": found.assumption,
        "per_client": worst.per_client(),
        "participation": worst.participation,
        "amplification": _amplification(scenario, worst),
        "sampling": _sampling(scenario),
    }
    if budget is not None:
        document["budget"] = {**budget.model_dump(), "exhausted": unable}
    return document


def _worst(scenario: Scenario, run: RunDir) -> tuple[Standing, float]:
    """Return how the clients of the worst repetition stand, and how many have used up a budget."""
    mechanism, given = scenario.bound_mechanism, scenario.privacy.budget
    first = scenario.task.stages(mechanism)[0][0]
    outcomes = []
    for repetition in range(scenario.repeat):
        ledger = replayed(
            store.charges(run.ledger, repetition),
            scenario.population.clients,
            scenario.privacy.delta,
            view=first.event(),
        )
        unable = 0.0
        if given is not None:
            budget = Filter(given.epsilon, given.delta)
            able = ledger.able(mechanism.event(), worst_release(scenario, mechanism), budget)
            unable = float((~able).mean())
        outcomes.append((standing(ledger, exact=True), unable))
    return max(outcomes, key=lambda outcome: outcome[0].guarantee.epsilon)


def _amplification(scenario: Scenario, worst: Standing) -> dict[str, Any]:
    """Say which amplification the reported epsilon rests on, and why not on the others."""
    sampled, batch, none = "sampled shuffle", "shuffle of the batch that formed", "none"
    if scenario.trust != "shuffle":
        why = f"nothing is shuffled: trust is {scenario.trust}"
        return {"used": none, "not_used": {sampled: why, batch: why}}
    if not worst.guarantee.amplified:
        smaller = "the sum of the local losses is not larger"
        if not amplifies(scenario, scenario.bound_mechanism):
            smaller = "there is no shuffled stream of a pure randomizer"
        unsampled = sampling_counts(scenario) or smaller
        return {"used": none, "not_used": {sampled: unsampled, batch: smaller}}
    larger = "the sum of the local losses is larger"
    if worst.sampled:
        never = "every eligible client is charged for the sampled shuffle; the two are never mixed"
        return {"used": sampled, "not_used": {batch: never, none: larger}}
    why = sampling_counts(scenario) or "what was released is not a sampled shuffle"
    return {"used": batch, "not_used": {sampled: why, none: larger}}


def _sampling(scenario: Scenario) -> str:
    """Say whether sampling was counted and, if not, why not."""
    if not amplifies(scenario, scenario.bound_mechanism):
        return "not counted: there is no shuffled stream of a pure randomizer"
    why = sampling_counts(scenario)
    return "counted" if why is None else f"not counted: {why}"
