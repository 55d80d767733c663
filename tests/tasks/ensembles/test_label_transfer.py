"""Teachers trained with DP-SGD: their steps, what they cost, and the labels of their majority."""

import math

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.metrics import streams
from raydp_sim.models.linear import Linear
from raydp_sim.random import Stream
from raydp_sim.run import run
from raydp_sim.tasks.ensembles import scored
from raydp_sim.tasks.ensembles.scored import Votes
from raydp_sim.tasks.ensembles.teachers import Training, cost, trained, votes
from tests.conftest import scenario

DATA = {"kind": "synthetic-digits", "n": 3000, "side": 6, "test": 400, "points": 50, "only": [0, 1]}
TASK = {
    "kind": "label-transfer",
    "classes": [0, 1],
    "rounds": 20,
    "batch": 10,
    "noise_multiplier": 1.0,
    "step_size": 0.5,
}
FIXED = {
    "kind": "darrm",
    "vote_epsilon": 10.0,
    "vote_delta": 1e-6,
    "epsilon": 60.0,
    "delta": 6e-6,
    "votes": "fixed",
    "records": "disjoint",
}


def transfer(task=TASK, mechanism=FIXED, **sections):
    usual = {
        "trust": "central",
        "population": {"clients": 11, "data": DATA},
        "task": task,
        "mechanism": mechanism,
        "privacy": {"delta": 1e-4},
    }
    return scenario(**{**usual, **sections})


