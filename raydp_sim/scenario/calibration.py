"""How a target for a whole run becomes the guarantee of one report or release."""

import contextlib
import math

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.base import LIMITS, Mechanism, Target
from raydp_sim.mechanisms.shuffled import largest_loss, with_loss
from raydp_sim.privacy.accountant import calibrate
from raydp_sim.privacy.composition.search import largest_within
from raydp_sim.privacy.curves.gaussian import gaussian_epsilon, gaussian_sigma
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import GaussianRelease, GaussianReport, LocalReport, Release
from raydp_sim.privacy.ledger.views import charged_to_all
from raydp_sim.scenario.accounting import (
    planned,
    planned_event,
    planned_releases,
    setting_with,
)
from raydp_sim.scenario.file import Scenario
from raydp_sim.tasks.charging import amplifies

# Of one release of a sample: beyond, its noise hides nothing whoever is in it.
_LARGEST = 200.0


def calibrated(scenario: Scenario, mechanism: Mechanism) -> Mechanism:
    """Turn a central target of the whole run into a local guarantee that meets it.

    A client in every release, each with the smallest batch that is ever released, stays within the
    target by the best bound on the planned releases, as `account calibrate` finds it; the run
    itself may end below. No larger local guarantee was found to do so, and never is it less than
    an even share of the target. Normal noise is not shared out evenly: releases with it are one
    release of less noise.
    """
    own = scenario.task.calibrated(setting_with(scenario, mechanism))
    if own is not None:
        return own
    target, spends = mechanism.target, scenario.task.spends
    if target is not None and target.epsilon < LIMITS[0] * spends:
        remedy = f"shared between {spends} releases it is below {LIMITS[0]:g}; raise it"
        raise bad_field("mechanism.target.epsilon", target.epsilon, remedy)
    shared = mechanism.calibrated(spends)
    # A pure target leaves no room for amplification, which always has a delta. A task whose clients
    # serve once chooses the loss of each batch itself, and the ledger refuses a dearer one.
    if target is None or target.delta == 0.0 or scenario.task.once:
        return shared
    if not amplifies(shared, scenario.trust_model):
        normal = isinstance(shared.release(), GaussianRelease | GaussianReport)
        return _with_normal_noise(scenario, mechanism, target, shared) if normal else shared
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
    Roth & Su 2022, Corollary 3.3). Where batches are secret samples they cost less, and the least
    noise is searched for. What a release by itself costs is stated at an even share of delta. Never
    more noise than with an even share of epsilon.
    """
    parts = planned_releases(scenario, shared)
    if len(parts) > 1 or mechanism.delta_field is None:
        return shared
    delta = shared.need_delta()

    def made(each: float) -> Mechanism:
        known = {mechanism.epsilon_field: each, mechanism.delta_field: delta, "target": None}
        return type(mechanism).model_validate({**mechanism.model_dump(), **known})

    if charged_to_all(planned_event(scenario, shared, parts[0])):

        def spent(each: float) -> float:
            try:
                return planned(scenario, made(each), target.delta)
            except NotApplicable:
                return math.inf

        share = shared.need_epsilon()
        found = largest_within(spent, target.epsilon, share, max(share, _LARGEST))
        return made(found) if found else shared
    whole = gaussian_sigma(target.epsilon, target.delta) * math.sqrt(parts[0].per_client)
    # Runs are accounted for with a little room, and budgets by divergences, which see more.
    for slack in (1e-9, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1):
        each = gaussian_epsilon(delta, whole * (1.0 + slack))
        if each <= shared.need_epsilon():
            break
        least = made(each)
        if planned(scenario, least, target.delta) <= target.epsilon:
            return least
    return shared
