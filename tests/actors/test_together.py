"""Servers in the driver's process: the same bytes, two Ray calls a round, and clients may die."""

import os
import signal

import pytest

from raydp_sim.actors.aggregator import AggregatorActor
from raydp_sim.actors.calls import Calls
from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.actors.metrics import MetricsActor
from raydp_sim.actors.on_ray import OnRay
from raydp_sim.actors.together import Together, _Later
from raydp_sim.errors import Died, InputError, RunError
from raydp_sim.privacy.ledger import store
from raydp_sim.run import prepare, run
from raydp_sim.schedule.batch import Cohort
from tests.conftest import assert_identical, scenario, with_placement

ROUNDS = 6


def following(kind="Following", **sections):
    task = {"kind": f"tests.actors.following:{kind}", "rounds": ROUNDS}
    data = {"kind": "gaussian", "dimension": 6, "clip": 1.0}
    people = {"clients": 120, "data": data}
    given = {"participation": {"kind": "uniform", "sampled": 60}, **sections}
    return scenario(task=task, population=people, **given)


def beside(base, shufflers=1):
    place = {"backend": "ray", "servers": "driver", "clients_per_actor": 60}
    return with_placement(base, shufflers, **place)


@pytest.mark.cluster
@pytest.mark.parametrize("kind,shufflers", [("Following", 2), ("Alternating", 1), ("Ending", 1)])
def test_bytes_are_those_of_one_process(kind, shufflers, ray_session, tmp_path):
    base = following(kind)
    run(base, out=tmp_path / "inline")
    run(beside(base, shufflers), out=tmp_path / "driver")
    assert_identical(tmp_path / "inline", tmp_path / "driver")


@pytest.mark.cluster
def test_several_releases_under_way_give_the_same_bytes(ray_session, tmp_path):
    base = scenario(rounds=ROUNDS)
    run(base, out=tmp_path / "inline")
    run(beside(base), out=tmp_path / "driver")
    assert_identical(tmp_path / "inline", tmp_path / "driver")


class Counting(Together):
    """Notes which calls go to processes, and what is done in this one, in their order."""

    def __init__(self):
        super().__init__()
        self.done = []

    def call(self, actor, method, *args, returns=1):
        made = super().call(actor, method, *args, returns=returns)
        if not isinstance(made[0], _Later):
            self.done.append(("process", method))
        return made

    def _make(self, called):
        self.done.append(("here", called.method))
        super()._make(called)


def conducted(base, backend, folder, disturb=lambda crew: None):
    crew = Crew(beside(base), backend, folder)
    (folder / "ledger").mkdir(parents=True)
    crew.begin(0, 0, None)
    rows = []
    for row in Conductor(crew).play(ROUNDS):
        rows.append(row)
        disturb(crew)
    crew.stop()
    return rows


@pytest.mark.cluster
def test_a_round_is_one_call_to_each_process_and_rows_wait_until_clients_compute(
    ray_session, tmp_path
):
    backend = Counting()
    conducted(following(), backend, tmp_path / "run")
    played = [what for what in backend.done if what[1] not in ("load", "begin", "plan")]
    afar = [method for where, method in played if where == "process"]
    assert afar == ["reports"] * (2 * ROUNDS)
    # The rows of every release but the last are made when the next clients have been asked.
    order = [method for _, method in played]
    for release in range(1, ROUNDS):
        record = [place for place, method in enumerate(order) if method == "records"][release - 1]
        asked = [place for place, method in enumerate(order) if method == "reports"]
        assert sum(place < record for place in asked) == 2 * (release + 1)


@pytest.mark.cluster
@pytest.mark.parametrize("kind", ["Following", None], ids=["one by one", "in spans"])
def test_nothing_is_released_before_its_charge_is_on_disk(kind, ray_session, tmp_path, monkeypatch):
    base = following(kind) if kind else with_placement(scenario(rounds=ROUNDS), span=3)
    step, recorded, released = AggregatorActor.step, MetricsActor.record, []

    def paid(folder=tmp_path / "run" / "ledger"):
        return store.read(folder)["release"].to_pylist()

    def stepping(self, release, *rest):
        assert release in paid()
        released.append(release)
        return step(self, release, *rest)

    def recording(self, tally, *rest):
        assert tally.release in paid()
        return recorded(self, tally, *rest)

    monkeypatch.setattr(AggregatorActor, "step", stepping)
    monkeypatch.setattr(MetricsActor, "record", recording)
    assert len(conducted(base, Together(), tmp_path / "run")) == ROUNDS
    assert released == list(range(ROUNDS))


