"""Nothing is lost: kills, replays and zombies leave the result as it would have been."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from raydp_sim.actors.client import ClientActor
from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.actors.inbox import Inbox
from raydp_sim.batches import Listed, Reports
from raydp_sim.cli.main import main
from raydp_sim.errors import InputError, RunError
from raydp_sim.metrics import streams
from raydp_sim.privacy import store
from raydp_sim.run import prepare, reopen, run
from raydp_sim.tasks.base import Ask
from tests.actors.scrambled import Scrambled
from tests.conftest import assert_identical, scenario, with_placement


def exit_code(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code or 0


KILLED = Path(__file__).with_name("killed.py")
ROUNDS = 8


def base_scenario(**sections):
    return scenario(
        rounds=ROUNDS,
        population={
            "clients": 200,
            "data": {"kind": "gaussian", "dimension": 6, "clip": 1.0},
            "availability": {"kind": "bernoulli", "probability": 0.5},
        },
        # Close to the expected batch, so that some rounds are withheld.
        shuffle={"min_batch": 97},
        **sections,
    )


def killed(base, folder, last, backend):
    document = with_placement(
        base, 2, backend=backend, clients_per_actor=100, checkpoint_seconds=0
    ).document()
    file = folder.with_suffix(".json")
    file.write_text(json.dumps(document))
    command = [sys.executable, str(KILLED), str(file), str(folder), str(last)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


def check_resumed(tmp_path, folder):
    before = store.read(folder / "ledger") if folder.exists() else None
    resumed = reopen(folder)
    for _ in resumed.play():
        pass
    assert_identical(tmp_path / "whole", folder)
    after = store.read(folder / "ledger")
    # No ledger row is lost, none is written twice, and no release has two rows.
    assert after.slice(0, before.num_rows).equals(before)
    releases = streams.read(folder / "metrics", "releases").select(["repetition", "release"])
    keys = [tuple(row.values()) for row in releases.to_pylist()]
    assert len(keys) == len(set(keys))
    paid = after.select(["repetition", "release"]).to_pylist()
    assert keys == [tuple(row.values()) for row in paid]


@pytest.mark.parametrize("repeat", [1, 2])
def test_a_driver_killed_at_any_command_resumes_to_the_same_result(repeat, tmp_path):
    """SIGKILL at five seeded points (inline backend), also in a second repetition."""
    base = base_scenario(repeat=repeat)
    run(base, out=tmp_path / "whole")
    assert streams.read(tmp_path / "whole" / "metrics", "withheld").num_rows > 0
    done = killed(base, tmp_path / "count", -1, "inline")
    commands = int(done.stdout)
    for point in random.Random(5).sample(range(3, commands), 5):
        folder = tmp_path / f"inline-{point}"
        assert killed(base, folder, point, "inline").returncode == -signal.SIGKILL
        check_resumed(tmp_path, folder)


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize(
    "point",
    [
        pytest.param(point, marks=[pytest.mark.long] if number > 2 else [])
        for number, point in enumerate(random.Random(6).sample(range(3, 34), 5))
    ],
)
def test_a_driver_killed_on_ray_resumes_to_the_same_result(point, tmp_path, ray_session):
    """SIGKILL of the driver of a real Ray run at seeded points; Ray's processes go with it."""
    base = base_scenario()
    run(base, out=tmp_path / "whole")
    folder = tmp_path / "ray"
    done = killed(base, folder, point, "ray")
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    check_resumed(tmp_path, folder)


def test_a_complete_run_is_not_played_again(tmp_path):
    first = run(base_scenario(), out=tmp_path / "whole")
    again = reopen(tmp_path / "whole")
    assert again.result is not None and again.result.summary == first.summary


def test_a_resumed_run_refuses_a_ledger_that_is_not_its_own(tmp_path):
    base = scenario(rounds=ROUNDS, participation={"kind": "self", "probability": 0.5})
    folder = tmp_path / "run"
    killed(base, folder, 20, "inline")
    checkpoints = list((folder / "checkpoints").glob("*.npz"))
    for path in (*checkpoints, *folder.glob("metrics/*/*.parquet")):
        path.unlink()
    text = (folder / "scenario.yaml").read_text()
    (folder / "scenario.yaml").write_text(text.replace("seed: 11", "seed: 12"))
    with pytest.raises(RunError, match="was paid for before"):
        list(reopen(folder).play())


def test_a_run_that_is_being_played_cannot_be_resumed_beside_it(tmp_path):
    base = with_placement(base_scenario(), checkpoint_seconds=0)
    first = prepare(base, out=tmp_path / "run")
    rows = first.play()
    next(rows)
    with pytest.raises(InputError, match=f"still being played by process {os.getpid()}"):
        list(reopen(tmp_path / "run").play())
    assert len([*rows]) + 1 == first.result.metrics.num_rows
    run(base_scenario(), out=tmp_path / "whole")
    assert_identical(tmp_path / "whole", tmp_path / "run")


