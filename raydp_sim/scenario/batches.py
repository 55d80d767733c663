"""How large a scenario's batches will be, and the smallest one to release where none is given."""

import math

import numpy as np

from raydp_sim.mechanisms.base import LIMITS
from raydp_sim.population.participation.asynchronous import Asynchronous
from raydp_sim.population.participation.over_selected import OverSelected
from raydp_sim.random import Stream
from raydp_sim.scenario.accounting import planned_releases
from raydp_sim.scenario.bound import filled
from raydp_sim.scenario.file import Scenario
from raydp_sim.tasks.base import Ask

_SAMPLE = 1 << 13


def expected_batch(scenario: Scenario, ask: Ask) -> float:
    """Return how many clients' reports a batch will have on average, budgets left aside.

    From the policy, the clients' long-run rate of being there, the chance that a report is lost
    and, where there is a deadline, the share of reports that take less than that (of 8192 clients,
    with draws that are the same for every seed).
    """
    population, policy = scenario.population, scenario.participation
    policy = policy if ask.wanted is None else policy.sized(ask.wanted)
    clients, rate, kept = population.clients, population.rate(), 1.0 - population.dropout
    if isinstance(policy, Asynchronous):
        if policy.deadline is None:
            return float(policy.batch)
        # Each client that is there begins once in a period.
        begun = clients * rate * min(1.0, policy.deadline / policy.every)
        return min(float(policy.batch), begun * kept)
    if policy.deadline is not None:
        ids = np.arange(min(clients, _SAMPLE), dtype=np.uint32)
        took = population.durations(ids, Stream(0).at("ask"), Stream(0))
        kept *= float((took <= policy.deadline).mean())
    if isinstance(policy, OverSelected):
        return min(float(policy.sampled), min(policy.asks, clients * rate) * kept)
    return policy.expected(clients, rate) * kept


def rarely_below(expected: float) -> int:
    """Return a size that a batch of independent clients is hardly ever smaller than.

    min(E / 2, E - 6 sqrt(E)), at least 1, for a batch of E clients on average. By Chernoff's bound
    P(X <= E - x) <= exp(-x^2 / (2 E)) for a sum X of independent coins, a batch is smaller with
    probability at most e^-18 < 1.6e-8. Half is for what is not independent: nights, regions that
    fail together.

    Example:
        >>> rarely_below(200_000), rarely_below(100), rarely_below(30)
        (100000, 40, 1)
    """
    return max(1, math.floor(min(expected / 2.0, expected - 6.0 * math.sqrt(expected))))


def with_least_batch(scenario: Scenario) -> Scenario:
    """Return the scenario with the smallest batch that its target is to count on.

    Where `mechanism.target` is met with the help of a shuffler, noise is chosen for the smallest
    batch that may be released. If `shuffle.min_batch` is not given it is then `rarely_below` the
    batches expected, and not 1, which would make the shuffler useless.

    Example:
        >>> from raydp_sim.scenario import parse
        >>> data = {"kind": "bernoulli", "probability": 0.5}
        >>> parse({"name": "a", "population": {"clients": 1000, "data": data},
        ...        "participation": {"kind": "self", "probability": 0.4},
        ...        "mechanism": {"kind": "2rr", "target": {"epsilon": 1.0, "delta": 1e-6}}
        ...       }).shuffle.min_batch
        200
    """
    target, shuffle = scenario.mechanism.target, scenario.shuffle
    amplified = scenario.mechanism.guarantee in ("pure", "shuffled-only")
    if target is None or target.delta == 0.0 or not (scenario.trust_model.shuffled and amplified):
        return scenario
    spends, given = scenario.task.spends, "min_batch" in shuffle.model_fields_set
    if given or target.epsilon < LIMITS[0] * spends or scenario.population.check() is not None:
        return scenario  # what is wrong is refused where everything else is
    parts = planned_releases(scenario, filled(scenario).calibrated(spends))
    least = min(rarely_below(expected_batch(scenario, part.ask)) for part in parts)
    least = min(least, scenario.population.reachable())
    made = type(shuffle).model_validate({**shuffle.model_dump(), "min_batch": least})
    return scenario.model_copy(update={"shuffle": made})
