"""What a scenario's releases will be as privacy events.

Which event a release is follows from the batch that formed: sampling counts only where the policy
makes it uniform, secret and independent of the data for everyone; otherwise participants are
charged with the batch. Never a mixture.
"""

import math
from dataclasses import replace

from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.population.participation.asynchronous import Asynchronous
from raydp_sim.population.participation.over_selected import OverSelected
from raydp_sim.population.participation.self_sampling import SelfSampling
from raydp_sim.privacy.curves.mixed import honest_clients
from raydp_sim.privacy.events import Event, Release
from raydp_sim.privacy.ledger.ledger import Agreed, Ledger, Rule
from raydp_sim.privacy.ledger.views import BY_DATA, charged_to_all
from raydp_sim.scenario.file import Scenario
from raydp_sim.tasks.base import Ask, Planned, Setting
from raydp_sim.tasks.charging import Formed, Sampling, charges


def sampling_counts(scenario: Scenario) -> str | None:
    """Return None if every cohort is uniform, secret and independent of the data, else why not.

    Example:
        >>> from raydp_sim.scenario import parse
        >>> data = {"kind": "bernoulli", "probability": 0.5}
        >>> tiny = {"name": "a", "population": {"clients": 5, "data": data},
        ...         "mechanism": {"kind": "2rr", "epsilon_local": 1.0}}
        >>> sampling_counts(parse(tiny))
        'nobody is sampled: participation is not uniform'
    """
    if isinstance(scenario.participation, OverSelected):
        return "the first to answer are taken, so not everyone is equally likely"
    if not scenario.participation.uniform_and_secret:
        return "nobody is sampled: participation is not uniform"
    return _secret(scenario)


def _secret(scenario: Scenario) -> str | None:
    """Return what else than a policy's own draw decides who is in a batch, or tells who was."""
    if not scenario.population.everyone:
        return "availability decides who can be sampled, so not everyone is equally likely"
    if scenario.participation.deadline is not None or scenario.population.dropout > 0.0:
        return "who reports in time decides who is in a batch, so not everyone is equally likely"
    if not scenario.population.alike:
        return "how long a round takes tells which devices are in it, so cohorts are not secret"
    if scenario.privacy.budget is not None:
        return "clients whose budget is spent stay home, so not everyone is equally likely"
    if scenario.privacy.honest_fraction < 1.0:
        return "colluding clients know whether they were sampled"
    return None


def sampled(scenario: Scenario, mechanism: Mechanism) -> tuple[Sampling | None, str]:
    """Return how cohorts are drawn if something is gained by that; if not, also why not.

    Args:
        scenario: the whole of it.
        mechanism: the scenario's, calibrated or not.
    """
    why = sampling_counts(scenario)
    if why is None:
        return "uniform", ""
    if not isinstance(scenario.participation, SelfSampling):
        return None, why
    if (why := _secret(scenario)) is not None:
        return None, why
    stages = [part.ask.mechanism for part in planned_releases(scenario, mechanism)]
    if any(len(stage.losses() or (0.0,)) > 1 for stage in stages):
        return None, "clients join by their own coins, and several messages of each are sent"
    if any(stage.normal for stage in stages):
        return None, "clients join by their own coins, which is not worked out for Gaussian noise"
    return "coins", ""


def formed_batch(scenario: Scenario, mechanism: Mechanism, reports: int) -> Formed:
    """Return what is known beforehand of a batch of so many reports, for the event that it is."""
    policy, shape = scenario.participation, scenario.population.data.shape()
    return Formed(
        reports=reports,
        trust=scenario.trust_model,
        clients=scenario.population.clients,
        honest=honest_clients(max(1, reports), scenario.privacy.honest_fraction),
        sampling=sampled(scenario, mechanism)[0],
        probability=policy.probability if isinstance(policy, SelfSampling) else 1.0,
        items=shape[0] if len(shape) > 1 else 1,
    )