def test_a_lost_ledger_row_is_noticed(tmp_path):
    run(base_scenario(), out=tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    (tmp_path / "run" / "ledger" / "ledger.parquet").unlink()
    with pytest.raises(RunError, match="not in the ledger") as refused:
        list(reopen(tmp_path / "run").play())
    assert not refused.value.resumable


@pytest.mark.parametrize("damaged", ["summary.json", "checkpoints/*", "ledger/*", "metrics/*/*"])
def test_a_damaged_run_directory_is_bad_input(damaged, tmp_path):
    run(base_scenario(), out=tmp_path / "run")
    if damaged != "summary.json":
        (tmp_path / "run" / "summary.json").unlink()
    next((tmp_path / "run").glob(damaged)).write_bytes(b"not what it was")
    with pytest.raises(InputError, match="is damaged"):
        list(reopen(tmp_path / "run").play())


@pytest.mark.parametrize("point", range(0, 60, 4))
def test_a_crash_inside_any_durable_write_loses_nothing(point, tmp_path, monkeypatch):
    """The process stops at the n-th write, before or after its rename, with hasty checkpoints."""
    base = with_placement(base_scenario(), clients_per_actor=70, checkpoint_seconds=0.003)
    run(base, out=tmp_path / "whole")
    writes, replace = 0, os.replace

    def dying(source, target):
        nonlocal writes
        writes += 1
        if writes > point:
            if point % 8:
                replace(source, target)
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", dying)
    with contextlib.suppress(KeyboardInterrupt):
        list(prepare(base, out=tmp_path / "run").play())
    monkeypatch.setattr(os, "replace", replace)
    if not (tmp_path / "run" / "scenario.yaml").exists():
        return
    for _ in reopen(tmp_path / "run").play():
        pass
    assert_identical(tmp_path / "whole", tmp_path / "run")


def test_a_client_actor_that_dies_between_repetitions_is_respawned(tmp_path):
    base = with_placement(base_scenario(), clients_per_actor=100)
    backend = Scrambled(1)
    crew = Crew(base, backend, tmp_path)
    crew.begin(0, 0, None)
    backend.kill(crew.clients[1])
    crew.begin(1, 0, None)
    assert crew.epochs == [0, 1]


def conducted(backend, base, tmp_path, disturb=lambda crew, row: None):
    crew = Crew(base, backend, tmp_path)
    crew.begin(0, 0, None)
    (tmp_path / "ledger").mkdir(exist_ok=True)
    (tmp_path / "checkpoints").mkdir(exist_ok=True)
    rows = []
    for row in Conductor(crew).play(base.task.rounds):
        rows.append(row)
        disturb(crew, row)
    return crew, rows


def expected_rows(base, tmp_path):
    return run(base, out=tmp_path / "expected").metrics.to_pylist()


@pytest.mark.parametrize("seed", range(4))
def test_a_client_actor_that_dies_is_respawned_with_the_same_result(seed, tmp_path):
    base = with_placement(base_scenario(), 2, clients_per_actor=30)
    backend = Scrambled(seed)
    dice = random.Random(seed)

    def kill(crew, row):
        backend.kill(crew.clients[dice.randrange(len(crew.clients))])

    crew, rows = conducted(backend, base, tmp_path, kill)
    assert sum(crew.epochs) >= 1
    assert rows == expected_rows(base, tmp_path)


def test_an_actor_that_keeps_dying_ends_the_run(tmp_path):
    base = with_placement(base_scenario(), clients_per_actor=100)
    backend = Scrambled(1)
    crew = Crew(base, backend, tmp_path)
    crew.begin(0, 0, None)
    (tmp_path / "ledger").mkdir()
    spawn = crew._client

    def stillborn(source):
        actor = spawn(source)
        backend.kill(actor)
        return actor

    crew._client = stillborn
    backend.kill(crew.clients[0])
    with pytest.raises(RunError, match=r"died 6 times.*clients_per_actor"):
        list(Conductor(crew).play(3))


@pytest.mark.cluster
def test_a_client_process_killed_in_mid_run_is_respawned(tmp_path, ray_session):
    import ray

    from raydp_sim.actors.on_ray import OnRay

    base = with_placement(base_scenario(), 2, backend="ray", clients_per_actor=100)
    expected = run(with_placement(base_scenario()), out=tmp_path / "expected").metrics.to_pylist()
    pids = []

    def kill(crew, row):
        if not pids:
            pids.append(ray.get(crew.clients[1].__ray_call__.remote(lambda self: os.getpid())))
            os.kill(pids[0], signal.SIGKILL)

    crew, rows = conducted(OnRay(), base, tmp_path, kill)
    assert crew.epochs == [0, 1] and rows == expected
    crew.stop()


@pytest.mark.cluster
@pytest.mark.parametrize("victim", ["shuffler", "aggregator", "metrics"])
def test_a_dead_actor_that_cannot_be_replaced_ends_with_exit_code_3(
    victim, tmp_path, ray_session, monkeypatch, capsys
):
    base = base_scenario()
    run(base, out=tmp_path / "whole")
    document = with_placement(base, backend="ray", checkpoint_seconds=0).document()
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps(document))
    play = Conductor.play

    def disturbed(self, horizon):
        for row in play(self, horizon):
            if row["release"] == 1:
                crew = self.crew
                actor = {"shuffler": crew.collectors[0]}.get(victim) or getattr(crew, victim)
                self.backend.kill(actor)
            yield row

    monkeypatch.setattr(Conductor, "play", disturbed)
    folder = tmp_path / "ray"
    assert exit_code("run", str(file), "--out", str(folder)) == 3
    assert f"raydp-sim resume {folder}" in capsys.readouterr().err.replace("\n", " ")
    monkeypatch.setattr(Conductor, "play", play)
    assert exit_code("resume", str(folder)) == 0
    assert_identical(tmp_path / "whole", folder)


