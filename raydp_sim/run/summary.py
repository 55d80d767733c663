"""The summary of a run, computed from what it left on disk."""

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from raydp_sim.mechanisms.base import Mechanism, Target
from raydp_sim.mechanisms.central_epochs import CentralEpochs
from raydp_sim.mechanisms.wires.symbols import histogram_bits
from raydp_sim.metrics import streams
from raydp_sim.privacy.events import GaussianRelease
from raydp_sim.privacy.ledger import store
from raydp_sim.privacy.ledger.histories import Standing, replayed, standing
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.privacy.ledger.views import charged_to_all
from raydp_sim.run.answer import answered
from raydp_sim.run.breakdown import breakdown
from raydp_sim.run.descended import section as descended
from raydp_sim.run.directory import RunDir
from raydp_sim.run.learned import learned, section
from raydp_sim.run.prediction import measured, predict
from raydp_sim.run.provenance import provenance
from raydp_sim.run.recommended import recommended
from raydp_sim.run.views import sent_beside, view_section
from raydp_sim.scenario import Scenario, bound_mechanism, setting_of
from raydp_sim.scenario.accounting import (
    budgeted,
    opened,
    planned,
    planned_event,
    planned_releases,
    sampled,
    unshuffled,
)
from raydp_sim.scenario.budgets import filter_of
from raydp_sim.tasks.charging import amplifies

_PRESENCE = "not protected: neighbours differ in one client's data, and not in who takes part when"
_CHOSEN = "; here that tells something of the data, by which those who stay away are chosen"
_BY_NOISE = {
    "pabi": "iteration: the noise of later steps",
    "secret-order": "iteration, and an order that nobody knows",
    "every-step": "none",
}
_TELLING = "; here that tells something of the data, which depend on the {by}"


def summarize(
    scenario: Scenario, run: RunDir, wall_s: float, complete: Collection[int] = ()
) -> dict[str, Any]:
    """Return the summary document: privacy, communication, final metrics, timing, provenance.

    With several repetitions, metrics are means over their last releases and carry standard errors;
    privacy is that of the worst repetition, for each repetition stands for a deployment of its own.
    A repetition that its task ended is `complete` with however few releases.
    """
    run.check_paid()
    rows = streams.joined(run.metrics).to_pylist()
    kept_back = streams.read(run.metrics, "withheld").to_pylist()
    withheld = len(kept_back)
    last = {row["repetition"]: row for row in rows}
    scores = streams.scores(rows[0] if rows else {})
    for row in streams.read(run.metrics, "errors").to_pylist():
        if row["repetition"] in last:  # a batch withheld after the last release counts too
            last[row["repetition"]] = {**last[row["repetition"]], **row}
    metrics, errors = {}, {}
    for name in scores:
        finals = np.array([row[name] for row in last.values()])
        metrics[name] = float(finals.mean())
        if len(finals) > 1:
            errors[name] = float(finals.std(ddof=1) / math.sqrt(len(finals)))
    scored, uncertain = learned(run.metrics)
    metrics, errors = {**scored, **metrics}, {**uncertain, **errors}
    metrics["releases"] = len(rows) / scenario.repeat
    metrics["withheld"] = withheld / scenario.repeat
    metrics["missing"] = sum(row["missing"] for row in rows) / scenario.repeat
    parts = planned_releases(scenario, bound_mechanism(scenario))
    # Of a release that is made of what the server holds nothing was sent.
    reports = sum(row["batch_size"] for row in rows if row["messages"])
    document: dict[str, Any] = {
        "scenario": scenario.name,
        "seed": scenario.seed,
        "repeat": scenario.repeat,
        "clients": scenario.population.clients,
        "rounds": scenario.task.rounds,
        "trust": scenario.trust,
        "privacy": {**_privacy(scenario, run), **_largest_loss(scenario, rows), **_seeds(rows)},
        "communication": {
            "bits_per_report": max(part.ask.mechanism.bits for part in parts),
            "reports": reports,
            "wire_bytes": sum(row["wire_bytes"] for row in rows),
            **_together(scenario, parts[0].ask.mechanism),
            **sent_beside(scenario),
        },
        "metrics": metrics,
        **answered(scenario, run.metrics),
        **section(run.metrics, run.path, complete),
        **descended(scenario, run.metrics),
        **recommended(run.metrics, scenario.task.named(scenario.population.data.names())),
        **_groups(scenario, run),
        **view_section(scenario, run),
        "timing": {"wall_s": wall_s, "reports_per_s": reports / wall_s if wall_s > 0 else 0.0},
        "provenance": provenance(),
        "run_dir": str(run.path),
    }
    if errors:
        document["standard_errors"] = errors
    if (predicted := predict(scenario)) is not None:
        document["prediction"] = measured(predicted.document(), rows)
    rounds, played = scenario.task.rounds, len(rows) + withheld
    others = [row for row in (*rows, *kept_back) if row["repetition"] not in complete]
    spent = document["privacy"].get("budget", {}).get("exhausted", 0.0)
    if len(others) < rounds * (scenario.repeat - len(complete)):
        remedy = (
            f"{spent:.0%} of the clients have used up their budget; raise privacy.budget.epsilon, "
            "or lower mechanism.epsilon_local or task.rounds"
            if spent > 0.0
            else "let more clients come (population.availability), lower participation.batch, or "
            "be more patient"
        )
        document["ended_early"] = (
            f"{played} of {rounds * scenario.repeat} releases were played: then no batch closed "
            f"for as long as participation.patience allows; {remedy}"
        )
    elif scenario.task.once and len(complete) < scenario.repeat:
        document["ended_early"] = (
            f"task.rounds allows {rounds} batches, those included that were withheld or void, and "
            "they were not enough; raise it, lower task.least, or let more clients come"
        )
    return document


