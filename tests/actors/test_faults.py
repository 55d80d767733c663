"""Nothing is lost: kills, replays and zombies leave the result as it would have been."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from raydp_sim.actors.backend import Lost
from raydp_sim.actors.client import ClientActor
from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.actors.inbox import Inbox
from raydp_sim.cli.main import main
from raydp_sim.errors import InputError, RunError
from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.run import prepare, reopen, run
from raydp_sim.stream.batches import Listed, Reports
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


def killed(base, backend, deaths):
    """Play the scenario in one process for each death, given as a command's number and a folder."""
    document = with_placement(
        base, 2, backend=backend, clients_per_actor=100, checkpoint_seconds=0
    ).document()
    file = next(iter(deaths.values())).with_suffix(".json")
    file.write_text(json.dumps(document))
    points = [f"{last}={folder}" for last, folder in deaths.items()]
    command = [sys.executable, str(KILLED), str(file), *points]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert json.loads(done.stdout) == [-signal.SIGKILL] * len(deaths), done.stderr[-2000:]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run of the base scenario that nothing disturbs."""
    folder = tmp_path_factory.mktemp("faults") / "whole"
    run(base_scenario(), out=folder)
    assert streams.read(folder / "metrics", "withheld").num_rows > 0
    return folder


def check_resumed(whole, folder):
    before = store.read(folder / "ledger")
    resumed = reopen(folder)
    for _ in resumed.play():
        pass
    assert_identical(whole, folder)
    after = store.read(folder / "ledger")
    # No ledger row is lost, none is written twice, and no release has two rows.
    assert after.slice(0, before.num_rows).equals(before)
    releases = streams.read(folder / "metrics", "releases").select(["repetition", "release"])
    keys = [tuple(row.values()) for row in releases.to_pylist()]
    assert len(keys) == len(set(keys))
    paid = after.select(["repetition", "release"]).to_pylist()
    assert keys == [tuple(row.values()) for row in paid]


@pytest.mark.parametrize("seed", [5, pytest.param(7, marks=pytest.mark.long)])
def test_a_driver_killed_at_any_command_resumes_to_the_same_result(seed, tmp_path, monkeypatch):
    """SIGKILL at two seeded points of each of two repetitions (inline backend)."""
    base, commands, execute = base_scenario(repeat=2), [], Conductor.execute

    def counting(self, command):
        commands.append(self.crew.repetition)
        execute(self, command)

    monkeypatch.setattr(Conductor, "execute", counting)
    run(base, out=tmp_path / "whole")
    first, both = commands.count(0), len(commands)
    dice = random.Random(seed)
    points = [*dice.sample(range(3, first), 2), *dice.sample(range(first, both), 2)]
    deaths = {point: tmp_path / f"inline-{point}" for point in points}
    killed(base, "inline", deaths)
    for folder in deaths.values():
        check_resumed(tmp_path / "whole", folder)


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize(
    "point",
    [
        pytest.param(point, marks=[pytest.mark.long] if number else [])
        for number, point in enumerate(random.Random(6).sample(range(3, 34), 5))
    ],
)
def test_a_driver_killed_on_ray_resumes_to_the_same_result(point, whole, tmp_path, ray_session):
    """SIGKILL of the driver of a real Ray run at seeded points; Ray's processes go with it."""
    killed(base_scenario(), "ray", {point: tmp_path / "ray"})
    check_resumed(whole, tmp_path / "ray")


def test_a_complete_run_is_not_played_again(whole):
    again = reopen(whole)
    summary = json.loads((whole / "summary.json").read_text())
    assert again.result is not None and again.result.summary == summary


def test_a_resumed_run_refuses_a_ledger_that_is_not_its_own(tmp_path):
    base = scenario(rounds=ROUNDS, participation={"kind": "self", "probability": 0.5})
    folder = tmp_path / "run"
    killed(base, "inline", {20: folder})
    checkpoints = list((folder / "checkpoints").glob("*.npz"))
    for path in (*checkpoints, *folder.glob("metrics/*/*.parquet")):
        path.unlink()
    text = (folder / "scenario.yaml").read_text()
    (folder / "scenario.yaml").write_text(text.replace("seed: 11", "seed: 12"))
    with pytest.raises(RunError, match="was paid for before"):
        list(reopen(folder).play())


def test_a_run_that_is_being_played_cannot_be_resumed_beside_it(whole, tmp_path):
    base = with_placement(base_scenario(), checkpoint_seconds=0)
    first = prepare(base, out=tmp_path / "run")
    rows = first.play()
    next(rows)
    with pytest.raises(InputError, match=f"still being played by process {os.getpid()}"):
        list(reopen(tmp_path / "run").play())
    assert len([*rows]) + 1 == first.result.metrics.num_rows
    assert_identical(whole, tmp_path / "run")