def setting_with(scenario: Scenario, mechanism: Mechanism) -> Setting:
    """Return what the scenario's task may know before a run with this mechanism."""
    data, clients = scenario.population.data, scenario.population.clients
    privacy, trust = scenario.privacy, scenario.trust_model
    known = (data.shape(), privacy.delta, data.labels(), data.held_out())
    levels, honest = privacy.readers(trust.shuffled), privacy.honest_fraction
    return Setting(mechanism, clients, *known, levels=levels, trust=trust, honest_fraction=honest)


def planned_releases(scenario: Scenario, mechanism: Mechanism) -> tuple[Planned, ...]:
    """Return what the scenario's task will release with this mechanism."""
    return scenario.task.plan(setting_with(scenario, mechanism))


def release_event(
    scenario: Scenario, mechanism: Mechanism, n: int, ask: Ask | None = None
) -> Release | None:
    """Return what a release of `n` clients' reports is as a whole; None if only reports count.

    Args:
        scenario: the whole of it.
        mechanism: the scenario's.
        n: reports in the batch.
        ask: that they answer; by default with that mechanism.
    """
    ask = Ask(mechanism) if ask is None else ask
    formed = replace(formed_batch(scenario, mechanism, n), slots=ask.slots)
    return scenario.task.event(setting_with(scenario, mechanism), ask, formed)


def least_batch(scenario: Scenario, ask: Ask) -> int:
    """Return the smallest batch of an ask that may be released."""
    return scenario.least_batch if ask.minimum is None else max(1, ask.minimum)


def planned_batch(scenario: Scenario, mechanism: Mechanism, ask: Ask) -> int:
    """Return the smallest batch that a release can have: what a plan may count on.

    Args:
        scenario: the whole of it.
        mechanism: the scenario's.
        ask: of the release, which may want a size of its own.
    """
    population, policy = scenario.population, scenario.participation
    policy = policy if ask.wanted is None else policy.sized(ask.wanted)
    least = least_batch(scenario, ask)
    if sampling_counts(scenario) is None:
        return int(policy.expected(population.clients, 1.0))
    prompt = policy.deadline is None and population.dropout == 0.0
    reliable = population.everyone and prompt and scenario.privacy.budget is None
    if isinstance(policy, Asynchronous):
        # Nothing but the full number closes a batch that has no deadline.
        reliable = policy.deadline is None and one_mechanism(scenario, mechanism)
    return max(least, policy.certain(population.clients)) if reliable else least


def one_mechanism(scenario: Scenario, mechanism: Mechanism) -> bool:
    """Say whether all asks have one mechanism; if not, late reports may have to be discarded."""
    parts = planned_releases(scenario, mechanism)
    return len(parts) == 1 and parts[0].fixed


def planned_event(scenario: Scenario, mechanism: Mechanism, part: Planned) -> Release | None:
    """Return what a planned release is as a whole, with the smallest batch that it can have."""
    size = planned_batch(scenario, mechanism, part.ask)
    return release_event(scenario, mechanism, size, part.ask)


def budgeted(scenario: Scenario, mechanism: Mechanism) -> tuple[Event, Release | None]:
    """Return the costliest release a client may have to pay for: the smallest batch released.

    Where clients stay home to keep within a budget a batch may shrink down to `min_batch`, also
    if everyone is always there. Only tasks of one kind of release have budgets.
    """
    ask = planned_releases(scenario, mechanism)[0].ask
    size = least_batch(scenario, ask)
    if not scenario.trust_model.shuffled or sampling_counts(scenario) is None:
        size = planned_batch(scenario, mechanism, ask)
    alone = scenario.task.report(setting_with(scenario, mechanism), ask)
    return charges(ask.mechanism, release_event(scenario, mechanism, size, ask), alone)


def agreed(scenario: Scenario, mechanism: Mechanism) -> Agreed:
    """Return what a client in every planned release is charged, each with its smallest batch."""
    found = []
    for part in planned_releases(scenario, mechanism):
        event = planned_event(scenario, mechanism, part)
        alone = scenario.task.report(setting_with(scenario, mechanism), part.ask)
        found.append((*charges(part.ask.mechanism, event, alone), part.per_client))
    return tuple(found)


