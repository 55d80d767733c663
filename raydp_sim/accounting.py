"""What a scenario's releases are as privacy events, and how a central target becomes a local one.

Which event a release is follows from the scenario alone: sampling counts only where the policy
makes it uniform, secret and independent of the data for everyone; otherwise participants are
charged with the batch that really formed. Never a mixture.
"""

from typing import TYPE_CHECKING

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.population.participation.all import All
from raydp_sim.privacy.accountant import calibrate
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import (
    MultiMessageShuffle,
    Release,
    Shuffle,
    SubsampledMultiMessage,
    SubsampledShuffle,
)
from raydp_sim.privacy.ledger import Ledger, rounded
from raydp_sim.privacy.mixed import honest_clients

if TYPE_CHECKING:
    from raydp_sim.scenario import Scenario

_LARGEST = 20.0


def amplifies(scenario: "Scenario", mechanism: Mechanism) -> bool:
    """Say whether shuffling may be counted at all.

    It takes a pure local guarantee behind a shuffler, stated message by message, and one logical
    shuffler per message.
    """
    pure = mechanism.guarantee == "pure" and mechanism.event().delta == 0.0
    apart = mechanism.routing == "per-index" or mechanism.messages_per_report == 1
    return scenario.trust == "shuffle" and pure and apart and mechanism.losses() is not None


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
    if not scenario.participation.uniform_and_secret:
        return "nobody is sampled: participation is not uniform"
    if not scenario.population.everyone:
        return "availability decides who can be sampled, so not everyone is equally likely"
    if scenario.privacy.honest_fraction < 1.0:
        return "colluding clients know whether they were sampled"
    return None


def release_event(scenario: "Scenario", mechanism: Mechanism, n: int) -> Release | None:
    """Return what a release of `n` clients was as a whole; None if only its reports count."""
    if not amplifies(scenario, mechanism):
        return mechanism.release() if scenario.trust == "central" else None
    losses, randomizer = mechanism.losses() or (), mechanism.randomizer()
    alphabet = mechanism.alphabet()
    clients = scenario.population.clients
    if sampling_counts(scenario) is None:
        if len(losses) == 1:
            return SubsampledShuffle(losses[0], clients, n, randomizer, alphabet)
        return SubsampledMultiMessage(losses, clients, n, randomizer)
    honest = honest_clients(n, scenario.privacy.honest_fraction)
    if len(losses) == 1:
        return rounded(Shuffle(losses[0], honest, randomizer, alphabet))
    return rounded(MultiMessageShuffle(losses, honest, randomizer))


def planned_batch(scenario: "Scenario") -> int:
    """Return the smallest batch that a release can have: what a plan may count on."""
    if sampling_counts(scenario) is None:
        everyone = scenario.participation.expected(scenario.population.clients, 1.0)
        return int(everyone)
    population = scenario.population
    reliable = population.everyone and population.dropout == 0.0
    if isinstance(scenario.participation, All) and reliable:
        return population.clients
    return scenario.shuffle.min_batch


def worst_release(scenario: "Scenario", mechanism: Mechanism) -> Release | None:
    """Return the costliest release a client may have to pay for: the smallest batch let out.

    Where clients stay home to keep within a budget a batch may shrink down to `min_batch`, also
    if everyone is always there.
    """
    if scenario.trust != "shuffle" or sampling_counts(scenario) is None:
        return release_event(scenario, mechanism, planned_batch(scenario))
    return release_event(scenario, mechanism, scenario.shuffle.min_batch)


def planned(scenario: "Scenario", mechanism: Mechanism, delta: float | None = None) -> float:
    """Return epsilon of a client in every release, at `privacy.delta` unless said otherwise."""
    ledger = Ledger(clients=1, delta=scenario.privacy.delta if delta is None else delta)
    release = release_event(scenario, mechanism, planned_batch(scenario))
    ledger.charge(mechanism.event(), range(1), release, scenario.task.rounds)
    return ledger.guarantee().epsilon


def calibrated(scenario: "Scenario", mechanism: Mechanism) -> Mechanism:
    """Turn a central target of the whole run into a local guarantee that meets it.

    A client in every release, each with the smallest batch that is ever let out, stays within the
    target as the ledger accounts it; the run itself may end below. No larger local guarantee was
    found to do so, and never is it less than an even share of the target.
    """
    target, shared = mechanism.target, mechanism.calibrated(scenario.task.rounds)
    if target is None or target.delta == 0.0 or not amplifies(scenario, shared):
        # A pure target leaves no room for amplification, which always has a delta.
        return shared
    if target.delta > scenario.privacy.delta:
        remedy = f"it must be at most privacy.delta, which is {scenario.privacy.delta:g}"
        raise bad_field("mechanism.target.delta", target.delta, remedy)
    batch, rounds = planned_batch(scenario), scenario.task.rounds

    def made(epsilon_local: float) -> Mechanism:
        share = {"epsilon_local": epsilon_local, "target": None}
        return type(mechanism).model_validate({**mechanism.model_dump(), **share})

    def event(epsilon_local: float) -> Release:
        release = release_event(scenario, made(epsilon_local), batch)
        assert release is not None  # a shuffler is there
        return release

    share = min(target.epsilon / rounds, _LARGEST) * (1.0 - 1e-12)
    try:
        found = calibrate(target.epsilon, target.delta, event, rounds, "rdp-best", _LARGEST)
    except NotApplicable:
        return made(share)
    while found > share:
        # The ledger looks at fewer orders than the calibration, so it may see a little more.
        spent = planned(scenario, made(found), target.delta)
        if spent <= target.epsilon:
            return made(found)
        found *= min(0.999, target.epsilon / spent)
    return made(share)
