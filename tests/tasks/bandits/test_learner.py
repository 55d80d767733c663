"""The state machine: planned batches, drop-outs, void batches, truncation, refusals."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from raydp_sim.errors import InputError
from raydp_sim.random import Stream
from raydp_sim.tasks.bandits.batch import Batch, learn
from raydp_sim.tasks.bandits.checks import Floats, Ints
from raydp_sim.tasks.bandits.instance import Instance, random_instance
from raydp_sim.tasks.bandits.learner import (
    State,
    certificate,
    committed,
    next_batch,
    start,
    step,
)
from raydp_sim.tasks.bandits.problem import Model, Problem
from raydp_sim.tasks.bandits.radii import confidence_radius
from raydp_sim.tasks.bandits.schedule import growth, most_batches
from raydp_sim.tasks.bandits.simulate import noise_of_sums, simulate, sums_of_rewards

MODELS: tuple[Model, ...] = ("none", "central", "local", "shuffle")


def problem_of(instance: Instance, model: Model, horizon: int, epsilon: float = 1.0) -> Problem:
    loss = math.inf if model == "none" else epsilon
    return Problem(instance.actions, horizon, model, loss)


def played(problem: Problem, instance: Instance, generator: np.random.Generator) -> State:
    state = start(problem)
    while (batch := next_batch(problem, state)) is not None:
        sums = sums_of_rewards(problem, instance, batch, 1, generator)
        sums += noise_of_sums(problem, batch, 1, generator)
        state = step(problem, state, batch, sums[0])
    return state


@pytest.mark.parametrize("model", MODELS)
def test_the_simulation_is_this_state_machine(model: Model) -> None:
    for seed in range(5):
        instance = random_instance(10, 2, Stream(seed))
        problem = replace(problem_of(instance, model, 30_000, 5.0), radius="paper")
        state = played(problem, instance, Stream(seed).at("play").generator())
        runs = simulate(problem, instance, 1, Stream(seed).at("play").generator())
        log = state.arrays()["log"]
        count = len(log)
        assert committed(problem, state) == runs.committed[0]
        assert certificate(problem, state) == pytest.approx(runs.certificate[0])
        for column, found in ((1, runs.active), (3, runs.clients), (5, runs.radius)):
            assert log[:, column] == pytest.approx(found[0, :count])
        assert state.used == runs.clients.sum() <= problem.horizon
        gaps = instance.gaps
        assert runs.regret[0] >= (problem.horizon - state.used) * gaps[committed(problem, state)]


def test_a_state_comes_back_from_its_arrays() -> None:
    instance = random_instance(7, 3, Stream(1))
    problem = problem_of(instance, "central", 10_000)
    state = played(problem, instance, Stream(2).generator())
    again = State.of(state.arrays())
    assert (again.number, again.used, again.log) == (state.number, state.used, state.log)
    assert (again.active == state.active).all() and (again.theta == state.theta).all()
    assert State.of(start(problem).arrays()).log == ()


def test_a_batch_that_does_not_fit_is_not_begun() -> None:
    """At T = 162,755 the eleven batches add up to more than T; ten are played."""
    problem = Problem(np.eye(2), 162_755, "none")
    state = start(problem)
    while (batch := next_batch(problem, state)) is not None:
        state = step(problem, state, batch, np.zeros(2))
    assert most_batches(162_755) == 11
    assert [entry.number for entry in state.log] == list(range(1, 11))
    assert state.used <= problem.horizon
    assert int(state.active.sum()) == 2, "nothing was learned, so nothing is eliminated"


@pytest.mark.parametrize("horizon", [3, 4, 5, 8, 20])
@pytest.mark.parametrize("actions", [1, 2, 40])
def test_tiny_horizons(horizon: int, actions: int) -> None:
    instance = random_instance(actions, 2, Stream(actions))
    for design in ("core-set", "uniform"):
        problem = Problem(instance.actions, horizon, "none", design=design)  # type: ignore[arg-type]
        runs = simulate(problem, instance, 3, Stream(1).generator())
        assert (runs.clients.sum(axis=1) <= horizon).all()
        assert (runs.regret <= runs.certificate).all()


def test_without_a_batch_the_first_action_is_played() -> None:
    instance = random_instance(40, 2, Stream(1))
    problem = Problem(instance.actions, 5, "none", design="uniform")
    assert next_batch(problem, start(problem)) is None, "40 actions do not fit into 5 rounds"
    assert committed(problem, start(problem)) == 0
    assert certificate(problem, start(problem)) == 10.0
    assert simulate(problem, instance, 1, Stream(1).generator()).committed[0] == 0


def test_one_action_needs_no_batch() -> None:
    problem = Problem(np.array([[1.0, 0.0]]), 100, "local", 1.0)
    assert next_batch(problem, start(problem)) is None


def test_elimination_goes_by_the_active_actions() -> None:
    problem = Problem(np.array([[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]]), 10**6, "none")
    state = start(problem)
    state = replace(state, number=12, active=np.array([False, True, True]))
    batch = next_batch(problem, state)
    assert batch is not None and set(batch.actions) <= {1, 2}
    # The estimate is largest for action 0, which is gone: that must not empty the set.
    sums = problem.actions[batch.actions] @ np.array([1.0, 0.0]) * batch.slots
    after = step(problem, state, batch, sums)
    assert after.active.tolist() == [False, True, False]
    assert committed(problem, after) == 1


def dropped(batch: Batch, generator: np.random.Generator, share: float) -> Ints:
    return generator.binomial(batch.slots, 1.0 - share).astype(np.int64)


def came_sums(
    problem: Problem, instance: Instance, batch: Batch, counts: Ints, generator: np.random.Generator
) -> Floats:
    fewer = replace(batch, slots=counts)
    sums = sums_of_rewards(problem, instance, fewer, 1, generator)[0]
    return sums + noise_of_sums(problem, fewer, 1, generator)[0]


def test_the_radius_has_the_leverage_of_who_came() -> None:
    problem = Problem(np.eye(2), 10**4, "central", 1.0)
    state = replace(start(problem), number=6)
    batch = next_batch(problem, state)
    assert batch is not None
    counts = np.array([batch.slots[0], 7])
    found = learn(problem, state.active, batch, np.zeros(2), counts)
    assert found is not None
    # V = diag(n_0, 7), so the largest leverage is 1/7.
    by_hand = confidence_radius(
        "corrected", "sums", 1.0 / 7.0, 2, 10**4, 2, int(counts.sum()), batch.scale
    )
    assert found.radius == pytest.approx(by_hand)
    planned = learn(problem, state.active, batch, np.zeros(2))
    assert planned is not None
    assert planned.radius < found.radius
    q6 = growth(10**4) ** 6
    assert batch.leverage == pytest.approx(4.0 / q6)


def test_noise_of_an_action_without_rewards_is_not_used() -> None:
    actions = np.array([[1.0, 0.0], [0.6, 0.0], [0.0, 1.0]])
    problem = Problem(actions, 10**4, "central", 1.0, design="uniform")
    state = replace(start(problem), number=5)
    batch = next_batch(problem, state)
    assert batch is not None
    counts = batch.slots.copy()
    counts[1] = 0
    first, second = (
        learn(problem, state.active, batch, np.array([3.0, noise, 1.0]), counts)
        for noise in (0.0, 1e6)
    )
    assert first is not None and second is not None
    assert (first.theta == second.theta).all()


def test_a_batch_is_void_when_an_active_action_leaves_the_span() -> None:
    problem = Problem(np.eye(2), 10**4, "local", 1.0)
    state = start(problem)
    batch = next_batch(problem, state)
    assert batch is not None
    for counts in ([2, 0], [0, 0]):
        void = step(problem, state, batch, np.zeros(2), np.array(counts))
        assert (void.number, void.used) == (1, batch.clients), "paid for, and asked again"
        assert math.isnan(void.log[0].radius)
        assert void.active.all()
        again = next_batch(problem, void)
        assert again is not None and again.number == 1
    # An action that is left out does not matter while the others tell of it.
    three = Problem(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]), 10**4, "local", 1.0)
    wide = replace(three, design="uniform")
    first = next_batch(wide, start(wide))
    assert first is not None
    found = step(wide, start(wide), first, np.zeros(3), np.array([1, 1, 0]))
    assert found.number == 2


def test_void_batches_end_with_the_horizon() -> None:
    problem = Problem(np.eye(2), 1000, "local", 1.0)
    state = start(problem)
    while (batch := next_batch(problem, state)) is not None:
        state = step(problem, state, batch, np.zeros(2), np.array([0, 0]))
    assert 990 < state.used <= 1000
    assert certificate(problem, state) == 2000.0


def test_a_shuffled_batch_below_its_least_is_void() -> None:
    problem = Problem(np.eye(2), 10**5, "shuffle", 1.0, least=0.9)
    state = replace(start(problem), number=5)
    batch = next_batch(problem, state)
    assert batch is not None
    missing = batch.clients - batch.least
    enough = batch.slots - np.array([missing, 0])
    assert step(problem, state, batch, np.zeros(2), enough).number == 6
    assert step(problem, state, batch, np.zeros(2), enough - np.array([1, 0])).number == 5


def test_bad_answers_are_refused_by_name() -> None:
    problem = Problem(np.eye(2), 10**4, "local", 1.0)
    state = start(problem)
    batch = next_batch(problem, state)
    assert batch is not None
    zeros = np.zeros(2)
    later = step(problem, state, batch, zeros)
    with pytest.raises(InputError, match="batch is 1; the learner waits for batch 2"):
        step(problem, later, batch, zeros)
    with pytest.raises(InputError, match="answered once at most"):
        step(problem, state, batch, zeros, batch.slots + 1)
    with pytest.raises(InputError, match="answered once at most"):
        step(problem, state, batch, zeros, np.array([-1, 1]))
    for counts in (np.array([1]), np.array([0.5, 1.0])):
        with pytest.raises(InputError, match="counts is"):
            step(problem, state, batch, zeros, counts)  # type: ignore[arg-type]
    for sums in (np.zeros(3), np.array([math.nan, 0.0])):
        with pytest.raises(InputError, match="sums is"):
            step(problem, state, batch, sums)


@pytest.mark.parametrize("model", MODELS)
def test_the_good_event_survives_drop_outs(model: Model) -> None:
    """In 500 runs with 40 % staying away; Bin(500, 1/T) exceeds what is allowed 1 in 10^6 times."""
    instance = random_instance(6, 2, Stream(11))
    problem = replace(problem_of(instance, model, 100), least=0.1)
    failures, voids, generator = 0, 0, Stream(12).at(model).generator()
    for _ in range(500):
        state, good = start(problem), True
        while (batch := next_batch(problem, state)) is not None:
            counts = dropped(batch, generator, 0.4)
            sums = came_sums(problem, instance, batch, counts, generator)
            after = step(problem, state, batch, sums, counts)
            radius = after.log[-1].radius
            if math.isnan(radius):
                voids += 1
            else:
                errors = np.abs(problem.actions @ after.theta - instance.means)[state.active]
                good &= bool(errors.max() <= radius)
            state = after
        failures += not good
    assert voids > 0
    assert stats.binom.sf(failures - 1, 500, 1.0 / 100) > 1e-6
