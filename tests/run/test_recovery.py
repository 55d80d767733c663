"""Whoever dies, the run goes on by itself from its last checkpoint, to the same numbers."""

import contextlib
import json
import os
import random
import re
import signal

import pytest

from raydp_sim.actors.backend import Lost
from raydp_sim.actors.conductor import Conductor
from raydp_sim.chaos.leg import victims
from raydp_sim.engine import Charge
from raydp_sim.errors import InputError, RunError
from raydp_sim.privacy.ledger import store
from raydp_sim.run import Run, Watcher, prepare, reopen, run
from raydp_sim.run.serving import Server
from tests.actors.scrambled import Scrambled
from tests.actors.test_faults import base_scenario, exit_code
from tests.actors.test_protocol_state import remembering
from tests.actors.test_spans import mean, spanning
from tests.conftest import assert_identical, scenario, with_placement

KINDS = ("shuffler", "aggregator", "ledger", "metrics", "client")


def on(backend, monkeypatch):
    """Have runs play on a backend whose actors can die."""

    @contextlib.contextmanager
    def given(self):
        yield backend

    monkeypatch.setattr(Run, "_backend", given)


def played(base, folder, disturb, told):
    """Play a run; `disturb` is called with the crew before each command of the engine.

    Returns:
        The rows that were shown.
    """
    made = prepare(base, folder)
    crews = []
    made.watcher = Watcher(placed=crews.append, told=told.append)
    with pytest.MonkeyPatch.context() as patch:
        execute = Conductor.execute

        def disturbed(self, command):
            disturb(crews[-1])
            execute(self, command)

        patch.setattr(Conductor, "execute", disturbed)
        return list(made.play())


CASES = {
    "shuffled": lambda: with_placement(base_scenario(repeat=2), 2, clients_per_actor=70),
    # The ask is made of the release before, and clients remember.
    "state": lambda: remembering(per_actor=30),
    "server": lambda: scenario(
        60,
        rounds=6,
        trust="central",
        mechanism={"kind": "central-laplace", "radius": 6.0, "epsilon": 2.0},
    ),
}


def killing(base, folder, seed, monkeypatch):
    """Play a run in which an actor dies before one command in six; which one is drawn.

    Returns:
        The rows that were shown, and what was told.
    """
    base = with_placement(base, base.shuffle.shufflers, recoveries=1000)
    backend, dice, killed, told = Scrambled(seed), random.Random(seed), [], []
    on(backend, monkeypatch)

    def disturb(crew):
        if dice.random() < 1 / 6 and len(killed) < 12:
            found = victims(crew, dice.choice(KINDS))
            if found:
                killed.append(victim := dice.choice(found))
                backend.kill(victim)

    rows = played(base, folder, disturb, told)
    assert killed
    return rows, told


@pytest.mark.parametrize("pause", [0, 3600], ids=["every release", "none before the last"])
@pytest.mark.parametrize("case", CASES)
def test_any_actor_may_die_before_any_command(case, pause, tmp_path, monkeypatch):
    base = CASES[case]()
    run(base, out=tmp_path / "whole")
    base = with_placement(base, base.shuffle.shufflers, checkpoint_seconds=pause)
    rows, told = killing(base, tmp_path / "run", 1, monkeypatch)
    assert told and all("taken up after" in line for line in told)
    assert_identical(tmp_path / "whole", tmp_path / "run")
    # Each row was shown once and in order, however often its release was played.
    assert rows == reopen(tmp_path / "whole").result.metrics.to_pylist()
    log = (tmp_path / "run" / "log.txt").read_text()
    assert all(line in log for line in told)


@pytest.mark.parametrize("pause", [0, 3600], ids=["every release", "none before the last"])
@pytest.mark.parametrize("way,seed", [("self", 0), ("self", 3), ("uniform", 1)])
def test_any_actor_may_die_where_releases_go_in_spans(way, seed, pause, tmp_path, monkeypatch):
    """With some of these draws a checkpoint has rows that nobody was shown before the death."""
    base = spanning(mean(way), 4 if way == "self" else 5, checkpoint_seconds=pause)
    run(base, out=tmp_path / "whole")
    rows, _ = killing(base, tmp_path / "run", seed, monkeypatch)
    assert_identical(tmp_path / "whole", tmp_path / "run")
    assert rows == reopen(tmp_path / "whole").result.metrics.to_pylist()


