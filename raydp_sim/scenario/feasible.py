"""Whether a scenario's clients could ever fill a batch as its policy wants it, and be paid for."""

from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.population.participation.asynchronous import Asynchronous
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.scenario.accounting import (
    budgeted,
    least_batch,
    one_mechanism,
    planned_releases,
)
from raydp_sim.scenario.bound import bound_mechanism
from raydp_sim.scenario.budgets import filter_of
from raydp_sim.scenario.file import Scenario
from raydp_sim.scenario.sections import Budget
from raydp_sim.tasks.base import Ask, Task
from raydp_sim.tasks.charging import amplifies

# Check-ins that a run may look through in vain before it ends: a few minutes.
_MOST_IDLE = 5e9


def check_participation(scenario: Scenario) -> None:
    """Refuse policies that could never release anything, or whose rounds would never end.

    Raises:
        InputError: names the field, its value and the remedy.
    """
    population, policy = scenario.population, scenario.participation
    clients, deadline, mechanism = population.clients, policy.deadline, bound_mechanism(scenario)
    if (wrong := policy.check(clients)) is not None:
        raise bad_field(f"participation.{policy.sized_by}", getattr(policy, policy.sized_by), wrong)
    parts, trust = planned_releases(scenario, mechanism), scenario.trust_model
    if population.needs_influence and type(scenario.task).influence is Task.influence:
        remedy = f"task '{scenario.task.kind}' does not say how much a client counts; use another"
        raise bad_field("population.availability.kind", population.availability.kind, remedy)
    for part in parts:
        check_ask(scenario, part.ask)
    if scenario.task.once:
        _check_once(scenario)
    if deadline is not None and deadline <= population.least_latency():
        remedy = (
            f"no report takes less than {population.least_latency():g} (population.latency), so "
            "every batch would be empty; raise it"
        )
        raise bad_field("participation.deadline", deadline, remedy)
    if scenario.privacy.budget is not None:
        _check_budget(scenario, scenario.privacy.budget)
    amplified = {amplifies(part.ask.mechanism, trust) for part in parts}
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


def _check_once(scenario: Scenario) -> None:
    """Refuse what a task whose clients serve once could not keep to."""
    target, delta = scenario.mechanism.target, scenario.privacy.delta
    if target is not None and scenario.trust_model.shuffled and target.delta != delta:
        remedy = f"batches are made for privacy.delta, which is {delta:g}; give both the same"
        raise bad_field("mechanism.target.delta", target.delta, remedy)
    budget = scenario.privacy.budget
    if budget is not None and scenario.trust_model.shuffled and budget.delta < delta:
        remedy = f"batches are made for privacy.delta, which is {delta:g}; give both the same"
        raise bad_field("privacy.budget.delta", budget.delta, remedy)


def check_ask(scenario: Scenario, ask: Ask) -> None:
    """Refuse an ask that no batch of this scenario could be the answer to.

    Raises:
        InputError: names the field, its value and the remedy.
    """
    policy, clients, kind = scenario.participation, scenario.population.clients, scenario.task.kind
    if ask.wanted is not None:
        wrong: str | None = "it must be at least 1"
        if ask.wanted >= 1:
            policy = policy.sized(ask.wanted)
            wrong = policy.check(clients)
        if wrong is not None:
            raise InputError(f"task '{kind}' asks for a batch of {ask.wanted}; {wrong}")
    least, most = least_batch(scenario, ask), policy.largest(clients)
    if least > most:
        remedy = f"at most {most} clients are in a batch, so nothing is ever released; lower it"
        if ask.minimum is None:
            raise bad_field("shuffle.min_batch", least, remedy)
        raise InputError(f"task '{kind}' asks for at least {least} reports; {remedy}")
    if ask.slots is None:
        return
    if policy.deadline is None and scenario.population.dropout > 0.0:
        remedy = (
            f"give one: task '{kind}' assigns slots, clients drop out (population.dropout), and "
            "nobody can tell a slot that stays empty from a slow report"
        )
        raise bad_field("participation.deadline", None, remedy)
    if ask.mechanism.messages_per_report > 1:
        remedy = f"task '{kind}' assigns slots, which take reports of one message; use another"
        raise bad_field("mechanism.kind", ask.mechanism.kind, remedy)


