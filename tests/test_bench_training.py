"""The benchmark of training works, on tiny sizes; how fast it is, is for the benchmark to say."""

import json
from dataclasses import replace

import numpy as np
import pytest

from raydp_sim.bench import training
from raydp_sim.bench.contenders import Sample
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
        assert case.floor in training_floors.CASES and case.cohort % 2 == 0
        scenario = replace(case, clients=20, cohort=10, samples=1200).scenario()
        assert scenario.population.clients == 20


@pytest.mark.parametrize("name", training_floors.CASES)
def test_the_floors_train(name, monkeypatch):
    monkeypatch.setattr(training_floors, "SAMPLES", 500)
    play = training_floors.CASES[name](20)
    first, second = play(), play()
    assert np.isfinite(first).all() and first.any() and not np.array_equal(first, second)


def test_the_linear_floor_is_the_gradient_of_our_model(monkeypatch):
    from raydp_sim.models.linear import Linear
    from raydp_sim.models.losses import cross_entropy

    monkeypatch.setattr(training_floors, "SAMPLES", 500)
    found = training_floors.linear(20)()
    rng = np.random.default_rng(1)
    features, labels = training_floors._pool(rng)
    index = np.concatenate([rng.integers(0, 500, (rows, 60)) for rows in (16, 4)])
    network, theta = Linear().network((28, 28), 10), np.zeros(7850, np.float32)
    logits, tape = network.forward(theta, features[index])
    slopes = cross_entropy(logits, labels[index]).slopes / np.float32(60)
    meant = network.backward(theta, tape, slopes).mean(axis=0)
    weight, bias = meant[:7840].reshape(10, 784), meant[7840:]
    np.testing.assert_allclose(found, np.column_stack([weight, bias]).ravel(), rtol=1e-4, atol=1e-6)


@pytest.mark.cluster
def test_actors_and_floor_are_measured_in_turns():
    case = replace(CASES["private-100"], cohort=10, clients=20, rounds=2, samples=1200)
    (found,) = training.play([case], segments=1)
    assert {name: len(each) for name, each in found.samples.items()} == {"actors": 1, "floor": 1}
    assert found.peak > 1 << 20 and found.rate > 0


def test_the_floor_is_two_processes():
    pair = Pair()
    try:
        assert len(set(pair.pids)) == 2
    finally:
        pair.stop()
