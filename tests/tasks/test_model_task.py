"""What all tasks that train share: where models start, and how long a run is said to take."""

import numpy as np
import pytest

from raydp_sim.actors.aggregator import AggregatorActor, ServerActor
from raydp_sim.actors.client import ClientActor
from raydp_sim.actors.seeds import readers_seed
from raydp_sim.errors import InputError
from raydp_sim.run import preflight
from raydp_sim.scenario import parse
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
        starts.append(server.task_state["mu"])
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
        # 20 samples of 20 clients: a piece is of 3 clients, and one of 64 reports is randomized.
        ({"kind": "fedavg", "steps": 6}, CLIPPED, 6 / 3 + 1 / 64),
        ({"kind": "fedavg", "steps": 6, "batch": 4}, CLIPPED, 6 / 16 + 1 / 64),
        ({"kind": "cldp-sgd", "sampled_points": 2}, CLIPPED, 2 / 64 + 2 / 64),
        ({"kind": "dp-fedavg"}, NOISY, 2 / 3),
        ({"kind": "mms-sgd", "step_size": 1.0}, CLIPPED, 1 / 3 + 1 / 64),
        ({"kind": "local-only", "steps": 9}, {"kind": "2rr", "epsilon_local": 1.0}, 9 / 3 + 1 / 64),
    ],
)
def test_the_plan_counts_what_clients_compute(task, mechanism, pieces, monkeypatch):
    """As if every piece of work took an hour: 5 rounds of 20 clients take so many."""
    trust = "local" if mechanism is NOISY else "shuffle"
    found = scenario({**task, "rounds": 5}, mechanism, trust=trust)

    def hour(piece):
        piece()  # it can be done
        return 3600.0

    monkeypatch.setattr(preflight, "_seconds", hour)
    assert preflight.plan(found, 1).seconds / 3600.0 == pytest.approx(100 * pieces, rel=1e-3)


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