def test_a_run_that_comes_no_further_stops_and_can_be_resumed(tmp_path, monkeypatch, capsys):
    base = with_placement(base_scenario(), 2, recoveries=2)
    run(base, out=tmp_path / "whole")
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(base.document()))
    backend = Scrambled(3)
    with monkeypatch.context() as patch:
        on(backend, patch)
        execute = Conductor.execute

        def deadly(self, command):
            if isinstance(command, Charge) and command.release > 2:
                backend.kill(self.crew.ledger)
            execute(self, command)

        patch.setattr(Conductor, "execute", deadly)
        assert exit_code("run", str(file), "--out", str(tmp_path / "run")) == 3
    said = " ".join(capsys.readouterr().err.split())
    assert re.search(r"ledger died at release \d: taken up after no release, 1 of 2", said)
    # A checkpoint is made as soon as the run is where it was, and it comes no further.
    further = r"taken up after release (\d), 1 of 2.*taken up after release \1, 2 of 2"
    assert re.search(further, said)
    assert "though it was taken up 2 times since the last checkpoint" in said
    assert f"raydp-sim resume {tmp_path / 'run'}" in said
    assert exit_code("resume", str(tmp_path / "run")) == 0
    assert_identical(tmp_path / "whole", tmp_path / "run")


def test_without_recoveries_the_first_death_ends_the_run(tmp_path, monkeypatch):
    base = with_placement(base_scenario(), recoveries=0)
    backend = Scrambled(3)
    on(backend, monkeypatch)
    with pytest.raises(RunError, match=r"an actor (of the run )?died: [^,]*; continue with"):
        played(base, tmp_path / "run", lambda crew: backend.kill(crew.metrics), [])


def test_an_actor_that_dies_before_the_run_began_is_replaced(tmp_path, monkeypatch):
    """Nothing is on disk yet that could be taken up."""
    base, backend, told = base_scenario(), Scrambled(3), []
    run(base, out=tmp_path / "whole")
    on(backend, monkeypatch)
    made = prepare(base, tmp_path / "run")
    placed = []

    def kill_the_first(crew):
        if not placed:
            backend.kill(crew.lead)
        placed.append(crew)

    made.watcher = Watcher(placed=kill_the_first, told=told.append)
    list(made.play())
    assert len(placed) == 2 and told[0].startswith("aggregator died at release 1")
    assert_identical(tmp_path / "whole", tmp_path / "run")


@pytest.mark.parametrize("pause,given_up", [(0, False), (3600, True)])
def test_clients_may_die_any_number_of_times_with_checkpoints_in_between(
    pause, given_up, tmp_path, monkeypatch
):
    """As on machines that may be taken away at any moment."""
    base = scenario(200, rounds=20)
    run(base, out=tmp_path / "whole")
    backend = Scrambled(1)
    on(backend, monkeypatch)
    settings = {"clients_per_actor": 100, "checkpoint_seconds": pause, "span": 1}
    made, crews = prepare(with_placement(base, **settings), tmp_path / "run"), []
    made.watcher = Watcher(placed=crews.append)
    stops = pytest.raises(RunError, match="died 6 times with no checkpoint in between")
    with stops if given_up else contextlib.nullcontext():
        for _ in made.play():
            backend.kill(crews[-1].clients[0])
    assert (crews[-1].epochs[0] > 6) != given_up
    if not given_up:
        assert_identical(tmp_path / "whole", tmp_path / "run")


def test_a_damaged_checkpoint_is_passed_over_without_the_user(tmp_path, monkeypatch):
    base, told, backend = with_placement(base_scenario(), 2, checkpoint_seconds=0), [], Scrambled(3)
    run(base, out=tmp_path / "whole")
    on(backend, monkeypatch)
    damaged = []

    def disturb(crew):
        found = sorted((tmp_path / "run" / "checkpoints").glob("*.npz"))
        if len(found) == 2 and not damaged:
            damaged.append(found[-1].name)
            found[-1].write_bytes(b"")
            backend.kill(crew.ledger)

    played(base, tmp_path / "run", disturb, told)
    assert f"{damaged[0]} (" in told[0] and "is damaged and was set aside" in told[0]
    assert told[1].startswith("ledger died")
    assert_identical(tmp_path / "whole", tmp_path / "run")


