"""Whether a scenario's clients could ever fill a batch as its policy wants it, and be paid for."""

from typing import TYPE_CHECKING

from raydp_sim.accounting import amplifies, worst_release
from raydp_sim.errors import bad_field
from raydp_sim.population.participation.asynchronous import Asynchronous
from raydp_sim.privacy.filter import Filter
from raydp_sim.privacy.ledger import Ledger
from raydp_sim.tasks.base import Task

if TYPE_CHECKING:
    from raydp_sim.scenario import Budget, Scenario

# Check-ins that a run may look through in vain before it ends: a few minutes.
_MOST_IDLE = 5e9


def check_participation(scenario: "Scenario") -> None:
    """Refuse policies that could never release anything, or whose rounds would never end.

    Raises:
        InputError: names the field, its value and the remedy.
    """
    population, policy = scenario.population, scenario.participation
    clients, deadline, mechanism = population.clients, policy.deadline, scenario.bound_mechanism
    if (wrong := policy.check(clients)) is not None:
        raise bad_field(f"participation.{policy.sized_by}", getattr(policy, policy.sized_by), wrong)
    least, most = scenario.least_batch, policy.largest(clients)
    if population.needs_influence and type(scenario.task).influence is Task.influence:
        remedy = f"task '{scenario.task.kind}' does not say how much a client counts; use another"
        raise bad_field("population.availability.kind", population.availability.kind, remedy)
    if least > most:
        remedy = f"at most {most} clients are in a batch, so nothing is ever released; lower it"
        raise bad_field("shuffle.min_batch", least, remedy)
    if deadline is not None and deadline <= population.least_latency():
        remedy = (
            f"no report takes less than {population.least_latency():g} (population.latency), so "
            "every batch would be empty; raise it"
        )
        raise bad_field("participation.deadline", deadline, remedy)
    if scenario.privacy.budget is not None:
        _check_budget(scenario, scenario.privacy.budget)
    amplified = {amplifies(scenario, stage) for stage, _ in scenario.task.stages(mechanism)}
    if len(amplified) > 1:
        remedy = "shuffling protects some of its stages and not others; no account covers both"
        raise bad_field("task.kind", scenario.task.kind, remedy)
    if isinstance(policy, Asynchronous):
        _check_asynchronous(scenario, policy)
    elif population.dropout > 0.0 and deadline is None:
        remedy = (
            "give one: clients drop out (population.dropout), and nobody can tell a lost report "
            "from a slow one, so a round would wait for ever"
        )
        raise bad_field("participation.deadline", None, remedy)


def check_reach(scenario: "Scenario") -> None:
    """Refuse a population of which too few can ever come; its models must be known to be sound."""
    population, policy = scenario.population, scenario.participation
    come, needed = population.reachable(), scenario.least_batch
    if isinstance(policy, Asynchronous) and policy.deadline is None:
        needed = max(needed, policy.batch)
    if come < needed:
        field = "shuffle.min_batch" if needed == scenario.least_batch else "participation.batch"
        remedy = f"only {come} clients can ever come (population.availability); lower it"
        raise bad_field(field, needed, remedy)


def _check_budget(scenario: "Scenario", budget: "Budget") -> None:
    mechanism = scenario.bound_mechanism
    if _staged(scenario):
        remedy = "this task has stages, and who has paid for one could not go on; leave it out"
        raise bad_field("privacy.budget.epsilon", budget.epsilon, remedy)
    first = Ledger(clients=1, delta=scenario.privacy.delta)
    costs = (mechanism.event(), worst_release(scenario, mechanism))
    if not first.able(*costs, Filter(budget.epsilon, budget.delta)).all():
        remedy = "one release may cost more than that, so nobody could take part; raise it"
        raise bad_field("privacy.budget.epsilon", budget.epsilon, remedy)


def _staged(scenario: "Scenario") -> bool:
    return len(scenario.task.stages(scenario.bound_mechanism)) > 1


def _check_asynchronous(scenario: "Scenario", policy: Asynchronous) -> None:
    mechanism = scenario.bound_mechanism
    if _staged(scenario):
        remedy = "this task has stages, and a late report would answer the wrong one; use rounds"
        raise bad_field("participation.kind", policy.kind, remedy)
    shifted = "centre" in type(mechanism).model_fields
    if policy.staleness_exponent > 0.0 and (
        shifted or mechanism.domain.norm in ("category", "binary")
    ):
        values = "values around a centre" if shifted else mechanism.domain.describe()
        remedy = f"{values} cannot be weighted; set it to 0"
        raise bad_field("participation.staleness_exponent", policy.staleness_exponent, remedy)
    patience = policy.longest_wait(scenario.population.typical_latency())
    if patience <= max(policy.deadline or 0.0, scenario.population.least_latency()):
        remedy = "it must be longer than participation.deadline and the least latency; raise it"
        raise bad_field("participation.patience", patience, remedy)
    idle = patience / policy.every * scenario.population.clients
    if idle > _MOST_IDLE:
        remedy = (
            f"each of {scenario.population.clients} clients would check in {patience:g} / "
            f"{policy.every:g} times before an idle run ends; lower it or raise participation.every"
        )
        raise bad_field("participation.patience", patience, remedy)
