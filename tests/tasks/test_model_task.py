"""What all tasks that train share: where models start, and how long a run is said to take."""

import numpy as np
import pytest

from raydp_sim.actors.aggregator import AggregatorActor, ServerActor
from raydp_sim.actors.client import ClientActor
from raydp_sim.actors.seeds import readers_seed
from raydp_sim.errors import InputError
from raydp_sim.models.base import TILE
from raydp_sim.run import preflight
from raydp_sim.scenario import parse, setting_of
from raydp_sim.tasks import TASKS

DATA = {"kind": "synthetic-digits", "n": 400, "side": 16, "test": 20}
NOISY = {"kind": "gaussian-steps", "radius": 0.5, "steps": 2, "sigma": 0.5}
CLIPPED = {"kind": "l2", "radius": 0.5, "epsilon_local": 2.0, "on_out_of_range": "clip"}


def scenario(task, mechanism, **sections):
    document = {
        "name": "small",
        "seed": 5,
        "task": task,
        "population": {"clients": 20, "data": DATA},
        "mechanism": mechanism,
        "placement": {"backend": "inline"},
    }
    return parse({**document, **sections})


def test_clients_start_where_the_server_does_and_each_repetition_elsewhere():
    psi = {"scalar_radius": 0.05, "scalar_sigma": 0.2}
    task = {"kind": "adaped", "rounds": 2, "model": {"kind": "lenet5"}}
    document = scenario(task, {**NOISY, **psi}, trust="local").document()
    client, server = ClientActor(document, 0, 0, 0, 3), ServerActor(document)
    starts = []
    for repetition in range(2):
        client.load(repetition)
        server.begin(repetition, None)
        starts.append(server.task_state["theta"])
        for theta in client.answers.memory["theta"]:
            assert np.array_equal(theta, starts[-1])
    assert not np.array_equal(*starts)


def test_clients_know_the_public_seed_of_a_reader_behind_a_shuffler():
    found = scenario({"kind": "fedavg", "model": {"kind": "lenet5"}}, CLIPPED, trust="shuffle")
    assert readers_seed(found) != found.seed
    client = ClientActor(found.document(), 0, 0, 0, 3)
    reader = AggregatorActor({**found.document(), "seed": readers_seed(found)})
    client.load(0)
    start = found.task.first(client.answers.setting)
    assert np.array_equal(start, reader.task_state["theta"])


@pytest.mark.parametrize(
    ("task", "mechanism", "pieces"),
    [
        # 20 samples of each client: a piece is of 51 clients, and one of 256 reports is randomized.
        ({"kind": "fedavg", "steps": 6}, CLIPPED, 6 / 51 + 1 / 256),
        ({"kind": "fedavg", "steps": 6, "batch": 4}, CLIPPED, 6 / 256 + 1 / 256),
        ({"kind": "cldp-sgd", "sampled_points": 2}, CLIPPED, 2 / TILE + 2 / 256),
        ({"kind": "dp-fedavg"}, NOISY, 2 / 51),
        ({"kind": "mms-sgd", "step_size": 1.0}, CLIPPED, 1 / 51 + 1 / 256),
        (
            {"kind": "local-only", "steps": 9},
            {"kind": "2rr", "epsilon_local": 1.0},
            9 / 51 + 1 / 256,
        ),
    ],
)
def test_the_plan_counts_what_is_computed(task, mechanism, pieces, monkeypatch):
    """As if every piece of work took an hour: 5 rounds of 20 clients, and tests, take so many."""
    trust = "local" if mechanism is NOISY else "shuffle"
    found = scenario({**task, "rounds": 5}, mechanism, trust=trust)

    def hour(piece):
        piece()  # it can be done
        return 3600.0

    monkeypatch.setattr(preflight, "_seconds", hour)
    tests = 5 / found.task.evaluate_every
    expected = 100 * pieces + tests
    assert preflight.plan(found, 1).seconds / 3600.0 == pytest.approx(expected, rel=1e-3)


def test_work_is_timed_and_a_task_without_any_has_none():
    assert 0.0 < preflight._seconds(lambda: sum(range(1000))) < 1.0
    found = scenario({"kind": "fedavg", "steps": 3, "rounds": 100}, CLIPPED)
    longer = scenario({"kind": "fedavg", "steps": 3000, "rounds": 100}, CLIPPED)
    assert preflight.plan(longer, 1).seconds > 10 * preflight.plan(found, 1).seconds
    assert TASKS.kinds["mean"]().work(None) == ()


def test_a_mean_of_labelled_samples_is_refused_for_what_they_are():
    for side in (4, 16):
        data = {**DATA, "side": side}
        with pytest.raises(InputError, match=r"labelled samples.*trains a model"):
            scenario({"kind": "item-mean"}, CLIPPED, population={"clients": 20, "data": data})


def test_a_model_that_is_looked_at_last_has_the_columns_of_those_before():
    looked = {**DATA, "validation": 40}
    task = {"kind": "fedavg", "rounds": 9, "evaluate_every": 4}
    found = scenario(task, CLIPPED, population={"clients": 20, "data": looked})
    setting = setting_of(found)
    state = found.task.init(setting)
    _, public = found.task.closed(setting, {**state, "rounds": 3}, state["theta"], 0.1)
    usual = found.task.evaluated(setting, public)["learning"].schema
    assert "validation_accuracy" in usual.names
    # The last releases were withheld, after a round in which nothing was tested.
    _, last = found.task.closed(setting, {**state, "rounds": 4}, state["theta"], 0.1)
    assert "validation_accuracy" not in last
    assert found.task.closing(setting, last)["learning"].schema.equals(usual)
