"""A killed driver leaves nothing behind, and nothing that lives or is another's is touched."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from raydp_sim.actors import leftovers
from raydp_sim.run import reopen, run
from tests.cli.test_bad_input import write
from tests.cli.test_on_ray import start
from tests.conftest import assert_identical

NOBODY = 4_194_305  # beyond the largest process id there can be
LIMIT = 15.0  # seconds that something of a run may survive its driver, or a run Ray's GCS
SPIN = 0.01


def writer(path: Path) -> psutil.Process:
    """Start a process that has a file open, as Ray's have their logs."""
    script = "import sys, time; file = open(sys.argv[1], 'w'); print(1, flush=True); time.sleep(60)"
    command = [sys.executable, "-c", script, str(path)]
    started = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert started.stdout.readline() == b"1\n"
    started.stdout.close()
    return started


def made(parent: Path, name: str, locked: bool, age: float = 0.0) -> Path:
    folder = parent / name
    (folder / "logs").mkdir(parents=True)
    if locked:
        (folder / "alive").write_text("")
    os.utime(folder, (time.time() - age, time.time() - age))
    return folder


def test_the_next_start_sweeps_what_a_killed_driver_left(tmp_path):
    folder = made(tmp_path, f"rs-{NOBODY}-abc", locked=True)
    orphan = writer(folder / "logs" / "agent.out")
    leftovers.sweep(str(tmp_path))
    assert not folder.exists()
    assert orphan.wait(10) is not None


def test_a_folder_whose_driver_lives_is_left_alone(tmp_path):
    """Whatever its name says: another container may share the folder, but not its process ids."""
    folder = made(tmp_path, f"rs-{NOBODY}-abc", locked=True, age=1e6)
    worker = writer(folder / "logs" / "agent.out")
    try:
        with open(folder / "alive") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # From another process: one's own lock does not stop one.
            code = f"from raydp_sim.actors.leftovers import sweep; sweep({str(tmp_path)!r})"
            root = str(Path(__file__).resolve().parents[2])
            subprocess.run([sys.executable, "-c", code], check=True, cwd=root, timeout=60)
        assert folder.exists() and worker.poll() is None
    finally:
        worker.kill()
        worker.wait()


@pytest.mark.parametrize(
    "name,age,goes",
    [
        (f"rs-{NOBODY}-abc", 7200.0, True),
        (f"rs-{NOBODY}-abc", 0.0, False),
        (f"rs-{os.getppid()}-abc", 7200.0, False),
        ("rs-notes", 7200.0, False),
        ("ray", 7200.0, False),
    ],
)
def test_a_folder_without_a_lock_goes_only_if_it_is_old_and_its_process_is_not(
    name, age, goes, tmp_path
):
    made(tmp_path, name, locked=False, age=age)
    leftovers.sweep(str(tmp_path))
    assert (tmp_path / name).exists() != goes


def test_folders_of_others_and_links_are_left_alone(tmp_path, monkeypatch):
    folder = made(tmp_path, f"rs-{NOBODY}-abc", locked=True)
    target = made(tmp_path, "target", locked=True)
    (tmp_path / f"rs-{NOBODY}-link").symlink_to(target)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    leftovers.sweep(str(tmp_path))
    assert folder.exists()
    monkeypatch.undo()
    leftovers.sweep(str(tmp_path))
    assert not folder.exists() and target.exists()


def test_the_guard_clears_up_when_its_driver_is_killed(tmp_path):
    """The driver here only makes the folder and a process in it, and is killed."""
    script = """
import os, signal, subprocess, sys, tempfile
from raydp_sim.actors.leftovers import private_folder
tempfile.tempdir = sys.argv[1]
with private_folder() as folder:
    code = "import sys, time; file = open(sys.argv[1], 'w'); print(1, flush=True); time.sleep(60)"
    command = [sys.executable, "-c", code, folder + "/agent.out"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    child.stdout.read(1)
    print(child.pid, folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    root = str(Path(__file__).resolve().parents[2])
    parent = tmp_path
    if len(str(parent)) > 40:
        parent = Path("/tmp")
    done = subprocess.run(
        [sys.executable, "-c", script, str(parent)], capture_output=True, text=True, cwd=root
    )
    assert done.returncode == -9, done.stderr
    pid, folder = done.stdout.split()
    assert gone([int(pid)], Path(folder))


def gone(pids: list[int], folder: Path) -> bool:
    """Wait until processes and a folder are no more.

    Seconds are those of an idle machine: of a busy one they count by the part of a core that
    somebody gets who works all the time.
    """
    left = LIMIT
    while left > 0.0:
        if not folder.exists() and not any(_alive(pid) for pid in pids):
            print(f"gone {LIMIT - left:.1f} s later")
            return True
        begun, spun = time.monotonic(), time.process_time()
        while time.process_time() < spun + SPIN:
            pass
        part = SPIN / (time.monotonic() - begun)
        time.sleep(0.1)
        left -= min(1.0, part) * (time.monotonic() - begun)
    return False


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize("victim", ["driver", pytest.param("gcs_server", marks=pytest.mark.long)])
def test_nothing_survives_the_driver_nor_ray_its_control(victim, tmp_path, ray_session):
    """SIGKILL of the driver, or of Ray's GCS: then exit code 3; both are resumable."""
    changes = {"task.rounds": 150, "placement.checkpoint_seconds": 0.2}
    path = write(tmp_path, {**changes, "placement.backend": "ray"})
    process = start(tmp_path, "run", path, "--out", "made")
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("made/checkpoints/*.npz")) and time.monotonic() < deadline:
        time.sleep(0.05)
    children = psutil.Process(process.pid).children(recursive=True)
    (folder,) = Path("/tmp").glob(f"rs-{process.pid}-*")
    if victim == "driver":
        process.kill()
    else:
        next(child for child in children if child.name() == victim).kill()
    assert gone([child.pid for child in children], folder)
    _, err = process.communicate(timeout=30)
    assert process.returncode == (-9 if victim == "driver" else 3), err
    assert "Traceback" not in err
    if victim != "driver":
        assert f"raydp-sim resume {tmp_path}/made" in " ".join(err.split())
    list(reopen(tmp_path / "made").play())
    run(path, out=tmp_path / "inline", placement__backend="inline")
    assert_identical(tmp_path / "made", tmp_path / "inline")
