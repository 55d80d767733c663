"""Estimates of bandits on the pipeline, batch by batch, beside the exact simulation."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from raydp_sim.metrics import streams
from raydp_sim.random import Stream
from raydp_sim.run import prepare
from raydp_sim.scenario import Scenario, parse
from raydp_sim.tasks.bandits.batch import learn, plan_batch
from raydp_sim.tasks.bandits.checks import Floats
from raydp_sim.tasks.bandits.instance import Instance
from raydp_sim.tasks.bandits.problem import Model, Problem
from raydp_sim.tasks.bandits.simulate import noise_of_sums, sums_of_rewards

MECHANISMS: dict[Model, dict[str, Any]] = {
    "central": {"kind": "central-laplace", "epsilon": 3.0},
    "local": {"kind": "laplace", "epsilon_local": 3.0},
    "shuffle": {"kind": "laplace", "target": {"epsilon": 3.0, "delta": 1e-6}},
}
ANGLES = np.array([0.1, 0.9, 1.7, 2.5, 3.3, 4.1, 5.4])
SEVEN = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
THETA = 0.95 * np.array([math.cos(0.4), math.sin(0.4)])


def bandit(model: Model, clients: int, **sections: Any) -> Scenario:
    """Return a scenario of seven actions on the circle."""
    task = {"kind": "bandit", "actions": SEVEN.tolist(), "radius": "paper", "least": 1.0}
    document = {
        "name": "played",
        "seed": 17,
        "trust": model,
        "population": {
            "clients": clients,
            "data": {"kind": "linear-rewards", "theta": THETA.tolist()},
            **sections.pop("population", {}),
        },
        "task": {**task, **sections.pop("task", {})},
        "mechanism": {"radius": 1.0, **MECHANISMS[model]},
        "placement": {"backend": "inline", "checkpoint_seconds": 1e6},
        **sections,
    }
    return parse(document)


def played(folder: Path, model: Model, clients: int, epsilon: float, times: int) -> list[Any]:
    """Return the batches of a run that is repeated so often, its clients' luck drawn anew."""
    base = bandit(model, clients, repeat=times).document()
    mechanism = base["mechanism"]
    if model == "shuffle":
        mechanism["target"]["epsilon"] = epsilon
    else:
        mechanism["epsilon" if model == "central" else "epsilon_local"] = epsilon
    for _ in prepare(parse(base), out=folder / "run").releases():
        pass
    return streams.read(folder / "run" / "metrics", "bandit").to_pylist()


def best_estimates(problem: Problem, number: int, runs: int) -> Floats:
    """Draw the largest estimate after a batch in which all actions are active."""
    active, generator = np.ones(len(SEVEN), dtype=bool), Stream(19).at(number).generator()
    batch = plan_batch(problem, active, number)
    sums = sums_of_rewards(problem, Instance(SEVEN, THETA), batch, runs, generator)
    sums += noise_of_sums(problem, batch, runs, generator)
    found = learn(problem, active, batch, sums)
    assert found is not None
    return np.asarray((found.theta @ SEVEN.T).max(axis=1))


def normal_scores(rows: list[dict[str, Any]], problem: Problem) -> Floats:
    """Return the estimates of five batches as normal variables, if they have the exact law."""
    scores = []
    for number in range(1, 6):
        at = [row for row in rows if row["batch"] == number]
        assert {row["active_before"] for row in at} == {7}
        found = np.array([row["estimate"] for row in at])
        drawn = np.sort(best_estimates(problem, number, 100_000))
        below = np.searchsorted(drawn, found) + 0.5
        scores.append(stats.norm.ppf(below / (len(drawn) + 1.0)))
    return np.concatenate(scores)


def least_p(scores: Floats) -> float:
    """Return the least p-value of three tests: of the mean, the variance and the whole law."""
    count = len(scores)
    mean = 2.0 * stats.norm.sf(abs(scores.sum()) / math.sqrt(count))
    squares = stats.chi2(count).cdf((scores**2).sum())
    whole = stats.kstest(scores, stats.norm.cdf).pvalue
    return float(min(mean, 2.0 * min(squares, 1.0 - squares), whole))


@pytest.mark.parametrize("model", ["central", "local", "shuffle"])
def test_estimates_have_the_law_of_the_exact_simulation(model: Model, tmp_path: Path) -> None:
    """60 runs of five batches of other clients each; three tests at 1e-7, in all models 9e-7."""
    rows = played(tmp_path, model, 600, 1.0, 60)
    problem = Problem(SEVEN, 600, model, 1.0, radius="paper")
    scores = normal_scores(rows, problem)
    assert len(scores) == 300
    assert least_p(scores) > 1e-7
    # Not vacuous: twice the noise, or half of it, would be noticed.
    for other in (0.5, 2.0):
        assert least_p(normal_scores(rows, replace(problem, epsilon=other))) < 1e-7
