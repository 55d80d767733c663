"""Curves of regret: bandits played on drawn instances, the same ones for every curve."""

import json
import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from raydp_sim.errors import InputError, bad_field
from raydp_sim.figures import errors
from raydp_sim.figures.errors import Value
from raydp_sim.figures.model import Bandit, Curve, Panel
from raydp_sim.privacy.bound import Result
from raydp_sim.random import Stream
from raydp_sim.tasks.bandits.instance import random_instance
from raydp_sim.tasks.bandits.problem import Problem
from raydp_sim.tasks.bandits.rewards import RewardRange
from raydp_sim.tasks.bandits.simulate import simulate

_SEED = 62
_WHOLE = ("rounds", "actions", "dimension")
_KNOWN = ("epsilon", "delta", *_WHOLE)
# Far beyond the text's; more would fill the memory.
_MOST = {"rounds": 10**10, "actions": 10**5, "dimension": 100}


def check(curves: Mapping[str, Curve], panel: Panel, name: str, x: float, field: str) -> None:
    """Refuse a curve that is unknown or cannot be played at x.

    Raises:
        InputError: names the field, its value and the remedy.
    """
    known = errors.setting(panel, x, _KNOWN, _WHOLE)
    curve = errors.find(curves, name, field)
    others = [
        word for word in ("mechanism", "formula", "least") if getattr(curve, word) is not None
    ]
    if curve.bandit is None or others:
        raise bad_field(field, name, f"figure.curves.{name} needs a bandit, and nothing else")
    for each in _needs(curve.bandit):
        if each not in known:
            raise InputError(f"fixed.{each} is missing; curve {name!r} needs it: add it")
    for each, most in _MOST.items():
        least = 3 if each == "rounds" else 1
        if not least <= known[each] <= most:
            place = "values" if each == panel.sweep else f"fixed.{each}"
            raise bad_field(place, known[each], f"{each} must lie in {least} to {most:g}")


def _needs(bandit: Bandit) -> tuple[str, ...]:
    private = () if bandit.model == "none" else ("epsilon",)
    return (*_WHOLE, *private, *(("delta",) if bandit.model == "shuffle" else ()))


def value(curves: Mapping[str, Curve], panel: Panel, name: str, x: float) -> Value:
    """Return the mean regret over instances, one run each, and its standard error."""
    known, curve = errors.setting(panel, x, _KNOWN, _WHOLE), curves[name]
    assert curve.bandit is not None  # `check` has seen to it
    # Only what matters, so that a curve that does not depend on x is played once.
    used = {each: known[each] for each in _needs(curve.bandit)}
    written = json.dumps(used, sort_keys=True)
    return _value(curve.bandit.model_dump_json(), written, curve.repetitions)


@lru_cache(maxsize=10_000)
def _value(written: str, parameters: str, instances: int) -> Value:
    bandit, known = Bandit.model_validate_json(written), json.loads(parameters)
    regret, epsilon0 = np.empty(instances), 0.0
    for r in range(instances):
        place = Stream(_SEED).at("bandit", known["actions"], known["dimension"], r)
        instance = random_instance(known["actions"], known["dimension"], place.at("instance"))
        problem = Problem(
            instance.actions,
            known["rounds"],
            bandit.model,
            known.get("epsilon", math.inf),
            known.get("delta", 1e-6),
            RewardRange(sensitivity=bandit.sensitivity),
            bandit.radius,
            bandit.design,
            bandit.amplification,
        )
        played = simulate(problem, instance, 1, place.at("play").generator())
        regret[r] = played.regret[0]
        epsilon0 = max(epsilon0, float(np.nanmax(played.epsilon0)))
    note = f"{instances} instances"
    if bandit.model == "shuffle":
        note += f", epsilon0 up to {RewardRange(sensitivity=bandit.sensitivity).loss(epsilon0):.4g}"
    spread = float(regret.std(ddof=1)) / math.sqrt(instances)
    return Value(Result(float(regret.mean()), None, note), "simulated", spread)