def test_replayed_batches_count_once_and_are_counted(tmp_path):
    """Every collector gets every batch twice; only the count of dropped messages shows it."""
    base = with_placement(base_scenario(), 2, clients_per_actor=30)
    backend = Scrambled(5)
    call = backend.call

    def twice(actor, method, *args, returns=1):
        if method == "collect":
            call(actor, method, *args)
        return call(actor, method, *args, returns=returns)

    backend.call = twice
    crew, rows = conducted(backend, base, tmp_path)
    assert rows == expected_rows(base, tmp_path)
    crew.ask(crew.metrics, "flush")
    again = streams.read(tmp_path / "metrics", "timing").to_pylist()
    dropped = {row["release"]: row["duplicates"] for row in again}
    assert all(dropped[row["release"]] == row["messages"] for row in rows)


def a_batch(release=0, source=0, epoch=0):
    ids = np.arange(5, dtype=np.uint32)
    zeros = np.zeros(5, np.uint8)
    senders = Listed(ids, zeros.astype(np.uint16))
    return Reports(release, source, epoch, senders, zeros, ids)


def test_a_zombie_is_refused():
    inbox = Inbox()
    inbox.admit(0, 2)
    assert not inbox.collect(a_batch(epoch=1))
    assert inbox.collect(a_batch(epoch=2)) and inbox.collect(a_batch(source=1, epoch=0))


def test_a_batch_after_the_close_is_refused():
    inbox = Inbox()
    assert inbox.collect(a_batch())
    assert len(inbox.close(0).senders) == 5
    assert not inbox.collect(a_batch())
    assert len(inbox.close(0).senders) == 0


def test_a_respawned_client_sends_the_same_messages_again():
    base = scenario()
    batches = []
    for epoch in (0, 1):
        actor = ClientActor(base.document(), 0, epoch, 0, 200)
        actor.load(0, None)
        batches.append(actor.report(3, 3.0, None, 1, (), Ask())[1])
    assert np.array_equal(batches[0].payload, batches[1].payload)
    assert [batch.epoch for batch in batches] == [0, 1]


@pytest.mark.cluster
def test_ray_that_does_not_start_in_time_ends_the_process_with_a_message(tmp_path):
    file = tmp_path / "scenario.yaml"
    document = scenario().document() | {"placement": {"start_timeout": 0.2}}
    file.write_text(json.dumps(document))
    command = [sys.executable, "-m", "raydp_sim", "run", str(file), "--out"]
    done = subprocess.run(
        [*command, str(tmp_path / "out")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 3
    assert "Ray did not start within 0.2 s" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.cluster
def test_ctrl_c_ends_with_130_and_the_run_can_be_resumed(tmp_path, ray_session):
    base = base_scenario()
    document = with_placement(base, backend="ray", checkpoint_seconds=0).document()
    document["task"]["rounds"] = 400
    run({**document, "placement": {"backend": "inline"}}, out=tmp_path / "whole")
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps(document))
    folder = tmp_path / "ray"
    command = [sys.executable, "-m", "raydp_sim", "run", str(file), "--out", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not list(folder.glob("checkpoints/*.npz")) and time.monotonic() < deadline:
        time.sleep(0.05)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "raydp-sim resume" in errors
    assert "Traceback" not in errors
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive
    for _ in reopen(folder).play():
        pass
    assert_identical(tmp_path / "whole", folder)
