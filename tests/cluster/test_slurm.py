"""cluster/slurm.sh on a real Slurm: its daemons on this machine, two nodes, one scenario."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from raydp_sim.run import run
from tests.conftest import assert_identical, scenario, with_placement

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("slurmctld", "slurmd", "sbatch", "srun", "sinfo", "squeue", "munged")
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""

pytestmark = [pytest.mark.long, pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.fixture
def slurm(tmp_path_factory):
    """Slurm's daemons in processes of this test, ended by their ids; yields the environment."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    missing = [tool for tool in TOOLS if shutil.which(tool, path=path) is None]
    if missing:
        pytest.skip(f"there is no {missing[0]}: apt-get install slurm-wlm munge")
    if os.geteuid() != 0:
        pytest.skip("slurmd starts jobs as other users, so it has to be root")
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("state", "spool-n1", "spool-n2"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        ports = [each.getsockname()[1] for each in sockets]
    file = folder / "slurm.conf"
    host = socket.gethostname().split(".")[0]
    file.write_text(CONFIGURATION.format(host=host, ports=ports, folder=folder))
    environment = {**os.environ, "PATH": path, "SLURM_CONF": str(file)}
    munge = [f"--{name}={folder}/munge.{end}" for name, end in MUNGE.items()]
    commands = [["munged", "--foreground", "--force", *munge]]
    commands += [["slurmctld", "-D", "-f", str(file)]]
    commands += [["slurmd", "-D", "-N", name, "-f", str(file)] for name in ("n1", "n2")]
    with contextlib.ExitStack() as ended:
        for number, command in enumerate(commands):
            log = ended.enter_context(open(folder / f"{number}.out", "wb"))
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            ended.callback(process.wait, 60)
            ended.callback(process.terminate)
            time.sleep(1.0)  # each needs the one before it
        until(lambda: said(environment, "sinfo", "-h", "-o", "%D %t") == "2 idle")
        yield environment


MUNGE = {
    "socket": "sock",
    "key-file": "key",
    "log-file": "log",
    "pid-file": "pid",
    "seed-file": "seed",
}


def said(environment, *command):
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return done.stdout.strip()


def until(condition, seconds=300.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def test_a_scenario_is_played_on_two_nodes_and_everything_is_taken_down(slurm, tmp_path):
    base = scenario(200, rounds=4)
    placed = with_placement(base, backend="ray", clients_per_actor=50)
    file = tmp_path / "own.yaml"
    file.write_text(yaml.safe_dump(placed.document()))
    # What is tried is this checkout, by this Python, wherever raydp-sim is installed.
    tools = tmp_path / "env" / "bin"
    tools.mkdir(parents=True)
    python = Path(sys.executable)
    (tools / "python").write_text(f'#!/bin/sh\nexec {python} "$@"\n')
    (tools / "raydp-sim").write_text(f'#!/bin/sh\nexec {python} -m raydp_sim "$@"\n')
    (tools / "ray").write_text(f'#!/bin/sh\nexec {python.parent}/ray "$@"\n')
    # Of containers only the words are tried: what is to run in one runs beside it.
    entered = tmp_path / "entered"
    (tools / "apptainer").write_text(
        f'#!/bin/sh\necho "$*" >> {entered}\n'
        'test "$1 $2 $4" = "exec --bind own.sif" || exit 1\nshift 4\nexec "$@"\n'
    )
    for tool in tools.iterdir():
        tool.chmod(0o755)
    more = {"PYTHONPATH": str(ROOT), "RAYDP_SIM_ENV": str(tools.parent)}
    words = ["--nodes=2", "--cpus-per-task=1", f"--output={tmp_path}/job.log"]
    script, out = str(ROOT / "cluster" / "slurm.sh"), str(tmp_path / "out")
    for image in ({}, {"RAYDP_SIM_IMAGE": "own.sif"}):
        # The second time it is complete: its summary is printed again.
        sent = said({**slurm, **more, **image}, "sbatch", *words, script, str(file), out)
        assert sent.startswith("Submitted")
        until(lambda: not said(slurm, "squeue", "-h"))
        log = (tmp_path / "job.log").read_text()
        assert (tmp_path / "out" / "summary.json").exists(), log[-3000:]
        assert "releases                  4 of 4" in log
    assert "already complete" in log
    words = entered.read_text()
    assert words.count(" ray start ") == 2 and words.count(" raydp-sim resume ") == 1
    run(base, out=tmp_path / "here")
    assert_identical(tmp_path / "here", tmp_path / "out")
    assert not list(Path("/tmp").glob("rs-slurm-*"))
