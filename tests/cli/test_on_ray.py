"""The command line as a process with a private Ray: Ctrl-C, resuming, classes of the user."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from raydp_sim.run import reopen, run
from tests.cli.test_bad_input import write
from tests.cli.test_commands import write_own
from tests.conftest import assert_identical

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

ROOT = str(Path(__file__).resolve().parents[2])
COMMAND = [sys.executable, "-c", "from raydp_sim.cli.main import main; main()"]


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the command in a process group of its own, as a shell does."""
    environment = {**os.environ, "PYTHONPATH": ROOT, "PYTHONSAFEPATH": "1"}
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(folder: Path, *arguments: str) -> str:
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    # No wall of anybody's log lines.
    assert len(err.splitlines()) < 20, err
    return out


def test_ctrl_c_in_mid_run_then_resume_gives_the_same_run(
    tmp_path: Path, ray_session: None
) -> None:
    rounds = {"task.rounds": 150, "placement.checkpoint_seconds": 0.2}
    path = write(tmp_path, {**rounds, "placement.backend": "ray"})
    process = start(tmp_path, "run", path, "--out", "made")
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("made/checkpoints/*.npz")) and time.monotonic() < deadline:
        time.sleep(0.05)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) > 3
    # A terminal sends it to the whole group, Ray's processes included; people press twice.
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert f"raydp-sim resume {tmp_path}/made" in err
    assert "Traceback" not in err
    assert not (tmp_path / "made" / "summary.json").exists()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive

    for _ in reopen(tmp_path / "made").play():
        pass
    summary = json.loads((tmp_path / "made" / "summary.json").read_text())
    assert summary["metrics"]["releases"] == 150
    run(path, out=tmp_path / "inline", placement__backend="inline")
    assert_identical(tmp_path / "made", tmp_path / "inline")


def test_classes_of_the_user_are_found_by_every_actor(tmp_path: Path) -> None:
    path = write_own(tmp_path / "deep", "own_on_ray")
    options = ["--set", "placement.backend=ray", "--out", "made", "--json"]
    summary = json.loads(finish(tmp_path, "run", path, *options))
    assert summary["metrics"]["releases"] == 2


def test_no_cluster_at_the_address(tmp_path: Path) -> None:
    """In a process of its own: one that has a Ray already would use that."""
    path = write(tmp_path, {"placement.backend": "ray"})
    process = start(tmp_path, "run", path, "--address", "127.0.0.1:1")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    assert out == "" and "Traceback" not in err
    (message,) = [line for line in err.splitlines() if line.startswith("raydp-sim: ")]
    for word in ("--address", "'127.0.0.1:1'", "ray start --head"):
        assert word in message
    assert {path.name for path in tmp_path.iterdir()} == {"bad.yaml"}
