"""Whether a scenario's clients could ever fill a batch as its policy wants it, and be paid for."""

from typing import TYPE_CHECKING

from raydp_sim.errors import bad_field
from raydp_sim.population.participation.asynchronous import Asynchronous

if TYPE_CHECKING:
    from raydp_sim.scenario import Scenario


def check_participation(scenario: "Scenario") -> None:
    """Refuse policies that could never release anything, or whose rounds would never end.

    Raises:
        InputError: names the field, its value and the remedy.
    """
    population, policy = scenario.population, scenario.participation
    clients, deadline = population.clients, policy.deadline
    if (wrong := policy.check(clients)) is not None:
        raise bad_field(f"participation.{policy.sized_by}", getattr(policy, policy.sized_by), wrong)
    least, most = scenario.least_batch, policy.largest(clients)
    if least > most:
        remedy = f"at most {most} clients are in a batch, so nothing is ever released; lower it"
        raise bad_field("shuffle.min_batch", least, remedy)
    if deadline is not None and deadline <= population.least_latency():
        remedy = (
            f"no report takes less than {population.least_latency():g} (population.latency), so "
            "every batch would be empty; raise it"
        )
        raise bad_field("participation.deadline", deadline, remedy)
    if scenario.privacy.budget is not None and _staged(scenario):
        remedy = "this task has stages, and who has paid for one could not go on; leave it out"
        raise bad_field("privacy.budget.epsilon", scenario.privacy.budget.epsilon, remedy)
    if isinstance(policy, Asynchronous):
        _check_asynchronous(scenario, policy)
    elif population.dropout > 0.0 and deadline is None:
        remedy = (
            "give one: clients drop out (population.dropout), and nobody can tell a lost report "
            "from a slow one, so a round would wait for ever"
        )
        raise bad_field("participation.deadline", None, remedy)


def _staged(scenario: "Scenario") -> bool:
    return len(scenario.task.stages(scenario.bound_mechanism)) > 1


def _check_asynchronous(scenario: "Scenario", policy: Asynchronous) -> None:
    mechanism = scenario.bound_mechanism
    if _staged(scenario):
        remedy = "this task has stages, and a late report would answer the wrong one; use rounds"
        raise bad_field("participation.kind", policy.kind, remedy)
    if policy.staleness_exponent > 0.0 and mechanism.domain.norm in ("category", "binary"):
        remedy = f"{mechanism.domain.describe()} cannot be weighted; set it to 0"
        raise bad_field("participation.staleness_exponent", policy.staleness_exponent, remedy)
    if policy.longest_wait <= scenario.population.least_latency():
        remedy = "no report comes that soon (population.latency); raise it"
        raise bad_field("participation.patience", policy.longest_wait, remedy)
