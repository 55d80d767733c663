"""The least value of objectives against closed forms, and many runs at once against one."""

import numpy as np
import pytest

from raydp_sim.random import Stream
from raydp_sim.tasks.shuffled_gradients import losses, regularisers, trials
from raydp_sim.tasks.shuffled_gradients.epoch import steps
from raydp_sim.tasks.shuffled_gradients.objective import Problem
from raydp_sim.tasks.shuffled_gradients.plan import epochs


def drawn(loss, regulariser, weight, n=30, d=4, seed=1):
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, 2, n).astype(float) if loss != "mean" else np.zeros(n)
    return Problem(loss, regulariser, weight, rng.normal(size=(n, d)), targets)


def test_the_least_value_of_ridge_is_that_of_the_normal_equations() -> None:
    problem = drawn("ridge", "l2", 0.1)
    a, y = problem.features, problem.targets
    best = np.linalg.solve(2.0 * a.T @ a / len(a) + 0.1 * np.eye(4), 2.0 * a.T @ y / len(a))
    found, value = problem.least()
    np.testing.assert_allclose(found, best, atol=1e-9)
    assert value == pytest.approx(problem.value(best), abs=1e-13)


@pytest.mark.parametrize("weight", [0.02, 0.1, 5.0])
def test_the_least_value_of_lasso_satisfies_its_conditions(weight) -> None:
    problem = drawn("logistic", "l1", weight)
    found, _ = problem.least()
    slope = problem.gradient(found)
    off = np.where(found == 0.0, np.abs(slope) - weight, np.abs(slope + weight * np.sign(found)))
    assert off.max() < 1e-7


def test_the_least_value_in_a_ball_is_the_nearest_point() -> None:
    problem = drawn("mean", "ball", 0.05)
    mean = problem.features.mean(axis=0)
    np.testing.assert_allclose(problem.least()[0], 0.05 * mean / np.linalg.norm(mean), atol=1e-12)


@pytest.mark.parametrize("loss", ["mean", "ridge", "logistic"])
@pytest.mark.parametrize("algorithm", ["plain", "interleaved", "priv-pub", "public-only"])
def test_many_runs_at_once_are_each_as_one_by_itself(loss, algorithm) -> None:
    private, public = drawn(loss, "l2", 0.3), drawn(loss, "l2", 0.3, seed=2)
    plan = [epoch._replace(noisy=False) for epoch in epochs(algorithm, 3, 30, 0.5)]
    grid, start = np.array([0.02, 0.05]), np.full((2, 4), 0.3)
    course = trials.play(private, public, tuple(plan), "rr", grid, 0.5, 0.0, start, 2, Stream(7))
    for e, eta in enumerate(grid):
        for run in range(2):
            x = start[run]
            for k, epoch in enumerate(plan):
                order = trials.orders("rr", 30, k, Stream(7).at("order", run))
                first = (private.features, private.targets, order[: epoch.private])
                x = steps(loss, x, *first, eta, 0.5, None)
                then = (public.features, public.targets, np.arange(30 - epoch.private))
                x = steps(loss, x, *then, eta, 0.5, None)
                x = regularisers.prox("l2", 0.3, x, eta, 30)
            np.testing.assert_allclose(course.last[e, run], x, rtol=1e-10)
            assert course.values[-1, e, run] == pytest.approx(private.value(x))


def test_noise_is_that_of_every_step() -> None:
    """Nothing but noise: 4 steps of variance (eta sigma)^2 each; 4,000 runs, five deviations."""
    flat = Problem("ridge", "l2", 1e-12, np.zeros((4, 1)), np.zeros(4))
    plan, start = epochs("private", 1, 4), np.zeros((4000, 1))
    course = trials.play(flat, None, plan, "rr", np.array([0.5]), 1.0, 3.0, start, 4000, Stream(9))
    variance = float(course.last.var())
    assert abs(variance / (4 * 1.5**2) - 1.0) < 5.0 * np.sqrt(2.0 / 4000)


def test_the_best_step_size_is_never_one_that_ran_away() -> None:
    values = np.array([[[1.0], [1.0], [1.0]], [[np.nan], [0.5], [np.inf]]])
    assert trials.best(trials.Course(values, np.zeros((3, 1, 1)))) == 1


def test_slopes_are_those_of_gradients() -> None:
    for loss in ("ridge", "logistic"):
        problem = drawn(loss, "l2", 0.1)
        x = np.full(4, 0.2)
        each = [
            losses.gradient(loss, x, row, float(target))  # type: ignore[arg-type]
            for row, target in zip(problem.features, problem.targets, strict=True)
        ]
        np.testing.assert_allclose(problem.gradient(x), np.mean(each, axis=0), atol=1e-13)