def rule(scenario: Scenario) -> Rule:
    """Return how a run's charges may be added up: what decides on which releases there are.

    Example:
        >>> from raydp_sim.scenario import parse
        >>> data = {"kind": "bernoulli", "probability": 0.5}
        >>> tiny = {"name": "a", "population": {"clients": 5, "data": data},
        ...         "mechanism": {"kind": "2rr", "epsilon_local": 1.0}}
        >>> rule(parse(tiny))
        'laws'
    """
    if scenario.task.once:
        return "once"
    if scenario.task.adaptive and scenario.task.open_ended:
        return "plan"
    return "laws" if scenario.privacy.budget is None else "divergences"


def opened(scenario: Scenario, mechanism: Mechanism, delta: float | None = None) -> Ledger:
    """Return the ledger of a run before its first release: the one way to make it.

    It accounts at `privacy.delta` unless said otherwise.
    """
    plan, budget = agreed(scenario, mechanism), scenario.privacy.budget
    delta = scenario.privacy.delta if delta is None else delta
    holds = budget is not None and budget.delta <= delta
    ledger = Ledger(
        scenario.population.clients,
        delta,
        collector=scenario.trust_model.collector,
        rule=rule(scenario),
        plan=plan,
        kept_within=budget.epsilon if budget is not None and holds else math.inf,
        caveat=_analysts(scenario) + (BY_DATA if scenario.population.needs_influence else ""),
    )
    ledger.open_view(plan[0][0])
    return ledger


def _analysts(scenario: Scenario) -> str:
    """Say which analysts a guarantee holds against, where they have levels."""
    levels = scenario.privacy.readers(scenario.trust_model.shuffled)
    if levels is None:
        return ""
    level = levels.loudest
    told = [name for reader, name in enumerate(levels.names) if levels.tells_all(reader)]
    who = "all analysts together"
    if told:
        who = f"all readers but {' and '.join(told)}, from whom nothing is hidden"
    seen = f"level {level + 1}, epsilon {levels.epsilons[level]:g}"
    return f"; against {who}: reports are seen at {seen}"


def unshuffled(scenario: Scenario) -> str | None:
    """Return why shuffling counts for nothing in what all analysts together see; None if it may."""
    levels = scenario.privacy.readers(scenario.trust_model.shuffled)
    if levels is None or not scenario.trust_model.shuffled:
        return None
    if levels.direct and len(levels.names) > 1:
        return "analysts get their keys straight from clients, and know who sent what"
    return "keys of a promotion tell some reports from others" if levels.promotions else None


def planned(scenario: Scenario, mechanism: Mechanism, delta: float | None = None) -> float:
    """Return epsilon of a client in every release, at `privacy.delta` unless said otherwise.

    The plan does not depend on what will be released, so every bound may be used. A budget holds
    whatever happens, at its own delta and every larger one, so no more than that is planned.
    """
    delta = scenario.privacy.delta if delta is None else delta
    plan = agreed(scenario, mechanism)
    once = scenario.task.once
    summed: Rule = "once" if once else "laws"
    ledger = Ledger(clients=len(plan) if once else 1, delta=delta, rule=summed, plan=plan)
    for part, (event, release, times) in enumerate(plan):
        # Who serves once is in one of them; the dearest counts.
        who = range(part, part + 1) if once else range(1)
        ledger.charge(event, who, release, times)
    spent = ledger.guarantee().epsilon
    budget = scenario.privacy.budget
    if budget is None or budget.delta > delta:
        return spent
    return min(spent, budget.epsilon)


def charged_alike(scenario: Scenario, mechanism: Mechanism) -> bool:
    """Say whether every client is charged for every release, so that all bounds can be used."""
    clients = scenario.population.clients
    return all(
        planned_batch(scenario, mechanism, part.ask) == clients
        or charged_to_all(planned_event(scenario, mechanism, part))
        for part in planned_releases(scenario, mechanism)
    )
