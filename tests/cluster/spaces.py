"""Ray nodes on this machine, each in a network namespace with an address of its own."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from raydp_sim.actors.leftovers import clear

ROOT = Path(__file__).resolve().parents[2]
PORT = 6379


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Spaces:
    """Namespaces that a bridge joins; the first has the head, and drivers."""

    def __init__(self, number: int, held: contextlib.ExitStack) -> None:
        self.mark = f"{os.getpid() % 100000}"
        self.bridge = f"rsb{self.mark}"
        self.processes: list[subprocess.Popen] = []
        self.folder = tempfile.mkdtemp(prefix="rsn-", dir="/tmp")
        held.callback(clear, self.folder)
        ip("link", "add", self.bridge, "type", "bridge")
        held.callback(ip, "link", "del", self.bridge)
        ip("link", "set", self.bridge, "up")
        for place in range(number):
            self._join(place, held)
        held.callback(self._end)
        for place in range(number):
            self.start(place)

    def name(self, place: int) -> str:
        return f"rs{self.mark}-{place}"

    def address(self, place: int) -> str:
        return f"198.18.{int(self.mark) % 250}.{place + 1}"

    @property
    def head(self) -> str:
        return f"{self.address(0)}:{PORT}"

    def _join(self, place: int, held: contextlib.ExitStack) -> None:
        name, outer, inner = self.name(place), f"rso{self.mark}{place}", f"rsi{self.mark}{place}"
        ip("netns", "add", name)
        held.callback(ip, "netns", "del", name)
        ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", name)
        ip("link", "set", outer, "master", self.bridge, "up")
        ip("-n", name, "addr", "add", f"{self.address(place)}/24", "dev", inner)
        ip("-n", name, "link", "set", inner, "up")
        ip("-n", name, "link", "set", "lo", "up")

    def inside(self, place: int, *command: str, **options) -> subprocess.Popen:
        """Start a process in a namespace."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
        environment |= {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_AUTH_MODE": "disabled"}
        words = ["ip", "netns", "exec", self.name(place), *command]
        return subprocess.Popen(words, env=environment, text=True, **options)

    def start(self, place: int) -> None:
        ray = str(Path(sys.executable).with_name("ray"))
        own = f"--node-ip-address={self.address(place)}"
        if place:
            words = [f"--address={self.head}"]
        else:
            words = ["--head", f"--port={PORT}", f"--temp-dir={self.folder}"]
            words += ["--include-dashboard=false"]
        log = subprocess.DEVNULL
        command = (ray, "start", *words, own, "--num-cpus=1", "--block")
        self.processes.append(self.inside(place, *command, stdout=log, stderr=log))
        # One after the other: they share a folder, where each chooses names for its sockets.
        self.gather(place + 1)

    def gather(self, nodes: int) -> None:
        """Wait until so many have joined."""
        module = ("-m", "raydp_sim.actors.gathered", self.head, str(nodes))
        assert self.inside(0, sys.executable, *module).wait(240) == 0

    def lose(self, place: int) -> None:
        """End every process in a namespace at once."""
        listed = subprocess.run(
            ["ip", "netns", "pids", self.name(place)], capture_output=True, text=True, check=True
        )
        for pid in listed.stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), 9)

    def _end(self) -> None:
        for place in range(len(self.processes)):
            with contextlib.suppress(subprocess.CalledProcessError):
                self.lose(place)
        for process in self.processes:
            process.wait(60)

    def play(self, file: Path, out: Path) -> subprocess.Popen:
        """Start a driver on the head."""
        words = ("-m", "raydp_sim", "run", str(file), "--address", self.head, "--out", str(out))
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return self.inside(0, sys.executable, *words, **pipes)


@contextlib.contextmanager
def spaces(number: int) -> Iterator[Spaces]:
    """Hold some nodes; skip where namespaces are not permitted."""
    if shutil.which("ip") is None:
        pytest.skip("there is no ip: apt-get install iproute2")
    probe = f"rs{os.getpid() % 100000}-probe"
    if subprocess.run(["ip", "netns", "add", probe], capture_output=True).returncode:
        pytest.skip(
            "network namespaces are not permitted here; test_placement has two nodes of one"
        )
    ip("netns", "del", probe)
    with contextlib.ExitStack() as held:
        yield Spaces(number, held)
