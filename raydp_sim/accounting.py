"""What a scenario's releases are as privacy events, and how a central target becomes a local one.

Which event a release is follows from the scenario alone: sampling counts only where the policy
makes it uniform, secret and independent of the data for everyone; otherwise participants are
charged with the batch that really formed. Never a mixture.
"""

from typing import TYPE_CHECKING

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.base import LIMITS, Mechanism
from raydp_sim.mechanisms.shuffled import (
    BOUNDS,
    largest_loss,
    shuffled_event,
    unamplified,
    with_loss,
)
from raydp_sim.population.participation.asynchronous import Asynchronous
from raydp_sim.population.participation.over_selected import OverSelected
from raydp_sim.privacy.accountant import calibrate
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import (
    Release,
    SubsampledMultiMessage,
    SubsampledShuffle,
)
from raydp_sim.privacy.ledger import Ledger, rounded
from raydp_sim.privacy.mixed import honest_clients
from raydp_sim.privacy.search import largest_within

if TYPE_CHECKING:
    from raydp_sim.scenario import Scenario


def amplifies(scenario: "Scenario", mechanism: Mechanism) -> bool:
    """Say whether shuffling may be counted at all.

    It takes a shuffler, and a mechanism whose reports it amplifies.
    """
    return scenario.trust == "shuffle" and unamplified(mechanism) is None


def sampling_counts(scenario: "Scenario") -> str | None:
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


def release_event(scenario: "Scenario", mechanism: Mechanism, n: int) -> Release | None:
    """Return what a release of `n` clients was as a whole; None if only its reports count."""
    if not amplifies(scenario, mechanism):
        return mechanism.release() if scenario.trust == "central" else None
    if sampling_counts(scenario) is None:
        losses, randomizer = mechanism.losses() or (), mechanism.randomizer()
        clients = scenario.population.clients
        if len(losses) == 1:
            return SubsampledShuffle(losses[0], clients, n, randomizer, mechanism.alphabet())
        return SubsampledMultiMessage(losses, clients, n, randomizer)
    return rounded(shuffled_event(mechanism, honest_clients(n, scenario.privacy.honest_fraction)))


def planned_batch(scenario: "Scenario") -> int:
    """Return the smallest batch that a release can have: what a plan may count on."""
    if sampling_counts(scenario) is None:
        everyone = scenario.participation.expected(scenario.population.clients, 1.0)
        return int(everyone)
    population, policy, least = scenario.population, scenario.participation, scenario.least_batch
    prompt = policy.deadline is None and population.dropout == 0.0
    reliable = population.everyone and prompt and scenario.privacy.budget is None
    if reliable or (isinstance(policy, Asynchronous) and policy.deadline is None):
        # Nothing but the full number closes an asynchronous batch that has no deadline.
        return max(least, policy.certain(population.clients))
    return least


def worst_release(scenario: "Scenario", mechanism: Mechanism) -> Release | None:
    """Return the costliest release a client may have to pay for: the smallest batch let out.

    Where clients stay home to keep within a budget a batch may shrink down to `min_batch`, also
    if everyone is always there.
    """
    if scenario.trust != "shuffle" or sampling_counts(scenario) is None:
        return release_event(scenario, mechanism, planned_batch(scenario))
    return release_event(scenario, mechanism, scenario.shuffle.min_batch)


def planned(scenario: "Scenario", mechanism: Mechanism, delta: float | None = None) -> float:
    """Return epsilon of a client in every release, at `privacy.delta` unless said otherwise.

    A budget holds whatever happens, at its own delta and every larger one, so no more than that is
    planned.
    """
    delta = scenario.privacy.delta if delta is None else delta
    ledger = Ledger(clients=1, delta=delta)
    stages = scenario.task.stages(mechanism)
    for stage, releases in stages:
        release = release_event(scenario, stage, planned_batch(scenario))
        ledger.charge(stage.event(), range(1), release, releases)
    spent = ledger.guarantee(exact=charged_alike(scenario) and len(stages) == 1).epsilon
    budget = scenario.privacy.budget
    if budget is None or budget.delta > delta:
        return spent
    return min(spent, budget.epsilon)


def charged_alike(scenario: "Scenario") -> bool:
    """Say whether every client is charged for every release, so that all bounds can be used."""
    return sampling_counts(scenario) is None or planned_batch(scenario) == (
        scenario.population.clients
    )


def calibrated(scenario: "Scenario", mechanism: Mechanism) -> Mechanism:
    """Turn a central target of the whole run into a local guarantee that meets it.

    A client in every release, each with the smallest batch that is ever let out, stays within the
    target as the ledger accounts it in the end: by every bound where all clients are charged alike,
    else by Renyi divergences; the run itself may end below. No larger local guarantee was found to
    do so, and never is it less than an even share of the target.
    """
    target, spends = mechanism.target, scenario.task.spends
    if target is not None and target.epsilon < LIMITS[0] * spends:
        remedy = f"shared between {spends} releases it is below {LIMITS[0]:g}; raise it"
        raise bad_field("mechanism.target.epsilon", target.epsilon, remedy)
    shared = mechanism.calibrated(spends)
    if target is None or target.delta == 0.0 or not amplifies(scenario, shared):
        # A pure target leaves no room for amplification, which always has a delta.
        return shared
    if target.delta > scenario.privacy.delta:
        remedy = f"it must be at most privacy.delta, which is {scenario.privacy.delta:g}"
        raise bad_field("mechanism.target.delta", target.delta, remedy)
    batch, rounds = planned_batch(scenario), scenario.task.rounds
    largest = largest_loss(mechanism)

    def made(epsilon_local: float) -> Mechanism:
        return with_loss(mechanism, epsilon_local)

    def spent(epsilon_local: float) -> float:
        return planned(scenario, made(epsilon_local), target.delta)

    def event(epsilon_local: float) -> Release:
        release = release_event(scenario, made(epsilon_local), batch)
        assert release is not None  # a shuffler is there
        return release

    share = min(target.epsilon / spends, largest) * (1.0 - 1e-12)
    if len(scenario.task.stages(shared)) > 1:
        # Releases of several kinds are weighed against each other only by the ledger.
        return made(largest_within(spent, target.epsilon, share, largest) or share)
    found = 0.0
    for bound in (*BOUNDS, "rdp-best") if charged_alike(scenario) else ("rdp-best",):
        try:
            found = calibrate(target.epsilon, target.delta, event, rounds, bound, largest)
        except (NotApplicable, Unsupported):
            continue
        break
    while found > share:
        # The ledger looks at fewer orders than the calibration, so it may see a little more.
        if (seen := spent(found)) <= target.epsilon:
            return made(found)
        found *= min(0.999, target.epsilon / seen)
    return made(share)