@pytest.mark.cluster
def test_a_client_process_that_dies_leaves_the_same_rows(ray_session, tmp_path):
    expected = run(following(), out=tmp_path / "inline").metrics.to_pylist()
    backend, killed = Together(), []

    def kill(crew):
        if len(killed) < 2:
            victim = crew.clients[len(killed)]
            pid = backend.get(victim.__ray_call__.remote(lambda actor: os.getpid()))
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    assert conducted(following(), backend, tmp_path / "run", kill) == expected
    assert len(killed) == 2


class Server:
    """Answers, or fails."""

    def __init__(self):
        self.heard = []

    def hear(self, *what):
        self.heard.append(what)
        return len(self.heard)

    def fail(self, error):
        raise error

    def two(self):
        return 1, 2


@pytest.mark.cluster
def test_a_run_whose_result_is_lost_is_taken_up_with_new_servers(
    ray_session, tmp_path, monkeypatch
):
    base, asked = following(), []
    run(base, out=tmp_path / "inline")
    get = Calls.get

    def once_lost(calls, ref):
        asked.append(ref)
        if len(asked) == 8:
            raise Died("an actor of the run died: lost for this test")
        return get(calls, ref)

    monkeypatch.setattr(Calls, "get", once_lost)
    run(beside(base), out=tmp_path / "driver")
    assert "taken up" in (tmp_path / "driver" / "log.txt").read_text()
    assert_identical(tmp_path / "inline", tmp_path / "driver")


@pytest.mark.cluster
def test_calls_of_an_object_run_in_their_order_and_only_when_asked_for(ray_session):
    backend = Together()
    server = backend.spawn(Server)
    (first,) = backend.call(server, "hear", "a")
    one, two = backend.call(server, "two", returns=2)
    (second,) = backend.call(server, "hear", one, two)
    assert server.object.heard == []
    assert backend.wait([second, first]) == [second]
    assert server.object.heard == [("a",), (1, 2)]
    assert backend.get(first) == 1 and backend.get(second) == 2


@pytest.mark.cluster
def test_what_goes_wrong_shows_to_whoever_asks_and_to_no_one_else(ray_session):
    backend = Together()
    server, client = backend.spawn(Server), backend.spawn(Server, anywhere=True)
    (failed,) = backend.call(server, "fail", InputError("no"))
    (after,) = backend.call(server, "hear", failed)
    (fine,) = backend.call(server, "hear", "b")
    assert backend.get(fine) == 1
    for each in (failed, after):
        with pytest.raises(InputError, match="no"):
            backend.get(each)
    with pytest.raises(InputError, match="no"):
        backend.call(client, "hear", failed)
    (afar,) = backend.call(client, "fail", RunError("gone"))
    (late,) = backend.call(server, "hear", afar)
    with pytest.raises(RunError, match="gone"):
        backend.get(late)
    (wrong,) = backend.call(server, "fail", ValueError("a mistake"))
    (far,) = backend.call(client, "fail", ValueError("a mistake"))
    for each in (wrong, far, backend.call(server, "hear", wrong)[0]):
        with pytest.raises(RunError, match=r"an actor failed: ValueError\('a mistake'\)"):
            backend.get(each)
    backend.kill(client)


@pytest.mark.cluster
def test_what_is_large_is_stored_once_for_all_processes(ray_session, monkeypatch):
    import numpy as np
    import ray

    backend, put = Together(), []
    monkeypatch.setattr(ray, "put", lambda value, real=ray.put: put.append(1) or real(value))
    clients = [backend.spawn(Server, anywhere=True) for _ in range(2)]
    server = backend.spawn(Server)
    large = {"theta": np.arange(30_000.0)}
    cohorts = {3: Cohort(np.arange(30_000, dtype=np.uint32), np.zeros(30_000, np.int64))}
    server.object.make = lambda: (large, cohorts, {"few": np.zeros(3)})
    made = backend.call(server, "make", returns=3)
    for client in clients:
        assert backend.get(backend.call(client, "hear", *made)[0]) == 1
    assert put == [1, 1]
    for client in clients:
        backend.kill(client)


def test_the_placement_is_read_from_the_file(tmp_path):
    base = beside(following())
    assert prepare(base, tmp_path / "run").scenario.placement.servers == "driver"
    assert issubclass(Together, OnRay)
