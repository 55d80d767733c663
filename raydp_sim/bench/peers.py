"""One workload of `bench training` in other simulators, each in an environment of its own."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from raydp_sim.bench.contenders import Sample
from raydp_sim.bench.training import CASES, Case
from raydp_sim.errors import InputError, RunError

SEGMENTS = 5
CASE = "plain-100"
_END_SECONDS = 30.0
SCRIPTS = Path(__file__).resolve().parent / "peer_scripts"
_POINTS, _PIXELS, _CLASSES = 60, 784, 10
# One thread for every process that computes; nothing is reported to anybody.
_VARIABLES = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Peer:
    """Another simulator.

    Attributes:
        name: of the library, and of its environment's folder.
        script: that plays the workload.
        needs: what is installed for it.
        rounds: of a segment; as many as take about a second.
    """

    name: str
    script: str
    needs: tuple[str, ...]
    rounds: int


PEERS = {
    peer.name: peer
    for peer in (
        Peer("flower", "flower.py", ("flwr[simulation]",), 2),
        # The same pin as ours: later builds bring CUDA along.
        Peer("pfl", "pfl_research.py", ("pfl[pytorch]", "torch==2.13.0"), 20),
    )
}
OURS = Peer("raydp-sim", "raydp_sim.bench.answering", (), 40)


@dataclass
class Result:
    """What one contender took.

    Attributes:
        name: of it.
        cohort: clients that train in a round.
        versions: of it and of what it computes with.
        samples: seconds per round of every segment.
    """

    name: str
    cohort: int
    versions: dict[str, str]
    samples: list[Sample] = field(default_factory=list)

    @property
    def median(self) -> Sample:
        """Wall and CPU seconds per round."""
        walls, cpus = zip(*self.samples, strict=True)
        return Sample(statistics.median(walls), statistics.median(cpus))

    @property
    def updates(self) -> float:
        """Clients' updates per second."""
        return self.cohort / self.median.wall

    @property
    def updates_per_cpu(self) -> float:
        """Clients' updates per CPU-second of all of its processes."""
        return self.cohort / max(self.median.cpu, 1e-9)


def python_of(folder: Path, peer: Peer) -> Path:
    """Return the Python of a peer's environment.

    Raises:
        InputError: it is not there; says how to make it.
    """
    found = folder / peer.name / "bin" / "python"
    if not found.is_file():
        raise InputError(
            f"--environments is {str(folder)!r}; there is no {peer.name}/bin/python: make it with "
            f"`raydp-sim bench peers --install --environments {folder}`"
        )
    return found


def install(folder: Path, peer: Peer, progress: Progress = lambda line: None) -> None:
    """Make the environment of a peer, unless it is there, and install the peer from PyPI.

    Raises:
        RunError: it cannot be installed; says what pip said last.
    """
    place = folder / peer.name
    with contextlib.suppress(InputError):
        if (place / "installed").is_file() and python_of(folder, peer):
            return
    progress(f"{peer.name}: installing {', '.join(peer.needs)} into {place}")
    python = place / "bin" / "python"
    for command in (
        [sys.executable, "-m", "venv", str(place)],
        [str(python), "-m", "pip", "install", *peer.needs],
    ):
        done = subprocess.run(command, capture_output=True, text=True, env=_environment(peer))
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines() or ["nothing was said"]
            raise RunError(f"{peer.name} cannot be installed into {place}: {said[-1]}")
    (place / "installed").write_text("\n".join(peer.needs) + "\n", encoding="utf-8")


