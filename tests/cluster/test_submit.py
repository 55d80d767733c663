"""`raydp-sim submit` against a job server: handed in, followed, cut off, attached, brought back."""

import base64
import contextlib
import hashlib
import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from raydp_sim.actors.leftovers import clear
from raydp_sim.cli import submit
from raydp_sim.cli.main import main
from raydp_sim.errors import InputError, RunError
from raydp_sim.remote import handed, parcel
from raydp_sim.remote.jobs import Jobs
from raydp_sim.run import run
from tests.conftest import assert_identical, scenario

ROOT = Path(__file__).resolve().parents[2]
# Stands in for raydp-sim on a cluster: notes its words, and lays down a run that is finished.
SHIM = """#!/bin/sh
echo "$@" >> {folder}/words
echo "release 3 of 3" >&2
[ "$1" = run ] && for word in "$@"; do
  [ "$last" = --out ] && out=$word
  last=$word
done
[ "$1" = resume ] && out=$2
mkdir -p $out && cp -r {made}/. $out && exit $(cat {folder}/code-$1 2> /dev/null || echo 0)
"""


class Server(ThreadingHTTPServer):
    """Ray's job API as documented: runs the commands that it is given with a shell, one by one."""

    daemon_threads = True

    def __init__(self, folder: Path, made: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.token = folder, None
        self.jobs: dict[str, dict] = {}
        tools = folder / "bin"
        tools.mkdir()
        (tools / "raydp-sim").write_text(SHIM.format(folder=folder, made=made))
        (tools / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        for tool in tools.iterdir():
            tool.chmod(0o755)
        self.path = f"{tools}:{os.environ['PATH']}"

    def play(self, request: dict) -> None:
        name = request["submission_id"]
        job = {"status": "RUNNING", "metadata": request["metadata"], "logs": ""}
        self.jobs[name] = job
        variables = request["runtime_env"]["env_vars"]
        done = subprocess.run(
            ["sh", "-c", request["entrypoint"]],
            env={**os.environ, **variables, "PATH": self.path, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
        )
        job["logs"], job["driver_exit_code"] = done.stdout, done.returncode
        job["message"] = f"ended with {done.returncode}"
        job["status"] = "FAILED" if done.returncode else "SUCCEEDED"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass

    def answer(self, code, body):
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def admitted(self):
        wanted = self.server.token
        if wanted is None or self.headers.get("Authorization") == f"Bearer {wanted}":
            return True
        self.answer(401, "Unauthorized: no token")
        return False

    def do_GET(self):
        if not self.admitted():
            return
        name = self.path.split("/")[3]
        if name not in self.server.jobs:
            return self.answer(404, f"Job {name} does not exist")
        self.answer(200, self.server.jobs[name])

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.admitted():
            return
        if self.path.endswith("/stop"):
            self.server.jobs[self.path.split("/")[3]]["status"] = "STOPPED"
            return self.answer(200, {"stopped": True})
        self.server.play(json.loads(body))
        self.answer(200, {"submission_id": json.loads(body)["submission_id"]})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The run that comes back."""
    folder = tmp_path_factory.mktemp("submit") / "made"
    run(scenario(40, rounds=3), out=folder)
    return folder


@pytest.fixture
def served(made, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr(submit, "_LOOK_SECONDS", 0.01)
    (tmp_path / "head").mkdir()
    with Server(tmp_path / "head", made) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def exit_code(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code or 0


def handed_in(tmp_path, server, *more, **sections):
    file = tmp_path / "own.yaml"
    document = scenario(40, rounds=3, **sections).document()
    document["placement"]["backend"] = "ray"
    file.write_text(json.dumps(document))
    address = f"http://127.0.0.1:{server.server_port}"
    there = ("--there", str(tmp_path / "head" / "runs"))
    return exit_code("submit", str(file), "--address", address, *there, *more)


def test_a_run_is_handed_in_and_comes_back_whole(made, served, tmp_path, capsys):
    assert handed_in(tmp_path, served, "--out", str(tmp_path / "back"), "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["metrics"]["releases"] == 3
    assert "release 3 of 3" in err and "follow it anywhere with --attach small-" in err
    for path in made.rglob("*"):
        if path.is_file() and path.name != ".lock":
            assert (tmp_path / "back" / path.relative_to(made)).read_bytes() == path.read_bytes()
    (text,) = (tmp_path / "head" / "runs").glob("small-*.yaml")
    assert text.read_text() == (tmp_path / "own.yaml").read_text()


def test_options_reach_the_cluster_unharmed(served, tmp_path):
    strange = 'description=it\'s $HOME; `true` "all"'
    words = ("--set", strange, "--seed", "5", "--out", str(tmp_path / "back"))
    assert handed_in(tmp_path, served, *words) == 0
    assert f"--set {strange} --seed 5\n" in (tmp_path / "head" / "words").read_text()


def test_one_follows_it_again_after_the_terminal_was_closed(served, tmp_path, capsys, monkeypatch):
    def cut_off(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(submit, "_followed", cut_off)
        assert handed_in(tmp_path, served) == 130
    said = " ".join(capsys.readouterr().err.split())
    name = said.split("--attach ")[-1].split()[0]
    assert "the run goes on" in said
    address = f"127.0.0.1:{served.server_port}"
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        # The second time it is here already.
        assert exit_code("submit", "--attach", name, "--address", address) == 0
        assert (tmp_path / "runs" / name / "summary.json").exists()
    assert sum("copy" in job for job in served.jobs) == 1


def test_what_the_cluster_refuses_is_bad_input(served, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(handed, "playing", lambda *_: "echo no such thing; exit 2")
    assert handed_in(tmp_path, served) == 2
    assert "no such thing" in capsys.readouterr().err


def test_a_run_that_cannot_go_on_is_resumed_by_itself(served, tmp_path):
    (tmp_path / "head" / "code-run").write_text("3")
    assert handed_in(tmp_path, served, "--out", str(tmp_path / "back")) == 0
    commands = [line.split()[0] for line in (tmp_path / "head" / "words").read_text().splitlines()]
    assert commands == ["run", "resume"]


def test_one_that_never_can_ends_with_exit_code_3(served, tmp_path, capsys):
    for kind in ("run", "resume"):
        (tmp_path / "head" / f"code-{kind}").write_text("3")
    assert handed_in(tmp_path, served) == 3
    commands = [line.split()[0] for line in (tmp_path / "head" / "words").read_text().splitlines()]
    assert commands == ["run", *["resume"] * 3]
    assert str(tmp_path / "head" / "runs") in capsys.readouterr().err.replace("\n", "")


def test_a_token_is_sent_where_there_is_one(served, tmp_path, capsys, monkeypatch):
    served.token = "secret"
    assert handed_in(tmp_path, served) == 2
    assert "RAY_AUTH_TOKEN" in capsys.readouterr().err
    (tmp_path / "token").write_text("secret\n")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    assert handed_in(tmp_path, served, "--out", str(tmp_path / "back")) == 0


@pytest.mark.parametrize(
    "words,says",
    [
        (("--attach", "nobody"), "there is no job 'nobody'"),
        (("--attach", "nobody", "--stop", "other"), "give one of"),
        ((), "give one of"),
        (("quickstart", "--set", "placement.backend=inline"), "placement.backend"),
        (("quickstart", "--set", "population.clients=-1"), "population.clients"),
        (("--attach", "nobody", "--seed", "3"), "--seed"),
    ],
)
def test_bad_input_is_named(words, says, served, capsys):
    address = f"http://127.0.0.1:{served.server_port}"
    assert exit_code("submit", *words, "--address", address) == 2
    assert says in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("address", ["ftp://head:1", "ray://head:10001"])
def test_an_address_of_another_kind_is_named(address):
    with pytest.raises(InputError, match=r"--address is .*http://HOST:8265"):
        Jobs(address)


def test_nobody_at_the_address_is_bad_input():
    with pytest.raises(InputError, match=r"no Ray job server answers there.*ray\[default\]"):
        Jobs("127.0.0.1:1").about("a")


def test_a_parcel_that_is_not_whole_is_refused(tmp_path):
    (tmp_path / "run" / "deep").mkdir(parents=True)
    (tmp_path / "run" / "deep" / "file").write_bytes(os.urandom(200_000))
    lines = ["somebody else's line", *parcel.wrapped(tmp_path / "run"), "and another"]
    parcel.unwrap("\n".join(lines), tmp_path / "copy")
    same = (tmp_path / "run" / "deep" / "file").read_bytes()
    assert (tmp_path / "copy" / "deep" / "file").read_bytes() == same
    for damaged in (lines[:2], [*lines[:2], *lines[3:]], []):
        with pytest.raises(RunError, match="try again"):
            parcel.unwrap("\n".join(damaged), tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("name", ["/etc/absolute", "../beside", "a/../../b"])
def test_a_parcel_stays_in_its_folder(name, tmp_path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(name), io.BytesIO(b""))
    content = zlib.compress(buffer.getvalue())
    lines = [base64.b64encode(content).decode(), f"end {hashlib.sha256(content).hexdigest()}"]
    with pytest.raises(RunError, match="no file of a run"):
        parcel.unwrap("\n".join(f"parcel {line}" for line in lines), tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == []


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.timeout(600)
def test_a_real_job_server(tmp_path, monkeypatch):
    """A head with Ray's dashboard, in processes of its own; ended by its process id."""
    pytest.importorskip("aiohttp_cors", reason="Ray's job server needs the extra `cluster`")
    tools = Path(sys.executable).parent
    if not (tools / "raydp-sim").exists():
        pytest.skip("raydp-sim is not installed beside this Python")
    ports = {"--port": free_port(), "--dashboard-port": free_port()}
    words = [f"{name}={port}" for name, port in ports.items()]
    short = tempfile.mkdtemp(prefix="rsj-", dir="/tmp")
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    started = subprocess.Popen(
        [
            tools / "ray",
            "start",
            "--head",
            "--block",
            "--num-cpus=2",
            f"--temp-dir={short}",
            *words,
        ],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        jobs = Jobs(f"127.0.0.1:{ports['--dashboard-port']}")
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with contextlib.suppress(InputError, RunError):
                jobs._asked("GET", "/api/version")
                break
            time.sleep(0.5)
        file = tmp_path / "own.yaml"
        document = scenario(40, rounds=3).document()
        document["placement"]["backend"] = "ray"
        file.write_text(json.dumps(document))
        words = ("--there", str(tmp_path / "there"), "--out", str(tmp_path / "back"))
        assert exit_code("submit", str(file), "--address", jobs.address, *words) == 0
        run(scenario(40, rounds=3), out=tmp_path / "here")
        assert_identical(tmp_path / "here", tmp_path / "back")
    finally:
        started.terminate()
        started.wait(60)
        clear(short)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return held.getsockname()[1]
