"""The pre-flight counts what the run will have: a cluster's CPUs and memory, not the driver's."""

import contextlib

import psutil
import pytest

from raydp_sim.actors.backend import Inline
from raydp_sim.errors import InputError
from raydp_sim.run import prepare
from raydp_sim.run.play import Run
from raydp_sim.run.preflight import Room
from tests.conftest import scenario, with_placement


class Large(Inline):
    """A cluster of 30 CPUs, all in this process."""

    room = 1 << 50

    def cpus(self):
        return 30

    def memory(self):
        return self.room


class Small(Large):
    """The same, with hardly any memory."""

    room = 1 << 20


def joined(folder, backend, monkeypatch):
    @contextlib.contextmanager
    def connected(self):
        yield backend

    monkeypatch.setattr(Run, "_backend", connected)
    base = with_placement(scenario(90, rounds=2), backend="ray")
    return prepare(base, out=folder, address="head:6379")


def test_a_cluster_is_planned_for_with_its_own_size(tmp_path, monkeypatch):
    made, plans = joined(tmp_path / "run", Large(), monkeypatch), []
    made.watcher.planned = plans.append
    list(made.play())
    # 30 actors of clients, a shuffler, an aggregator, ledger and metrics.
    assert [plan.actors for plan in plans] == [34]


def test_what_the_cluster_has_no_room_for_is_refused_before_anything_is_written(
    tmp_path, monkeypatch
):
    made = joined(tmp_path / "run", Small(), monkeypatch)
    with pytest.raises(InputError, match=r"needs 3\.\d GiB of 0\.0 GiB"):
        list(made.play())
    assert not (tmp_path / "run").exists()


def test_without_a_cluster_it_is_this_machine(tmp_path):
    room = Room.here()
    assert room.cpus == psutil.cpu_count()
    assert 0 < room.memory < psutil.virtual_memory().total
    made = prepare(with_placement(scenario(90), backend="ray"), out=tmp_path / "run")
    assert made.planned().actors == min(room.cpus, 90) + 4


def test_servers_in_the_driver_are_no_processes(tmp_path):
    for shufflers, more in ((1, 0), (2, 2)):
        base = with_placement(
            scenario(90, rounds=2), shufflers, backend="ray", servers="driver", clients_per_actor=30
        )
        assert prepare(base, tmp_path / "run").planned(Room(2, 1 << 50)).actors == 3 + more


def test_a_span_that_has_no_room_is_refused_by_name(tmp_path):
    base = scenario(10_000, rounds=500)
    need = prepare(base, tmp_path / "run").planned(Room(2, 1 << 50)).memory
    room = Room(2, 10 * need)
    for allowed in (with_placement(base, span=4), with_placement(base, 2, span=400)):
        prepare(allowed, tmp_path / "run").planned(room)
    with pytest.raises(InputError, match=r"placement.span is 400; .* or leave it to auto"):
        prepare(with_placement(base, span=400), tmp_path / "run").planned(room)
