"""Ray nodes on this machine, each in a network namespace with an address of its own."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from raydp_sim.actors.leftovers import clear

ROOT = Path(__file__).resolve().parents[2]
PORT = 6379
DISK_BYTES = 64 << 20
# A head that notices after some three seconds that a node does not answer, not after thirty.
ALERT = {"RAY_health_check_period_ms": "500", "RAY_health_check_timeout_ms": "2000"}
ALERT |= {"RAY_health_check_failure_threshold": "3", "RAY_health_check_initial_delay_ms": "0"}


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Spaces:
    """Namespaces that a bridge joins; the first has the head, and drivers unless told otherwise.

    Attributes:
        disk: a small disk of its own, which all of them see.
    """

    def __init__(
        self,
        number: int,
        held: contextlib.ExitStack,
        variables: dict[str, str],
        memory: int | None,
    ) -> None:
        self.mark = f"{os.getpid() % 100000}"
        self.bridge = f"rsb{self.mark}"
        self.variables, self.memory = variables, memory
        self.nodes: dict[int, subprocess.Popen] = {}
        self.folder = tempfile.mkdtemp(prefix="rsn-", dir="/tmp")
        held.callback(clear, self.folder)
        self.disk = Path(tempfile.mkdtemp(prefix="rsd-", dir="/tmp"))
        held.callback(self.disk.rmdir)
        # Before any node is there: each sees the mounts that there were when it was started.
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(self.disk)]
        subprocess.run(mount, check=True, capture_output=True)
        held.callback(subprocess.run, ["umount", str(self.disk)], check=True)
        ip("link", "add", self.bridge, "type", "bridge")
        held.callback(ip, "link", "del", self.bridge)
        ip("link", "set", self.bridge, "up")
        self.spaces = range(number)
        for place in self.spaces:
            self._join(place, held)
        held.callback(self._end)
        for place in self.spaces:
            self.start(place)

    def name(self, place: int) -> str:
        return f"rs{self.mark}-{place}"

    def address(self, place: int) -> str:
        return f"198.18.{int(self.mark) % 250}.{place + 1}"

    @property
    def head(self) -> str:
        return f"{self.address(0)}:{PORT}"

    def outer(self, place: int) -> str:
        """Name the end of a node's wire that is at the bridge."""
        return f"rso{self.mark}{place}"

    def _join(self, place: int, held: contextlib.ExitStack) -> None:
        name, outer, inner = self.name(place), self.outer(place), f"rsi{self.mark}{place}"
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
        environment |= self.variables
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
        if self.memory is not None:
            words.append(f"--memory={self.memory}")
        log = subprocess.DEVNULL
        command = (ray, "start", *words, own, "--num-cpus=1", "--block")
        self.nodes[place] = self.inside(place, *command, stdout=log, stderr=log)
        # One after the other: they share a folder, where each chooses names for its sockets.
        if not place:
            module = ("-m", "raydp_sim.actors.gathered", self.head, "1")
            assert self.inside(0, sys.executable, *module).wait(240) == 0
        self.settle()

    def alive(self, *addresses: str) -> list[str]:
        """Return where nodes are that Ray has not given up, once they are at these addresses."""
        module = ("-m", "tests.cluster.alive", self.head, *addresses)
        asking = self.inside(0, sys.executable, *module, stdout=subprocess.PIPE)
        said, _ = asking.communicate(timeout=240)
        assert asking.returncode == 0, said
        return json.loads(said)

    def settle(self) -> None:
        """Wait until Ray sees the nodes that were started, and no longer those that were lost."""
        self.alive(*map(self.address, self.nodes))

    def _pids(self, place: int) -> list[int]:
        words = ["ip", "netns", "pids", self.name(place)]
        listed = subprocess.run(words, capture_output=True, text=True, check=True)
        return [int(pid) for pid in listed.stdout.split()]

    def _signal(self, place: int, sent: signal.Signals, spared: tuple[int, ...] = ()) -> None:
        for pid in self._pids(place):
            if pid not in spared:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, sent)

    def lose(self, place: int, *spared: int) -> None:
        """End every process in a namespace at once, but for some."""
        self._signal(place, signal.SIGKILL, spared)
        if place in self.nodes:
            self.nodes.pop(place).wait(60)

    def cut(self, place: int) -> None:
        """Pull the plug of a node's wire."""
        ip("link", "set", self.outer(place), "down")

    def join_again(self, place: int) -> None:
        """Put it back."""
        ip("link", "set", self.outer(place), "up")

    @contextlib.contextmanager
    def slow(self, place: int, stopped: float = 0.4, running: float = 0.1) -> Iterator[None]:
        """Let a node's processes run only now and then, until the end of the block."""
        over = threading.Event()

        def brake() -> None:
            while not over.is_set():
                self._signal(place, signal.SIGSTOP)
                over.wait(stopped)
                self._signal(place, signal.SIGCONT)
                over.wait(running)

        thread = threading.Thread(target=brake)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def mend(self) -> None:
        """Start again what has ended or was given up; if the head has ended, everything."""
        ended = [place for place, node in self.nodes.items() if node.poll() is not None]
        for place in ended:
            self.lose(place)
        if 0 not in self.nodes:
            for place in self.spaces:
                self.lose(place)
        else:
            # On a busy machine the head may have taken for dead who is only slow to answer.
            alive = self.alive()
            for place in [place for place in self.nodes if self.address(place) not in alive]:
                self.lose(place)
            self.settle()
        for place in self.spaces:
            if place not in self.nodes:
                self.start(place)

    def _end(self) -> None:
        for place in self.spaces:
            with contextlib.suppress(subprocess.CalledProcessError):
                self.lose(place)

    def command(self, *words: str, place: int = 0) -> subprocess.Popen:
        """Start `raydp-sim` in a namespace."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return self.inside(place, sys.executable, "-m", "raydp_sim", *words, **pipes)

    def play(self, file: Path, out: Path, place: int = 0) -> subprocess.Popen:
        """Start a driver."""
        words = ("run", str(file), "--address", self.head, "--out", str(out))
        return self.command(*words, place=place)

    def resume(self, out: Path, place: int = 0) -> subprocess.Popen:
        """Start a driver that goes on."""
        return self.command("resume", str(out), "--address", self.head, place=place)


@contextlib.contextmanager
def spaces(
    number: int, variables: dict[str, str] | None = None, memory: int | None = None
) -> Iterator[Spaces]:
    """Hold some nodes; skip where namespaces are not permitted.

    Args:
        number: of nodes.
        variables: that their Ray is given.
        memory: bytes that each says it has for actors; by default what the machine has.
    """
    if shutil.which("ip") is None:
        pytest.skip("there is no ip: apt-get install iproute2")
    probe = f"rs{os.getpid() % 100000}-probe"
    if subprocess.run(["ip", "netns", "add", probe], capture_output=True).returncode:
        pytest.skip(
            "network namespaces are not permitted here; test_placement has two nodes of one"
        )
    ip("netns", "del", probe)
    with contextlib.ExitStack() as held:
        yield Spaces(number, held, variables or {}, memory)
