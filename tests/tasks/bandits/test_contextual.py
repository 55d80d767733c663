"""The reduction of contextual bandits: identities, exact enumeration, both regrets."""

import math

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.random import Stream
from raydp_sim.tasks.bandits.checks import Floats
from raydp_sim.tasks.bandits.contextual import (
    Contexts,
    ContextualInstance,
    plane_policies,
    sampled_policies,
)
from raydp_sim.tasks.bandits.contextual_runs import play_contextual
from raydp_sim.tasks.bandits.problem import Model, Problem

THREE = Contexts(
    np.array(
        [
            [[-0.518, -0.855], [-0.248, 0.42], [0.995, 0.096], [-0.553, -0.785]],
            [[0.416, 0.909], [0.216, -0.976], [-0.514, 0.858], [0.116, -0.993]],
            [[-0.072, -0.997], [-0.629, -0.488], [-0.713, 0.553], [-0.063, -0.589]],
        ]
    ),
    np.array([0.5, 0.3, 0.2]),
)
THETA = 0.9 * np.array([math.cos(1.1), math.sin(1.1)])


def drawn(contexts: int, actions: int, d: int, seed: int) -> Contexts:
    normal = Stream(seed).generator().standard_normal((contexts, actions, d))
    unit = normal / np.linalg.norm(normal, axis=2, keepdims=True)
    weights = Stream(seed).at("weights").generator().random(contexts)
    return Contexts(unit, weights / weights.sum())


def directions(d: int, seed: int, count: int = 50) -> Floats:
    return Stream(seed).at("directions").generator().standard_normal((count, d))


def test_the_instance_of_the_specification() -> None:
    table = plane_policies(THREE)
    assert len(table.actions) == 12
    assert (table.actions @ THETA).max() == pytest.approx(0.5417710144581, abs=6e-14)
    assert THREE.optimum(THETA) == pytest.approx(0.5417710144581, abs=6e-14)


@pytest.mark.parametrize("seed", range(5))
def test_arcs_find_every_policy(seed: int) -> None:
    """A fine grid of directions finds nothing that the arcs did not."""
    contexts = drawn(4, 5, 2, seed)
    table = plane_policies(contexts)
    fine = sampled_policies(contexts, 20_000, Stream(seed))
    apart = np.abs(fine.actions[:, None] - table.actions[None]).max(axis=2).min(axis=1)
    assert apart.max() < 1e-9
    assert len(fine.actions) <= len(table.actions)


@pytest.mark.parametrize("d", [2, 3, 6])
def test_following_theta_is_best_for_theta(d: int) -> None:
    """sup_theta <g(theta), theta*> = <g(theta*), theta*> = E max_a <phi, theta*>."""
    contexts = drawn(7, 4, d, d)
    others = contexts.mean_feature(directions(d, 1, 500))
    for theta in directions(d, 2):
        best = float(contexts.mean_feature(theta) @ theta)
        assert best == pytest.approx(contexts.optimum(theta))
        assert (others @ theta).max() <= best + 1e-12


def test_a_policy_earns_its_mean_feature() -> None:
    """The mean over contexts of what is earned is <g(theta), theta*>, for every policy."""
    table = plane_policies(THREE)
    instance = ContextualInstance(THREE, table, THETA)
    assert instance.means @ THREE.probabilities == pytest.approx(table.actions @ THETA)
    gaps = THREE.optimum(THETA) - table.actions @ THETA
    assert instance.linear_gaps == pytest.approx(gaps)
    assert (instance.gaps >= -1e-12).all()


def test_equal_actions_are_told_apart_by_their_index() -> None:
    same = Contexts(np.array([[[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]]), np.array([1.0]))
    assert same.greedy(np.array([1.0, 0.0])).tolist() == [1]
    assert same.greedy(np.array([0.0, 0.0])).tolist() == [0]
    one = Contexts(np.array([[[0.3, 0.4]]]), np.array([1.0]))
    assert plane_policies(one).actions.tolist() == [[0.3, 0.4]]


def test_candidates_of_the_user_are_in_the_table() -> None:
    contexts = drawn(50, 4, 5, 9)
    theta = directions(5, 3, 1)[0]
    table = sampled_policies(contexts, 10, Stream(1), candidates=theta)
    assert (table.actions @ theta).max() == pytest.approx(contexts.optimum(theta))
    assert contexts.mean_feature(table.directions) == pytest.approx(table.actions)


@pytest.mark.parametrize("model", ["none", "central", "local", "shuffle"])
def test_both_regrets_are_reported_and_near_each_other(model: Model) -> None:
    """|R_T - R_T^L| is of the order of sqrt(T): here at most 1.5 of it, over ten deviations."""
    table = plane_policies(THREE)
    instance = ContextualInstance(THREE, table, THETA)
    for horizon in (10**4, 10**6):
        epsilon = math.inf if model == "none" else 2.0
        problem = Problem(table.actions, horizon, model, epsilon)
        for seed in range(5):
            place = Stream(seed).at(model, horizon)
            run = play_contextual(problem, instance, place.generator())
            assert abs(run.regret - run.linear_regret) < 1.5 * math.sqrt(horizon)
            assert run.linear_regret <= run.certificate
            assert run.state.used <= horizon


def test_regret_is_sublinear() -> None:
    table = plane_policies(THREE)
    instance = ContextualInstance(THREE, table, THETA)
    share = {}
    for horizon in (10**4, 10**6):
        problem = Problem(table.actions, horizon, "shuffle", 1.0, radius="paper")
        runs = [play_contextual(problem, instance, Stream(s).generator()) for s in range(10)]
        share[horizon] = float(np.mean([run.regret for run in runs])) / horizon
    assert share[10**6] < share[10**4] / 2.0


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="features has shape"):
        Contexts(np.eye(2), np.array([1.0]))
    with pytest.raises(InputError, match="features are not all finite"):
        Contexts(np.full((1, 2, 2), math.nan), np.array([1.0]))
    for chances in ([0.5, 0.3, 0.1], [0.5, 0.5], [1.2, -0.1, -0.1], [math.nan, 0.5, 0.5]):
        with pytest.raises(InputError, match="probabilities is"):
            Contexts(THREE.features, np.array(chances))
    with pytest.raises(InputError, match="take `sampled_policies`"):
        plane_policies(drawn(2, 2, 3, 1))
    with pytest.raises(InputError, match="count is 0"):
        sampled_policies(THREE, 0, Stream(1))
    with pytest.raises(InputError, match="candidates have shape"):
        sampled_policies(THREE, 1, Stream(1), candidates=[[1.0, 0.0, 0.0]])
    table = plane_policies(THREE)
    with pytest.raises(InputError, match="theta has length 2"):
        ContextualInstance(THREE, table, np.array([2.0, 0.0]))
    instance = ContextualInstance(THREE, table, THETA)
    with pytest.raises(InputError, match="not the table's"):
        play_contextual(Problem(np.eye(2), 100, "none"), instance, Stream(1).generator())
