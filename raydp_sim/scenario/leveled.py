"""Whether the levels of a scenario fit its mechanism, its task and its trust."""

import math

from raydp_sim.errors import InputError, bad_field
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.leveled import Leveled
from raydp_sim.scenario.bound import bound_mechanism
from raydp_sim.scenario.file import Scenario
from raydp_sim.tasks import TASKS


def check_levels(scenario: Scenario) -> None:
    """Refuse levels that mechanism, task or trust cannot have, and readers without levels.

    Raises:
        InputError: names the field, its value and the remedy.
    """
    privacy, task = scenario.privacy, scenario.task
    if privacy.levels is None:
        if task.has_levels:
            raise InputError(
                f"privacy.levels is missing; task '{task.kind}' has one analyst for each: give "
                "epsilons that fall, the public one last"
            )
        return
    shown = list(privacy.levels)
    if not task.has_levels:
        kinds = ", ".join(kind for kind, cls in TASKS.kinds.items() if cls.has_levels)
        remedy = f"task '{task.kind}' has no analysts with keys; use task.kind: {kinds}"
        raise bad_field("privacy.levels", shown, remedy)
    if scenario.trust_model.noise_at == "aggregator":
        remedy = (
            "analysts with keys trust nobody or a shuffler (privacy.levels); use local or shuffle"
        )
        raise bad_field("trust", scenario.trust, remedy)
    if privacy.key_path == "shuffler" and not scenario.trust_model.shuffled:
        remedy = f"trust is {scenario.trust}, so there is none; say direct, or trust: shuffle"
        raise bad_field("privacy.key_path", privacy.key_path, remedy)
    mechanism = bound_mechanism(scenario)
    if not isinstance(mechanism, Leveled):
        kinds = ", ".join(k for k, cls in MECHANISMS.kinds.items() if issubclass(cls, Leveled))
        remedy = f"it draws no keys for privacy.levels; use {kinds}"
        raise bad_field("mechanism.kind", scenario.mechanism.kind, remedy)
    if scenario.mechanism.target is not None:
        remedy = "privacy.levels states the guarantees; leave it out"
        raise bad_field("mechanism.target.epsilon", scenario.mechanism.target.epsilon, remedy)
    if not _same(mechanism.levels, privacy.levels):
        own = ", ".join(f"{level:g}" for level in mechanism.levels)
        remedy = f"mechanism '{mechanism.kind}' reads at {own}; give one of the two, or the same"
        raise bad_field("privacy.levels", shown, remedy)
    for each in privacy.promotions:
        if each.release >= task.rounds:
            remedy = f"releases are 0 to {task.rounds - 1} (task.rounds); name one of them"
            raise bad_field("privacy.promotions.release", each.release, remedy)


def _same(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(a == b or math.isclose(a, b) for a, b in pairs)
