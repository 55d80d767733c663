"""Curves of risk: shuffled gradients played on private and public records, epoch by epoch.

The one quantity that needs records. Step sizes are chosen by the mean last loss on the private
data, as the text does; that choice is not accounted for.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.datasets import DATASETS
from raydp_sim.datasets.public_private import PublicPrivate
from raydp_sim.errors import InputError, bad_field
from raydp_sim.figures import errors
from raydp_sim.figures.errors import Value
from raydp_sim.figures.model import Curve, Panel, Problem
from raydp_sim.privacy.bound import Result
from raydp_sim.random import Stream
from raydp_sim.tasks.shuffled_gradients import objective, trials
from raydp_sim.tasks.shuffled_gradients.accounting import calibrated
from raydp_sim.tasks.shuffled_gradients.losses import check_records, smoothness
from raydp_sim.tasks.shuffled_gradients.plan import epochs

_SEED = 442
_WHOLE = ("clients", "rounds", "epochs")
_KNOWN = ("epsilon", "delta", *_WHOLE)


class _Found(NamedTuple):
    """Mean and standard deviation after every epoch, and what was chosen."""

    mean: NDArray[np.float64]
    spread: NDArray[np.float64]
    note: str


def check(curves: Mapping[str, Curve], panel: Panel, name: str, x: float, field: str) -> None:
    """Refuse a curve that is unknown or cannot be played.

    Raises:
        InputError: names the field, its value and the remedy.
    """
    known = errors.setting(panel, x, _KNOWN, _WHOLE)
    curve = errors.find(curves, name, field)
    if curve.gradients is None or curve.mechanism is not None or curve.formula is not None:
        raise bad_field(field, name, f"figure.curves.{name} needs gradients, and nothing else")
    if panel.problem is None:
        raise InputError("problem is missing; say what is minimised")
    for each in _KNOWN:
        if each not in known:
            raise InputError(f"fixed.{each} is missing; add it")
    if not 1 <= known["epochs"] <= known["rounds"]:
        place = "values" if panel.sweep == "epochs" else "fixed.epochs"
        raise bad_field(place, known["epochs"], "it must lie in 1 to fixed.rounds")


def value(curves: Mapping[str, Curve], panel: Panel, name: str, x: float) -> Value:
    """Return the mean over runs after so many epochs, at the best step size, and their spread."""
    known, curve = errors.setting(panel, x, _KNOWN, _WHOLE), curves[name]
    assert panel.problem is not None and curve.gradients is not None  # `check` has seen to it
    parameters = json.dumps({one: known[one] for one in _KNOWN if one != "epochs"})
    algorithm, runs = curve.gradients, curve.repetitions
    found = _played(algorithm, panel.problem.model_dump_json(), parameters, runs)
    at = int(known["epochs"])
    result = Result(float(found.mean[at]), None, found.note)
    return Value(result, "simulated", float(found.spread[at]))


@lru_cache(maxsize=1000)
def _played(algorithm: str, written: str, parameters: str, runs: int) -> _Found:
    problem, known = Problem.model_validate_json(written), json.loads(parameters)
    data = DATASETS.parse(problem.data)
    if not isinstance(data, PublicPrivate):
        raise bad_field("problem.data.kind", data.kind, "it has no public records; use another")
    pair, n = data.pair(), int(known["clients"])
    for part, rows in (("private", pair.private), ("public", pair.public)):
        if len(rows) < n:
            raise bad_field("fixed.clients", n, f"there are {len(rows)} {part} records; lower it")
    private, public = (_over(problem, rows[:n]) for rows in (pair.private, pair.public))
    plan = epochs(algorithm, int(known["rounds"]), n, problem.share)  # type: ignore[arg-type]
    clip = np.inf if algorithm == "public-only" else problem.gradient_clip
    goal = (float(known["epsilon"]), float(known["delta"]))
    secret = problem.accountant == "secret-order"
    sigma = 0.0
    if any(epoch.noisy for epoch in plan):
        once = problem.order == "so"
        sigma = calibrated(*goal, problem.gradient_clip, plan, n, secret, once=once)
    rough = max(float(smoothness(problem.loss, part.features).max()) for part in (private, public))
    grid = np.array([step for step in problem.steps if step <= 2.0 / rough])
    if not len(grid):
        raise bad_field("problem.steps", list(problem.steps), f"none is up to 2/L* = {2 / rough:g}")
    place = Stream(_SEED).at(algorithm, problem.order)
    still = algorithm == "public-only" or (problem.order == "ig" and sigma == 0.0)

    def played(steps: NDArray[np.float64], count: int, part: str) -> trials.Course:
        where = place.at(part)
        start = trials.start_of(problem.loss, count, private.features.shape[1], where)
        how = (plan, problem.order, steps, clip, sigma, start, count, where)
        return trials.play(private, public, *how)

    tuning = 1 if still and problem.loss == "mean" else problem.tuning
    chosen = grid[trials.best(played(grid, tuning, "tune"))]
    course = played(np.array([chosen]), runs, "play")
    values = course.values[:, 0]
    if problem.excess:
        values = values - private.least()[1]
    note = f"step size {chosen:g}, sigma {sigma:.4f}, {runs} runs; public records: {pair.shift}"
    return _Found(values.mean(axis=1), values.std(axis=1, ddof=1), note)


def _over(problem: Problem, rows: NDArray[np.float64]) -> objective.Problem:
    features, targets = (rows, None) if problem.loss == "mean" else (rows[:, :-1], rows[:, -1])
    return objective.Problem(
        problem.loss,
        problem.regulariser,
        problem.weight,
        *check_records(problem.loss, features, targets),
    )