def test_a_step_is_the_sum_of_clipped_gradients_and_noise() -> None:
    """Without sampling and noise: against gradients worked out by hand for softmax regression."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(6, 3)).astype(np.float32), np.array([0, 1, 0, 1, 1, 0])
    network = Linear().network((3,), 2)
    training = Training(epochs=1, batch=6, step_size=0.5, clip=0.3, noise_multiplier=0.0)
    assert training.steps(6) == 1 and training.rate(6) == 1.0
    stream = Stream(5)
    first = network.init(stream.at("model")).astype(np.float64)
    named = network.named(first.astype(np.float32))
    weight, bias = (np.asarray(part, np.float64) for part in named.values())
    logits = x @ (weight.T if weight.shape == (2, 3) else weight) + bias
    chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    slope = chance - np.eye(2)[y]
    total = np.zeros(len(first))
    for row in range(6):
        outer = np.outer(slope[row], x[row])
        flat = (outer if weight.shape == (2, 3) else outer.T).reshape(-1)
        each = np.concatenate([flat, slope[row]])
        total += each * min(1.0, 0.3 / math.sqrt(float(each @ each)))
    found = trained(network, training, x, y, stream)
    np.testing.assert_allclose(found, first - 0.5 * total / 6, atol=1e-6)


def test_noise_is_of_the_stated_size() -> None:
    """400 teachers on nothing but noise; the deviation of each parameter within 5 of its own."""
    x, y = np.zeros((4, 3), np.float32), np.zeros(4, np.int64)
    network = Linear().network((3,), 2)
    training = Training(epochs=2, batch=2, step_size=0.5, clip=2.0, noise_multiplier=3.0)
    ends = [trained(network, training, x, y, Stream(each)) for each in range(400)]
    starts = [network.init(Stream(each).at("model")) for each in range(400)]
    moved = (np.array(ends, np.float64) - np.array(starts))[:, :6]  # biases learn besides
    sd = 0.5 * 3.0 * 2.0 / 2 * math.sqrt(training.steps(4))
    assert moved.std(axis=0) == pytest.approx(sd, rel=5 / math.sqrt(2 * 400))


def test_a_teacher_costs_what_another_accountant_says() -> None:
    dp = pytest.importorskip("dp_accounting")
    training = Training(epochs=5, batch=32, step_size=0.1, clip=1.0, noise_multiplier=12.0)
    step = dp.PoissonSampledDpEvent(32 / 1024, dp.GaussianDpEvent(12.0))
    accountant = dp.pld.PLDAccountant()
    accountant.compose(dp.SelfComposedDpEvent(step, 160))
    assert training.steps(1024) == 160
    assert cost(training, 1024, 1e-4) == pytest.approx(accountant.get_epsilon(1e-4), rel=2e-3)
    # The seed's 0.0892 and 0.0852 are not exceeded with batches of 32.
    assert cost(training, 1024, 1e-4) < 0.0892 and cost(training, 909, 1e-4) < 0.0852
    assert math.isinf(cost(training._replace(noise_multiplier=0.0), 1024, 1e-4))


def test_votes_are_classes() -> None:
    network = Linear().network((2,), 2)
    theta = np.array([1, 0, 0, 1, 0, 0], np.float32)
    found = votes(network, theta, np.array([[1, 0], [0, 1], [3, 2]], np.float32))
    assert found.tolist() == [0, 1, 0]


def test_labels_of_teachers_are_good_and_cost_one_teacher(tmp_path) -> None:
    found = run(transfer(), out=tmp_path / "run").summary
    assert found["metrics"]["majority_accuracy"] > 0.75
    assert found["metrics"]["accuracy"] == pytest.approx(found["metrics"]["majority_accuracy"])
    # However many labels: no two teachers share a sample, and each is trained once.
    assert found["privacy"]["epsilon"] <= 10.0
    tally = streams.read(tmp_path / "run" / "metrics", "votes")["tally"].to_numpy()
    assert ((tally == 0) | (tally == 11)).any()


@pytest.mark.parametrize(
    ("task", "mechanism", "says"),
    [
        ({}, {"vote_epsilon": 1.0, "epsilon": 6.0}, r"mechanism\.vote_epsilon is 1.0; a teacher"),
        ({"noise_multiplier": 0.0}, {}, r"mechanism\.vote_epsilon is 10.0; a teacher"),
        ({}, {"votes": "fresh"}, r"mechanism\.votes is 'fresh'"),
        ({"classes": [0, 2]}, {}, r"task\.classes is \[0, 2\]"),
        ({"rounds": 401}, {}, r"task\.rounds is 401"),
    ],
)
def test_bad_input_is_refused_by_name(task, mechanism, says) -> None:
    with pytest.raises(InputError, match=says):
        transfer({**TASK, **task}, {**FIXED, **mechanism})


def test_samples_that_are_dealt_twice_are_not_disjoint() -> None:
    """One of them is behind several teachers, and one teacher's epsilon does not cover that."""
    overlapping = {"clients": 11, "data": {**DATA, "n": 600, "overlap": True}}
    groups = {
        "clients": 11,
        "classes": [{"name": "few", "share": 0.5}, {"name": "many", "share": 0.5}],
        "data": DATA,
        "group_data": {"few": {**DATA, "split_seed": 1}},
    }
    for population in (overlapping, groups):
        with pytest.raises(
            InputError, match=r"mechanism\.records is 'disjoint'; samples are dealt"
        ):
            transfer(population=population)
    transfer(mechanism={**FIXED, "records": "shared"}, population=overlapping)
    # Nobody is dealt anew, where there are samples enough.
    transfer(population={"clients": 11, "data": {**DATA, "overlap": True}})


def test_scores_of_stored_votes_by_enumeration() -> None:
    rng = np.random.default_rng(2)
    tallies = rng.integers(0, 9, (2, 6))
    law = rng.random(6)
    right = [
        law[tally] if truth else 1 - law[tally]
        for truth in (0, 1)
        for tally in range(6)
        for _ in range(tallies[truth, tally])
    ]
    assert scored.accuracy(tallies, law) == pytest.approx(np.mean(right))
    # One vote at random is as good as one voter.
    ones = np.arange(6) / 5
    one = scored.private(5, Votes(0.1, 0.0), 1, "subsampling")
    share = (tallies[1] @ ones + tallies[0] @ (1 - ones)) / tallies.sum()
    assert scored.accuracy(tallies, one) == pytest.approx(share)
    assert scored.independent(tallies, one) == pytest.approx(share)
    assert scored.accuracy(tallies, scored.majority(5)) == pytest.approx(
        (tallies[1, 3:].sum() + tallies[0, :3].sum()) / tallies.sum()
    )
