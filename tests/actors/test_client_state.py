"""Client state survives placement, respawning and a kill."""

import random

import numpy as np
import pytest

from raydp_sim.actors.client import ClientActor
from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.run import Run, prepare, reopen, run
from raydp_sim.tasks.base import Ask
from tests.actors.scrambled import Scrambled
from tests.conftest import assert_identical, client_state, scenario, with_placement


def remembering(rounds=9):
    return scenario(
        clients=90,
        rounds=rounds,
        task={"kind": "tests.actors.remembering:Remembering", "rounds": rounds},
        participation={"kind": "self", "probability": 0.5},
    )


def keep(conductor, finished):
    """Make a checkpoint as a run does, in memory."""
    conductor.checkpoint(finished)
    kept = {
        (first, last): {name: np.array(column) for name, column in columns.items()}
        for first, last, columns in conductor.shards()
    }
    conductor.crew.checkpoint = lambda first, last: kept[first, last]
    conductor.checkpointed()


def test_results_do_not_depend_on_placement(tmp_path):
    base = remembering()
    run(base, out=tmp_path / "base")
    for per_actor, shufflers in ((1, 2), (7, 1)):
        out = tmp_path / str(per_actor)
        run(with_placement(base, shufflers, clients_per_actor=per_actor), out=out)
        assert_identical(tmp_path / "base", out)
    reports = client_state(tmp_path / "base")["reports"]
    assert reports.shape == (90,) and reports.max() > 3


@pytest.mark.parametrize("seed", range(6))
def test_a_respawned_actor_restores_its_client_state(seed, tmp_path):
    """Actors die at random moments; checkpoints are made at every third release."""
    base = with_placement(remembering(), clients_per_actor=20)
    expected = run(base, out=tmp_path / "expected").metrics.to_pylist()
    backend, dice = Scrambled(seed), random.Random(seed)
    crew = Crew(base, backend, tmp_path)
    crew.begin(0, 0, None)
    (tmp_path / "ledger").mkdir()
    conductor = Conductor(crew)
    conductor.on_finished = lambda finished: finished % 3 or keep(conductor, finished)
    call = backend.call

    def deadly(actor, method, *args, returns=1):
        if dice.random() < 0.05 and sum(crew.deaths) < 4:
            backend.kill(dice.choice(crew.clients))
        return call(actor, method, *args, returns=returns)

    backend.call = deadly
    rows = list(conductor.play(9))
    assert sum(crew.epochs) > 0 and rows == expected


def test_a_tasks_draws_are_never_the_randomizers():
    """Had both one stream, the bit of a client that holds 0 would follow from the task's draw."""
    base = scenario(
        clients=400,
        task={"kind": "tests.actors.remembering:Drawing"},
        population={"clients": 400, "data": {"kind": "bernoulli", "probability": 0.0}},
        mechanism={"kind": "2rr", "epsilon_local": 1.0},
    )
    actor = ClientActor(base.document(), 0, 0, 0, 400)
    actor.load(0)
    _, batch = actor.report(0, 0.0, None, 1, (0,), Ask(actor.setting.mechanism), {})
    flip = 1 / (1 + np.exp(1.0))
    predicted = actor.memory()["drawn"] < flip
    # Of 400 clients about 107 send a 1; all of them would be predicted.
    assert (batch.payload == 1).sum() > 50 and (predicted == (batch.payload == 1)).mean() < 0.8


@pytest.mark.parametrize("stop", [1, 4, 8])
def test_a_resumed_run_restores_client_state(stop, tmp_path):
    base = with_placement(remembering(), clients_per_actor=20, checkpoint_seconds=0)
    run(base, out=tmp_path / "whole")
    interrupted: Run = prepare(base, out=tmp_path / "part")
    rows = interrupted.play()
    for _ in range(stop):
        next(rows)
    rows.close()
    for _ in reopen(tmp_path / "part").play():
        pass
    assert_identical(tmp_path / "whole", tmp_path / "part")


@pytest.mark.cluster
def test_a_killed_process_restores_client_state_on_ray(tmp_path, ray_session):
    from raydp_sim.actors.on_ray import OnRay

    base = with_placement(remembering(), backend="ray", clients_per_actor=45)
    expected = run(with_placement(base, backend="inline"), out=tmp_path / "expected")
    crew = Crew(base, OnRay(), tmp_path)
    crew.begin(0, 0, None)
    (tmp_path / "ledger").mkdir()
    conductor = Conductor(crew)
    conductor.on_finished = lambda finished: finished % 4 or keep(conductor, finished)
    rows = []
    for row in conductor.play(9):
        rows.append(row)
        if row["release"] == 5:
            crew.backend.kill(crew.clients[0])
    assert crew.epochs == [1, 0] and rows == expected.metrics.to_pylist()
    crew.stop()