class Contender:
    """A process that plays rounds when asked, and whatever processes it has started.

    Raises:
        RunError: it ended before it was ready.
    """

    def __init__(self, peer: Peer, command: list[str], log: Path) -> None:
        self.peer, self.log = peer, log
        with log.open("w", encoding="utf-8") as said:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                env=_environment(peer),
                cwd=log.parent if peer.needs else None,
            )
        self._seen: dict[int, float] = {}
        try:
            self.versions: dict[str, str] = self._answer()
        except BaseException:
            self.stop()
            raise

    def play(self, rounds: int) -> Sample:
        """Play rounds and return what one of them took."""
        assert self.process.stdin is not None
        cpu, wall = self.cpu(), time.perf_counter()
        self.process.stdin.write(f"{rounds}\n")
        self.process.stdin.flush()
        played = self._answer()
        taken = time.perf_counter() - wall
        if played != {"rounds": rounds}:
            raise RunError(f"{self.peer.name} played {played} instead of {rounds} rounds")
        return Sample(taken / rounds, (self.cpu() - cpu) / rounds)

    def cpu(self) -> float:
        """Return the CPU-seconds of the process and all below it, those that ended too."""
        with contextlib.suppress(psutil.Error):
            me = psutil.Process(self.process.pid)
            for each in (me, *me.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    times = each.cpu_times()
                    self._seen[each.pid] = times.user + times.system
        return sum(self._seen.values())

    def stop(self) -> None:
        """Let it end by itself, then end what it left."""
        below: list[psutil.Process] = []
        with contextlib.suppress(psutil.Error):
            below = psutil.Process(self.process.pid).children(recursive=True)
        try:
            self.process.communicate(timeout=_END_SECONDS)  # which closes its input
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
        for each in below:
            with contextlib.suppress(psutil.Error):
                each.kill()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            last = lines[-1] if lines else "nothing was said"
            code = self.process.wait()
            raise RunError(f"{self.peer.name} ended with exit code {code}: {last} (see {self.log})")
        return json.loads(line)


def play(
    folder: Path,
    names: list[str],
    progress: Progress = lambda line: None,
    segments: int = SEGMENTS,
) -> list[Result]:
    """Play the workload in ours and in peers, in turns.

    Args:
        folder: of the peers' environments; what they say on standard error is left there.
        names: of the peers.
        progress: called with what is happening.
        segments: of each.

    Raises:
        InputError: a peer is not installed.
        RunError: a contender failed.
    """
    case = CASES[CASE]
    commands = {OURS: [sys.executable, "-m", OURS.script, CASE]}
    for name in names:
        peer = PEERS[name]
        python = str(python_of(folder, peer))
        commands[peer] = [python, str(SCRIPTS / peer.script), *_arguments(case)]
    with contextlib.ExitStack() as stack:
        contenders = []
        for peer, command in commands.items():
            progress(f"starting {peer.name}")
            contenders.append(Contender(peer, command, folder / f"{peer.name}.log"))
            stack.callback(contenders[-1].stop)
        return list(_turns(contenders, case.cohort, progress, segments))


def _turns(
    contenders: list[Contender], cohort: int, progress: Progress, segments: int
) -> Iterator[Result]:
    results = [Result(each.peer.name, cohort, each.versions) for each in contenders]
    for segment in range(segments + 1):
        progress(f"segment {segment} of {segments}" if segment else "warming up")
        for contender, result in zip(contenders, results, strict=True):
            sample = contender.play(contender.peer.rounds)
            if segment:  # the first touches memory, caches and connections
                result.samples.append(sample)
    yield from results


def _arguments(case: Case) -> list[str]:
    return [str(each) for each in (case.clients, case.cohort, _POINTS, _PIXELS, _CLASSES)]


def _environment(peer: Peer) -> dict[str, str]:
    """Return ours, for a peer without what would let its Python see our packages."""
    hidden = {"PYTHONPATH"} if peer.needs else set()
    return {name: text for name, text in os.environ.items() if name not in hidden} | _VARIABLES


def document(results: list[Result], machine: dict[str, Any]) -> dict[str, Any]:
    """Return the benchmark as one document."""
    return {
        "benchmark": "peers",
        "workload": CASES[CASE].title,
        "machine": machine,
        "rows": [
            {
                "name": result.name,
                "versions": result.versions,
                "updates_per_second": result.updates,
                "updates_per_cpu_second": result.updates_per_cpu,
                "seconds_per_round": result.median._asdict(),
                "segments": [each._asdict() for each in result.samples],
            }
            for result in results
        ],
    }