def _together(scenario: Scenario, mechanism: Mechanism) -> dict[str, int]:
    """Return what several symbols of a client take, one by one and as a histogram of them.

    Only a shuffler may see the histogram, for it says which reports are of one client.
    """
    count, alphabet = (
        getattr(scenario.task, "sampled_points", 1),
        getattr(mechanism.wire, "alphabet", None),
    )
    if count == 1 or alphabet is None or mechanism.messages_per_report > 1:
        return {}
    one_by_one = count * mechanism.bits
    return {
        "bits_per_client": one_by_one,
        "bits_per_client_as_histogram": min(one_by_one, histogram_bits(alphabet, count)),
    }


def _largest_loss(scenario: Scenario, rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the largest loss of a single report, where batches choose their own."""
    found = [row["epsilon_local"] for row in rows if row["epsilon_local"] is not None]
    return {"epsilon_local": max(found)} if scenario.task.once and found else {}


def _seeds(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the papers' own bound on the worst repetition, where they have one."""
    found = [row["epsilon_seed"] for row in rows if row["epsilon"] is not None]
    return {} if not found or None in found else {"epsilon_seed": max(found)}


def _groups(scenario: Scenario, run: RunDir) -> dict[str, Any]:
    """Return the breakdown by class or region, where there are any."""
    if not scenario.population.groups:
        return {}
    return {"breakdown": breakdown(scenario, run, _replayed(scenario, run, 0))}


def _replayed(
    scenario: Scenario, run: RunDir, repetition: int, delta: float | None = None
) -> Ledger:
    """Return the ledger of a repetition, at `privacy.delta` unless said otherwise."""
    ledger = opened(scenario, bound_mechanism(scenario), delta)
    return replayed(store.charges(run.ledger, repetition), ledger)


def _privacy(scenario: Scenario, run: RunDir) -> dict[str, Any]:
    """Account for what the ledger says happened, repetition by repetition."""
    mechanism, budget = bound_mechanism(scenario), scenario.privacy.budget
    asks, setting = (
        [part.ask for part in planned_releases(scenario, mechanism)],
        setting_of(scenario),
    )
    alone = [ask.mechanism.epsilon_of_report for ask in asks]
    if setting.levels is not None:
        alone = [scenario.task.report(setting, ask).epsilon for ask in asks]
    worst, unable = _worst(scenario, run)
    found = worst.guarantee
    document: dict[str, Any] = {
        "epsilon": found.epsilon,
        "delta": found.delta,
        "guarantee": scenario.privacy.guarantee,
        "planned": planned(scenario, mechanism),
        "epsilon_local": max((loss for loss in alone if loss is not None), default=None),
        "bound": found.bound,
        "assumption": found.assumption,
        "per_client": worst.per_client(),
        "participation": worst.participation,
        "amplification": _amplification(scenario, worst),
        "sampling": _sampling(scenario),
        "presence": _presence(scenario),
    }
    target = scenario.mechanism.target
    if target is not None and 0.0 < target.delta < scenario.privacy.delta:
        document["target"] = _reached(scenario, run, target)
    if budget is not None:
        document["budget"] = {**budget.model_dump(), "exhausted": unable}
    return document


def _presence(scenario: Scenario) -> str:
    """Say that taking part is no secret, and whether it tells something of the data."""
    if scenario.population.needs_influence:
        return _PRESENCE + _CHOSEN
    if not scenario.population.group_data:
        return _PRESENCE
    return _PRESENCE + _TELLING.format(by=scenario.population.grouped_by)


def _reached(scenario: Scenario, run: RunDir, target: Target) -> dict[str, float]:
    """Return a target with the epsilon that was reached at its own delta, not the run's."""
    ledgers = (_replayed(scenario, run, each, target.delta) for each in range(scenario.repeat))
    reached = max(ledger.guarantee().epsilon for ledger in ledgers)
    return {"epsilon": target.epsilon, "delta": target.delta, "reached": reached}


def _worst(scenario: Scenario, run: RunDir) -> tuple[Standing, float]:
    """Return how the clients of the worst repetition stand, and how many have used up a budget."""
    mechanism = bound_mechanism(scenario)
    budget, outcomes = filter_of(scenario, mechanism), []
    for repetition in range(scenario.repeat):
        ledger = _replayed(scenario, run, repetition)
        unable = 0.0
        if budget is not None:
            able = ledger.able(*budgeted(scenario, mechanism), budget)
            unable = float((~able).mean())
        outcomes.append((standing(ledger), unable))
    return max(outcomes, key=lambda outcome: outcome[0].guarantee.epsilon)


def _amplification(scenario: Scenario, worst: Standing) -> dict[str, Any]:
    """Say which amplification the reported epsilon rests on, and why not on the others."""
    cohort, batch, none = "sampled shuffle", "shuffle of the batch that formed", "none"
    mechanism = bound_mechanism(scenario)
    if not scenario.trust_model.shuffled:
        why = f"nothing is shuffled: trust is {scenario.trust}"
        used = "secret sample" if worst.sampled and worst.guarantee.amplified else none
        amplified = scenario.task.keeps_records and worst.guarantee.amplified
        if isinstance(mechanism, CentralEpochs) and amplified:
            used = _BY_NOISE[mechanism.accountant]
        return {"used": used, "not_used": {cohort: why, batch: why}}
    unsampled = sampled(scenario, mechanism)[1]
    if not worst.guarantee.amplified:
        smaller = "the sum of the local losses is not larger"
        if not amplifies(mechanism, scenario.trust_model):
            smaller = "there is no shuffled stream of a pure randomizer"
        smaller = unshuffled(scenario) or smaller
        return {"used": none, "not_used": {cohort: unsampled or smaller, batch: smaller}}
    larger = "the sum of the local losses is larger"
    if worst.sampled:
        never = "every eligible client is charged for the sampled shuffle; the two are never mixed"
        return {"used": cohort, "not_used": {batch: never, none: larger}}
    why = unsampled or "what was released is not a sampled shuffle"
    return {"used": batch, "not_used": {cohort: why, none: larger}}


def _sampling(scenario: Scenario) -> str:
    """Say whether sampling was counted and, if not, why not."""
    mechanism = bound_mechanism(scenario)
    parts = planned_releases(scenario, mechanism)
    if all(charged_to_all(planned_event(scenario, mechanism, part)) for part in parts):
        return "counted"
    if not amplifies(mechanism, scenario.trust_model):
        normal = isinstance(mechanism.release(), GaussianRelease)
        if normal and (why := sampled(scenario, mechanism)[1]):
            return f"not counted: {why}"
        return "not counted: there is no shuffled stream of a pure randomizer"
    why = sampled(scenario, mechanism)[1] or "a release of this task is not a sampled shuffle"
    return f"not counted: {why}"
