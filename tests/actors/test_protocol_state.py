"""Client state in checkpoints: made from data, sharded per actor, never gathered in the driver."""

import weakref

import numpy as np
import pytest

from raydp_sim.actors.backend import Inline
from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.run import reopen, run
from raydp_sim.run.directory import Checkpoint, RunDir
from tests.conftest import assert_identical, client_state, interrupted, scenario, with_placement

REMEMBERING = {"kind": "tests.actors.remembering:Remembering", "rounds": 6}


def remembering(per_actor=20, **sections):
    made = scenario(90, task=REMEMBERING, **sections)
    return with_placement(made, clients_per_actor=per_actor, checkpoint_seconds=0)


class Copying(Inline):
    """Gives the driver copies, as another process would, and counts how many are alive."""

    def __init__(self):
        self.alive, self.most = 0, 0

    def get(self, ref):
        value = super().get(ref)
        if not isinstance(value, dict) or "last" not in value:
            return value
        copies = {name: column.copy() for name, column in value.items()}
        self._count(copies["last"])
        return copies

    def _count(self, column):
        self.alive += 1
        self.most = max(self.most, self.alive)
        weakref.finalize(column, self._gone)

    def _gone(self):
        self.alive -= 1


def test_state_is_made_from_the_clients_data(tmp_path):
    base = remembering()
    crew = Crew(base, Inline(), tmp_path)
    crew.begin(0, 0, None)
    ids = np.arange(90, dtype=np.uint32)
    data = base.population.data.hold(ids, base.stream(0).at("data"))
    for actor, (first, last) in zip(crew.clients, crew.ranges, strict=True):
        assert np.array_equal(actor.memory()["last"], data[first:last, :2])
        assert not actor.memory()["reports"].any()


def test_every_actor_has_a_file_of_its_own_in_a_checkpoint(tmp_path):
    run(remembering(), out=tmp_path / "run")
    (folder,) = (tmp_path / "run" / "checkpoints").glob("*.clients")
    names = sorted(path.stem for path in folder.iterdir())
    assert names == [f"{a:010d}-{min(a + 20, 90):010d}" for a in range(0, 90, 20)]
    # None of it is in the checkpoint itself.
    (checkpoint,) = (tmp_path / "run" / "checkpoints").glob("*.npz")
    with np.load(checkpoint) as arrays:
        assert not [name for name in arrays.files if "reports" in name or "last" in name]


def test_the_driver_never_holds_more_than_one_shard(tmp_path, monkeypatch):
    """Counted while checkpoints are made, while they are read, and for a respawned actor."""
    base = remembering(per_actor=10)
    directory = RunDir(tmp_path / "run")
    directory.create(base)
    backend = Copying()
    crew = Crew(base, backend, directory.path)
    crew.begin(0, 0, None)
    conductor, made = Conductor(crew), []

    def checkpoint(finished):
        made.append(Checkpoint(0, finished, conductor.checkpoint(finished)))
        directory.save(made[-1], conductor.shards())

    conductor.on_finished = checkpoint
    list(conductor.play(3))
    assert (backend.most, backend.alive) == (1, 0) and len(made) == 3
    read = RunDir.clients

    def counted(self, *place):
        found = read(self, *place)
        backend._count(found["last"])
        return found

    monkeypatch.setattr(RunDir, "clients", counted)
    again = Crew(base, backend, directory.path)
    again.begin(0, 3, made[-1].saved, lambda *place: directory.clients(made[-1], *place))
    again.respawn(4)
    assert (backend.most, backend.alive) == (1, 0)
    for one, other in zip(crew.clients, again.clients, strict=True):
        assert np.array_equal(one.memory()["reports"], other.memory()["reports"])


def test_the_count_would_notice_a_driver_that_gathers(tmp_path):
    backend = Copying()
    crew = Crew(remembering(per_actor=10), backend, tmp_path)
    crew.begin(0, 0, None)
    gathered = list(Conductor(crew).shards())
    assert backend.most == len(gathered) == 9


@pytest.mark.parametrize("per_actor", [7, 45, 90])
def test_a_run_resumed_in_another_placement_goes_on_as_it_would_have(per_actor, tmp_path):
    base = remembering()
    run(base, out=tmp_path / "whole")
    interrupted(base, tmp_path / "part", 3)
    made = reopen(tmp_path / "part")
    made.scenario = with_placement(made.scenario, clients_per_actor=per_actor)
    for _ in made.play():
        pass
    assert_identical(tmp_path / "whole", tmp_path / "part")


def test_no_repetition_begins_with_the_state_of_the_one_before(tmp_path):
    """Everyone takes part in all of 6 releases, so that at most so many can be counted."""
    base = remembering(repeat=2)
    rows = run(base, out=tmp_path / "run").metrics.to_pylist()
    assert client_state(tmp_path / "run")["reports"].tolist() == [6] * 90
    assert rows[0]["noise"] != rows[6]["noise"] and len(rows) == 12
