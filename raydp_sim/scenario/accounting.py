"""What a scenario's releases will be as privacy events, and how a central target becomes local.

Which event a release is follows from the batch that formed: sampling counts only where the policy
makes it uniform, secret and independent of the data for everyone; otherwise participants are
charged with the batch. Never a mixture.
"""

import contextlib
import math
from dataclasses import replace

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.base import LIMITS, Mechanism, Target
from raydp_sim.mechanisms.shuffled import largest_loss, with_loss
from raydp_sim.population.participation.asynchronous import Asynchronous
from raydp_sim.population.participation.over_selected import OverSelected
from raydp_sim.population.participation.self_sampling import SelfSampling
from raydp_sim.privacy.accountant import calibrate
from raydp_sim.privacy.composition.search import largest_within
from raydp_sim.privacy.curves.gaussian import gaussian_epsilon, gaussian_sigma
from raydp_sim.privacy.curves.mixed import honest_clients
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import (
    Event,
    GaussianRelease,
    GaussianReport,
    LocalReport,
    Release,
)
from raydp_sim.privacy.ledger.ledger import Agreed, Ledger, Rule
from raydp_sim.privacy.ledger.views import BY_DATA, charged_to_all
from raydp_sim.scenario.file import Scenario
from raydp_sim.tasks.base import Ask, Planned, Setting
from raydp_sim.tasks.charging import Formed, Sampling, amplifies, charges


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
    known = (data.shape(), scenario.privacy.delta, data.labels(), data.held_out())
    return Setting(mechanism, clients, *known)


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


def planned_batch(scenario: Scenario, mechanism: Mechanism, ask: Ask) -> int:
    """Return the smallest batch that a release can have: what a plan may count on.

    Args:
        scenario: the whole of it.
        mechanism: the scenario's.
        ask: of the release, which may want a size of its own.
    """
    population, policy = scenario.population, scenario.participation
    policy = policy if ask.wanted is None else policy.sized(ask.wanted)
    least = max(scenario.least_batch, ask.minimum or 1)
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
    size = max(scenario.least_batch, ask.minimum or 1)
    if not scenario.trust_model.shuffled or sampling_counts(scenario) is None:
        size = planned_batch(scenario, mechanism, ask)
    return charges(ask.mechanism, release_event(scenario, mechanism, size, ask))


def agreed(scenario: Scenario, mechanism: Mechanism) -> Agreed:
    """Return what a client in every planned release is charged, each with its smallest batch."""
    found = []
    for part in planned_releases(scenario, mechanism):
        event = planned_event(scenario, mechanism, part)
        found.append((*charges(part.ask.mechanism, event), part.per_client))
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
        caveat=BY_DATA if scenario.population.needs_influence else "",
    )
    ledger.open_view(plan[0][0])
    return ledger


def planned(scenario: Scenario, mechanism: Mechanism, delta: float | None = None) -> float:
    """Return epsilon of a client in every release, at `privacy.delta` unless said otherwise.

    The plan does not depend on what will be released, so every bound may be used. A budget holds
    whatever happens, at its own delta and every larger one, so no more than that is planned.
    """
    delta = scenario.privacy.delta if delta is None else delta
    plan = agreed(scenario, mechanism)
    ledger = Ledger(clients=1, delta=delta, rule="laws", plan=plan)
    for event, release, times in plan:
        ledger.charge(event, range(1), release, times)
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


def calibrated(scenario: Scenario, mechanism: Mechanism) -> Mechanism:
    """Turn a central target of the whole run into a local guarantee that meets it.

    A client in every release, each with the smallest batch that is ever released, stays within the
    target by the best bound on the planned releases, as `account calibrate` finds it; the run
    itself may end below. No larger local guarantee was found to do so, and never is it less than
    an even share of the target. Normal noise is not shared out evenly: releases with it are one
    release of less noise.
    """
    target, spends = mechanism.target, scenario.task.spends
    if target is not None and target.epsilon < LIMITS[0] * spends:
        remedy = f"shared between {spends} releases it is below {LIMITS[0]:g}; raise it"
        raise bad_field("mechanism.target.epsilon", target.epsilon, remedy)
    shared = mechanism.calibrated(spends)
    if target is not None and isinstance(shared.release(), GaussianRelease | GaussianReport):
        return _with_normal_noise(scenario, mechanism, target, shared)
    if target is None or target.delta == 0.0 or not amplifies(shared, scenario.trust_model):
        # A pure target leaves no room for amplification, which always has a delta.
        return shared
    if target.delta > scenario.privacy.delta:
        remedy = f"it must be at most privacy.delta, which is {scenario.privacy.delta:g}"
        raise bad_field("mechanism.target.delta", target.delta, remedy)
    # With the share's delta, where reports have one.
    largest = largest_loss(shared)

    def made(epsilon_local: float) -> Mechanism:
        return with_loss(shared, epsilon_local)

    def spent(epsilon_local: float) -> float:
        return planned(scenario, made(epsilon_local), target.delta)

    def event(epsilon_local: float) -> Release:
        own = made(epsilon_local)
        first = planned_releases(scenario, own)[0]
        found = planned_event(scenario, own, first)
        return LocalReport(epsilon_local) if found is None else found

    share = min(target.epsilon / spends, largest) * (1.0 - 1e-12)
    parts = planned_releases(scenario, shared)
    if len(parts) > 1 or isinstance(event(share), LocalReport):
        # Releases of several kinds, or single reports, are added up by the ledger alone.
        return made(largest_within(spent, target.epsilon, share, largest) or share)
    found, times = 0.0, parts[0].per_client
    with contextlib.suppress(NotApplicable, Unsupported):
        found = calibrate(target.epsilon, target.delta, event, times, largest=largest)
    while found > share:
        # Runs ask fewer bounds than the calibration, so they may see a little more.
        if (seen := spent(found)) <= target.epsilon:
            return made(found)
        found *= min(0.999, target.epsilon / seen)
    return made(share)


def _with_normal_noise(
    scenario: Scenario, mechanism: Mechanism, target: Target, shared: Mechanism
) -> Mechanism:
    """Return the mechanism with the least noise at which all releases together meet the target.

    T releases with noise z sqrt(T) times the sensitivity cost exactly what one with z costs (Dong,
    Roth & Su 2022, Corollary 3.3). What a release by itself costs is stated at an even share of
    delta. Never more noise than with an even share of epsilon.
    """
    parts = planned_releases(scenario, shared)
    if len(parts) > 1 or mechanism.delta_field is None:
        return shared
    delta = shared.need_delta()
    whole = gaussian_sigma(target.epsilon, target.delta) * math.sqrt(parts[0].per_client)
    # Runs are accounted for with a little room, and budgets by divergences, which see more.
    for slack in (1e-9, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1):
        each = gaussian_epsilon(delta, whole * (1.0 + slack))
        if each <= shared.need_epsilon():
            break
        known = {mechanism.epsilon_field: each, mechanism.delta_field: delta, "target": None}
        made = type(mechanism).model_validate({**mechanism.model_dump(), **known})
        if planned(scenario, made, target.delta) <= target.epsilon:
            return made
    return shared
