"""The benchmark of training works, on tiny sizes; how fast it is, is for the benchmark to say."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from raydp_sim.actors.backend import Inline
from raydp_sim.bench import training
from raydp_sim.bench.bare import Bare
from raydp_sim.bench.contenders import Pipeline, Sample
from raydp_sim.bench.training import CASES, GROWING, HOLDING, Pair, Result
from raydp_sim.cli.bench_training import remarks, training_table
from tests import training_floors


def result(case, actors=0.02, floor=0.01, peak=1 << 20):
    samples = {"actors": [Sample(actors, actors)] * 3, "floor": [Sample(floor, floor)] * 3}
    return Result(case, samples, peak)


def test_rates_are_ratios_of_segments_and_goals_follow():
    case = CASES["private-100"]
    half = result(case)
    assert half.rate == pytest.approx(0.5) and half.met and half.updates == pytest.approx(5000)
    assert result(case, actors=0.021).met is False
    assert result(GROWING[0]).met is None
    assert json.loads(json.dumps(training.document([half], {})))["cases"][0]["to_floor"] == 0.5
    twice = Result(case, {"actors": [Sample(1.0, 3.0)], "floor": [Sample(0.9, 1.5)]})
    assert twice.apart is None
    assert twice.cpu_rate == 0.5 and twice.document()["cpu_to_floor"] == 0.5


def test_growth_and_memory_are_judged_against_the_smallest():
    flat = [result(case, actors=0.02 + 0.001 * n) for n, case in enumerate(GROWING)]
    steep = [result(case, actors=0.02 * (n + 1)) for n, case in enumerate(GROWING)]
    assert "1.10 times as long as 1,000 (goal <= 1.25: met)" in remarks(flat)[-1]
    assert "3.00 times as long as 1,000 (goal <= 1.25: NOT met)" in remarks(steep)[-1]
    held = [result(case, peak=(n + 1) << 20) for n, case in enumerate(HOLDING)]
    assert "2.00 times what it holds with 1,000 (goal <= 1.25: NOT met)" in remarks(held)[-1]
    assert training_table([*flat, *held]).row_count == 5


def test_every_case_is_a_scenario_and_has_a_floor():
    for case in (*CASES.values(), *HOLDING):
        assert {case.floor, case.same or case.floor} <= set(training_floors.CASES)
        assert case.cohort % 2 == 0
        scenario = replace(case, clients=20, cohort=10, samples=1200).scenario()
        assert scenario.population.clients == 20


def test_the_bound_is_the_floor_and_the_bare_calls_one_after_the_other():
    case, segment = CASES["private-100"], Sample(0.02, 0.02)
    samples = {"actors": [segment], "floor": [Sample(0.003, 0.0)], "bare": [Sample(0.001, 0.0)]}
    assert Result(case, samples).bound == pytest.approx(0.75) and result(case).bound is None
    assert training_table([Result(case, samples)]).row_count == 1
    assert Result(case, {**samples, "apart": [Sample(0.006, 0.0)]}).apart == pytest.approx(0.5)


@pytest.mark.parametrize("apart", [False, True])
def test_the_bare_loop_makes_the_calls_of_a_round(apart, tmp_path):
    """As many as a run does, each of as many answers, between as many actors."""

    class Noting(Inline):
        def __init__(self):
            self.calls = []

        def cpus(self):
            return 2

        def call(self, actor, method, *args, returns=1):
            self.calls.append((id(actor), returns))
            return super().call(actor, method, *args, returns=returns)

    def shape(backend, play):
        play(2)
        backend.calls.clear()
        play(5)
        return Counter(returns for _, returns in backend.calls), len({a for a, _ in backend.calls})

    case = CASES["private-100" if apart else "plain-100"]
    scenario = replace(case, cohort=10, clients=20, samples=1200).scenario()
    ours, bare = Noting(), Noting()
    pipeline = Pipeline(scenario, ours, tmp_path / "run", lambda: 0.0)
    played = shape(ours, lambda rounds: pipeline.play(rounds))
    loop = Bare(bare, 10, apart, lambda: 0.0)
    made = shape(bare, loop.play)
    assert made[1] == played[1] == (6 if apart else 5)
    # The loop asks ahead after its last round too; a run begins with a plan of its own.
    assert sum(made[0].values()) - sum(played[0].values()) in range(3)


@pytest.mark.parametrize("name", training_floors.CASES)
def test_the_floors_train(name, monkeypatch):
    monkeypatch.setattr(training_floors, "SAMPLES", 500)
    play = training_floors.CASES[name](20)
    first, second = play(), play()
    assert np.isfinite(first).all() and first.any() and not np.array_equal(first, second)


@pytest.mark.parametrize("kernel", ["linear", "linear_compiled"])
def test_the_linear_floor_is_the_gradient_of_our_model(kernel, monkeypatch):
    from raydp_sim.models.linear import Linear
    from raydp_sim.models.losses import cross_entropy

    monkeypatch.setattr(training_floors, "SAMPLES", 500)
    found = getattr(training_floors, kernel)(20)()
    rng = np.random.default_rng(1)
    features, labels = training_floors._pool(rng)
    index = np.concatenate([rng.integers(0, 500, (rows, 60)) for rows in (16, 4)])
    network, theta = Linear().network((28, 28), 10), np.zeros(7850, np.float32)
    logits, tape = network.forward(theta, features[index])
    slopes = cross_entropy(logits, labels[index]).slopes / np.float32(60)
    meant = network.backward(theta, tape, slopes).mean(axis=0)
    if kernel == "linear":
        meant = np.column_stack([meant[:7840].reshape(10, 784), meant[7840:]]).ravel()
    np.testing.assert_allclose(found, meant, rtol=1e-4, atol=1e-6)


@pytest.mark.cluster
def test_actors_and_floor_are_measured_in_turns():
    case = replace(CASES["private-100"], cohort=10, clients=20, rounds=2, samples=1200)
    (found,) = training.play([case], segments=1)
    assert {name: len(each) for name, each in found.samples.items()} == {
        "actors": 1,
        "floor": 1,
        "bare": 1,
        "apart": 1,
        "same": 1,
    }
    assert found.same > 0
    assert found.peak > 1 << 20 and found.rate > 0 and 0 < found.bound < 1


def test_the_floor_is_two_processes():
    pair = Pair()
    try:
        assert len(set(pair.pids)) == 2
    finally:
        pair.stop()