def check_categories(scenario: Scenario) -> None:
    """Refuse a mechanism for fewer categories than the data have names for.

    Raises:
        InputError: names the field, its value and the remedy.
    """
    domain, names = bound_mechanism(scenario).domain, scenario.population.data.names()
    single = domain.norm == "category" and domain.questions == 1
    if not single or not names or scenario.population.data.width() != 1:
        return
    if 1 < domain.choices < len(names):
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        remedy = f"the data have {len(names)} categories ({shown}); set it to {len(names)}"
        raise bad_field("mechanism.categories", domain.choices, remedy)


def check_records(scenario: Scenario) -> None:
    """Refuse to call records disjoint that several clients hold: one vote is not all they cost.

    Raises:
        InputError: names the field, its value and the remedy.
    """
    records = getattr(scenario.mechanism, "records", None)
    if records == "disjoint" and scenario.population.shares_samples:
        remedy = (
            "samples are dealt to more than one client (population.data.overlap or group_data); "
            "say shared, or deal each once"
        )
        raise bad_field("mechanism.records", records, remedy)


def check_reach(scenario: Scenario) -> None:
    """Refuse a population of which too few can ever come; its models must be known to be sound."""
    population, policy = scenario.population, scenario.participation
    come, needed = population.reachable(), scenario.least_batch
    if isinstance(policy, Asynchronous) and policy.deadline is None:
        needed = max(needed, policy.batch)
    if come < needed:
        field = "shuffle.min_batch" if needed == scenario.least_batch else "participation.batch"
        remedy = f"only {come} clients can ever come (population.availability); lower it"
        raise bad_field(field, needed, remedy)


def _check_budget(scenario: Scenario, budget: Budget) -> None:
    mechanism = bound_mechanism(scenario)
    if scenario.task.keeps_records:
        remedy = (
            "records are sent once and used in every release, so nobody can stay home later; leave "
            "it out and give mechanism.target"
        )
        raise bad_field("privacy.budget.epsilon", budget.epsilon, remedy)
    if len(planned_releases(scenario, mechanism)) > 1:
        remedy = "this task has stages, and who has paid for one could not go on; leave it out"
        raise bad_field("privacy.budget.epsilon", budget.epsilon, remedy)
    first = Ledger(clients=1, delta=scenario.privacy.delta)
    costs, kept = budgeted(scenario, mechanism), filter_of(scenario, mechanism)
    # Who serves once may be in any of the releases, of which the dearest costs all of epsilon.
    dear = scenario.task.once and budget.epsilon < mechanism.need_epsilon()
    if dear or (kept is not None and not first.able(*costs, kept).all()):
        remedy = "one release may cost more than that, so nobody could take part; raise it"
        raise bad_field("privacy.budget.epsilon", budget.epsilon, remedy)


def _check_asynchronous(scenario: Scenario, policy: Asynchronous) -> None:
    mechanism = bound_mechanism(scenario)
    if mechanism.tells == "majority":
        remedy = "a late vote would be counted for another question; use rounds, such as all"
        raise bad_field("participation.kind", policy.kind, remedy)
    asks = [part.ask for part in planned_releases(scenario, mechanism)]
    late = any(ask.slots is None for ask in asks)  # batches with slots have no late reports
    if late and scenario.trust_model.pays_unused and not one_mechanism(scenario, mechanism):
        remedy = (
            "this task has stages, and a server that is not trusted sees late reports of the wrong "
            "one; use rounds or trust: shuffle"
        )
        raise bad_field("participation.kind", policy.kind, remedy)
    for part in planned_releases(scenario, mechanism):
        if policy.staleness_exponent > 0.0 and (values := _unweighted(part.ask.mechanism)):
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


def _unweighted(mechanism: Mechanism) -> str | None:
    """Return the values of a mechanism in words, if its domain does not hold them scaled down."""
    if "centre" in type(mechanism).model_fields:
        return "values around a centre"
    return mechanism.domain.describe() if mechanism.domain.norm in ("category", "binary") else None