def test_a_lost_ledger_row_is_noticed(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    (tmp_path / "run" / "ledger" / store.COMPACTED).unlink()
    with pytest.raises(RunError, match="not in the ledger") as refused:
        list(reopen(tmp_path / "run").play())
    assert not refused.value.resumable


@pytest.mark.parametrize("damaged", ["summary.json", "checkpoints/*", "ledger/*", "metrics/*/*"])
def test_a_damaged_run_directory_is_bad_input(damaged, whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    if damaged != "summary.json":
        (tmp_path / "run" / "summary.json").unlink()
    next((tmp_path / "run").glob(damaged)).write_bytes(b"not what it was")
    with pytest.raises(InputError, match="is damaged"):
        list(reopen(tmp_path / "run").play())


@pytest.mark.parametrize(
    "pause,point",
    [(0, point) for point in range(0, 104, 11)] + [(3600, point) for point in range(1, 37, 5)],
)
def test_a_crash_inside_any_durable_write_loses_nothing(pause, point, whole, tmp_path, monkeypatch):
    """The process stops at the n-th step towards the disk, before or after it was made.

    With a checkpoint after every release, and with none before the last.
    """
    base = with_placement(base_scenario(), clients_per_actor=70, checkpoint_seconds=pause)
    steps = 0

    def dying(function):
        def call(*args):
            nonlocal steps
            steps += 1
            if steps <= point:
                return function(*args)
            if point % 2:
                function(*args)
            raise KeyboardInterrupt

        return call

    with monkeypatch.context() as patch:
        for name in ("write", "fsync", "replace", "unlink"):
            patch.setattr(os, name, dying(getattr(os, name)))
        with pytest.raises(KeyboardInterrupt):
            list(prepare(base, out=tmp_path / "run").play())
    if not (tmp_path / "run" / "scenario.yaml").exists():
        return
    for _ in reopen(tmp_path / "run").play():
        pass
    assert_identical(whole, tmp_path / "run")


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


def rows_of(folder):
    return reopen(folder).result.metrics.to_pylist()


@pytest.mark.parametrize("seed", range(4))
def test_a_client_actor_that_dies_is_respawned_with_the_same_result(seed, whole, tmp_path):
    base = with_placement(base_scenario(), 2, clients_per_actor=30)
    backend = Scrambled(seed)
    dice = random.Random(seed)

    def kill(crew, row):
        backend.kill(crew.clients[dice.randrange(len(crew.clients))])

    crew, rows = conducted(backend, base, tmp_path, kill)
    assert sum(crew.epochs) >= 1
    assert rows == rows_of(whole)


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
def test_a_client_process_killed_in_mid_run_is_respawned(whole, tmp_path, ray_session):
    import ray

    from raydp_sim.actors.on_ray import OnRay

    base = with_placement(base_scenario(), 2, backend="ray", clients_per_actor=100)
    pids = []

    class Killing(OnRay):
        def call(self, actor, method, *args, returns=1):
            if method == "report" and args[0] == 2 and not pids:
                pids.append(ray.get(actor.__ray_call__.remote(lambda self: os.getpid())))
                os.kill(pids[0], signal.SIGKILL)
            return super().call(actor, method, *args, returns=returns)

    crew, rows = conducted(Killing(), base, tmp_path)
    assert sorted(crew.epochs) == [0, 1] and rows == rows_of(whole)
    crew.stop()


def test_replayed_batches_count_once_and_are_counted(whole, tmp_path):
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
    assert rows == rows_of(whole)
    crew.ask(crew.metrics, "flush")
    again = streams.read(tmp_path / "metrics", "timing").to_pylist()
    dropped = {row["release"]: row["duplicates"] for row in again}
    assert all(dropped[row["release"]] == row["messages"] for row in rows)


@pytest.mark.parametrize("shufflers", [1, 2])
def test_a_batch_that_is_lost_on_its_way_is_made_again(shufflers, whole, tmp_path):
    """Its actor has answered; whoever shares a call with it is not asked again."""
    base = with_placement(base_scenario(), shufflers, clients_per_actor=30)
    backend, lost = Scrambled(5), []
    crew = Crew(base, backend, tmp_path)
    call, victim = backend.call, crew.clients[1]

    def losing(actor, method, *args, returns=1):
        refs = call(actor, method, *args, returns=returns)
        if method == "report" and actor is victim and args[0] == 2:
            refs[-1].error = Lost("the object is gone")
            lost.append(refs)
        if method == "reports" and actor is victim and args[0][0][0] == 2:
            refs[-1].error = Lost("the object is gone")
            lost.append(refs)
        return refs

    backend.call = losing
    crew.begin(0, 0, None)
    (tmp_path / "ledger").mkdir()
    rows = list(Conductor(crew).play(base.task.rounds))
    assert rows == rows_of(whole) and len(lost) == 1
    assert crew.epochs == [int(place == 1) for place in range(len(crew.clients))]


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
        actor.load(0)
        batches.append(actor.report(3, 3.0, None, 1, (3,), Ask(actor.setting.mechanism), {})[1])
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