def test_a_receipt_that_is_lost_after_its_batch_was_gathered_costs_no_run(tmp_path, monkeypatch):
    """Its batch is counted already, and the actor that made it lives."""
    base, backend, told, lost = remembering(per_actor=30), Scrambled(5), [], []
    run(base, out=tmp_path / "whole")
    call = backend.call

    def losing(actor, method, *args, returns=1):
        refs = call(actor, method, *args, returns=returns)
        if method == "reports" and args[0][0][0] == 2 and not lost:
            refs[0].done, refs[0].error = True, Lost("the object is gone")
            lost.append(refs)
        return refs

    monkeypatch.setattr(backend, "call", losing)
    on(backend, monkeypatch)
    played(base, tmp_path / "run", lambda crew: None, told)
    assert lost and len(told) == 1
    assert_identical(tmp_path / "whole", tmp_path / "run")


def strike(crew, victim):
    import ray

    with contextlib.suppress(ray.exceptions.RayActorError):  # a strike before this one has ended it
        pid = ray.get(victim.__ray_call__.remote(lambda self: os.getpid()))
        os.kill(pid, signal.SIGKILL)


@pytest.mark.cluster
def test_processes_of_every_kind_are_killed_in_one_run(tmp_path, ray_session):
    """One after the other, and at last two at once; those that live are not started anew."""
    import ray

    base = base_scenario(repeat=2)
    run(base, out=tmp_path / "whole")
    base = with_placement(base, 2, backend="ray", clients_per_actor=100, checkpoint_seconds=0)
    left = [("shuffler",), ("aggregator",), ("ledger",), ("metrics",), ("ledger", "shuffler")]
    told, crews, pids = [], [], set()
    made = prepare(base, tmp_path / "run")
    made.watcher = Watcher(placed=crews.append, told=told.append)
    for _ in made.play():
        crew = crews[-1]
        asked = [a.__ray_call__.remote(lambda self: os.getpid()) for a in crew.actors()]
        if left and len(told) + len(left) == 5:
            pids.update(ray.get(asked))
            for kind in left.pop(0):
                strike(crew, victims(crew, kind)[-1])
    assert not left and len(told) == 5
    assert [line.split()[0] for line in told[:4]] == ["shuffler", "aggregator", "ledger", "metrics"]
    # Seven actors at first; the last two that were killed are not counted among the new.
    assert len(pids) == 7 + 4
    assert_identical(tmp_path / "whole", tmp_path / "run")
    paid = store.read(tmp_path / "run" / "ledger").select(["repetition", "release"]).to_pylist()
    keys = [tuple(row.values()) for row in paid]
    assert len(keys) == len(set(keys))


@pytest.mark.cluster
@pytest.mark.long
def test_more_deaths_than_are_allowed_end_with_exit_code_3(
    tmp_path, ray_session, monkeypatch, capsys
):
    base = base_scenario()
    run(base, out=tmp_path / "whole")
    # One release in a call: otherwise all may be collected before the first is charged, and nobody
    # needs the shuffler any more.
    settings = {"checkpoint_seconds": 3600, "recoveries": 1, "span": 1}
    base = with_placement(base, backend="ray", **settings)
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(base.document()))
    execute = Conductor.execute

    def deadly(self, command):
        if isinstance(command, Charge) and command.release > 2:
            strike(self.crew, self.crew.collectors[0])
        execute(self, command)

    with monkeypatch.context() as patch:
        patch.setattr(Conductor, "execute", deadly)
        assert exit_code("run", str(file), "--out", str(tmp_path / "run")) == 3
    said = " ".join(capsys.readouterr().err.split())
    assert "1 of 1" in said and f"raydp-sim resume {tmp_path / 'run'}" in said
    assert exit_code("resume", str(tmp_path / "run")) == 0
    assert_identical(tmp_path / "whole", tmp_path / "run")


def test_a_run_that_is_taken_up_is_served_where_it_was(tmp_path):
    """At the port that was free, to the tokens that were told; a port may take a moment."""
    base = scenario(metrics={"serve": "127.0.0.1:0"})
    asked, server = [], Server()

    def start(serving):
        asked.append(serving)
        if len(asked) == 2:
            raise InputError("the port is still taken")
        return "grpc://127.0.0.1:4711", None

    served = server.serve(base, tmp_path / "run", start)
    assert served.url == "grpc://127.0.0.1:4711" and served.tokens
    assert server.serve(base, tmp_path / "run", start) is None
    first, *again = asked
    assert first.port == 0 and len(again) == 2
    assert all(each.port == 4711 and each.grants == first.grants for each in again)
