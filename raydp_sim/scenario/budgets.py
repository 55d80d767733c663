"""The filter that keeps a scenario's clients within their budgets."""

import math

from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.privacy.events import LocalReport
from raydp_sim.privacy.ledger.filter import Filter
from raydp_sim.privacy.ledger.planning import planned_filter
from raydp_sim.scenario.accounting import (
    budgeted,
    least_batch,
    planned_releases,
    release_event,
)
from raydp_sim.scenario.batches import expected_batch
from raydp_sim.scenario.file import Scenario


def filter_of(scenario: Scenario, mechanism: Mechanism) -> Filter | None:
    """Return the filter of `privacy.budget`, which follows from the scenario alone; None without.

    Args:
        scenario: the whole of it.
        mechanism: the scenario's, calibrated.
    """
    budget = scenario.privacy.budget
    if budget is None:
        return None
    part = planned_releases(scenario, mechanism)[0]
    worst = budgeted(scenario, mechanism)[1]
    least = least_batch(scenario, part.ask)
    size = max(least, math.floor(expected_batch(scenario, part.ask)))
    usual = release_event(scenario, mechanism, size, part.ask)
    if worst is None or usual is None or isinstance(usual, LocalReport):
        return Filter(budget.epsilon, budget.delta)
    return planned_filter(budget.epsilon, budget.delta, worst, usual, part.per_client)
