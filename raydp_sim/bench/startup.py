"""How long a user waits for the first release, and what of that is the doing of whom."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from raydp_sim.errors import RunError

TURNS = 3
GOALS = {"command line": 0.4, "its `run`": 0.4, "run, inline": 1.5, "run, on Ray": 6.0}
_INLINE = ("--set", "placement.backend=inline")
_SCENARIO = "quickstart"
# The moments of a run in their order, and what has just been done at each.
_STEPS = {
    "python": "starting Python",
    "imported": "importing the command",
    "starting Ray": "reading, checking, pre-flight",
    "placing clients": "starting Ray",
    "playing": "placing actors and data",
    "released": "first release",
}
_BARE = """
import time
began = time.time()
from raydp_sim.actors.cluster import connected
import ray
imported = time.time()
class Trivial:
    def answer(self): return 1
with connected(None, 120.0):
    started = time.time()
    ray.get(ray.remote(Trivial).options(num_cpus=0).remote().answer.remote())
    ended = time.time()
    from raydp_sim.bench.contenders import tree_cpu
    print(imported - began, started - imported, ended - started, tree_cpu(without=0)())
"""
Progress = Callable[[str], None]
Taken = tuple[dict[str, float], float | None]
"""Wall seconds of every step of a start, and the CPU-seconds of all of its processes."""


@dataclass(frozen=True)
class Row:
    """A step of a start, or the whole.

    Attributes:
        what: is started.
        step: of it; "" for the whole.
        seconds: wall; of several turns the median.
        cpu: CPU-seconds of all processes of the whole; None: not measured.
        goal: seconds that the whole should take at most.
    """

    what: str
    step: str
    seconds: float
    cpu: float | None = None
    goal: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None where there is none."""
        return None if self.goal is None else self.seconds <= self.goal


def play(progress: Progress = lambda line: None, turns: int = TURNS) -> Iterator[Row]:
    """Start each a few times, in turns; yield its steps and the whole.

    Bytecode is kept for as long, in a folder of its own, as `pip install` leaves it.

    Args:
        progress: called with what is happening.
        turns: how often; one more goes before, so that files and bytecode are at hand.
    """
    starts: dict[str, Callable[[str], Taken]] = {
        "command line": imports,
        "its `run`": partial(imports, command="run"),
        "run, inline": partial(run, options=_INLINE),
        "run, on Ray": run,
        "Ray alone": bare,
    }
    found: dict[str, list[Taken]] = {what: [] for what in starts}
    with tempfile.TemporaryDirectory(prefix="raydp-bench-") as folder:
        for turn in range(turns + 1):
            for what, start in starts.items():
                progress(f"{f'turn {turn} of {turns}' if turn else 'once before'}: {what}")
                found[what].append(start(folder))
    for what, taken in found.items():
        yield from rows(what, taken[1:] or taken)


def rows(what: str, taken: list[Taken]) -> Iterator[Row]:
    """Yield the medians of every step over turns, then that of the whole."""
    walls = [steps for steps, _ in taken]
    if len(walls[0]) > 1:
        for step in walls[0]:
            yield Row(what, step, statistics.median(each[step] for each in walls))
    whole = statistics.median(sum(each.values()) for each in walls)
    cpus = [cpu for _, cpu in taken if cpu is not None]
    yield Row(what, "", whole, statistics.median(cpus) if cpus else None, GOALS.get(what))


def run(bytecode: str, options: tuple[str, ...] = ()) -> Taken:
    """Run the quickstart as far as its first release."""
    with tempfile.TemporaryDirectory(prefix="raydp-bench-") as folder:
        began = time.time()
        arguments = (_SCENARIO, *options, "--out", f"{folder}/run")
        said, _ = _said(bytecode, "-m", "raydp_sim.cli.started", *arguments, code=130)
    moments = json.loads(said.splitlines()[-1])
    return steps(began, moments), moments["cpu"]


def steps(began: float, moments: dict[str, float]) -> dict[str, float]:
    """Return what every step took, by the moments at which they ended.

    Example:
        >>> steps(1.0, {"python": 1.5, "imported": 3.5})
        {'starting Python': 0.5, 'importing the command': 2.0}
    """
    ended = {name: moments[name] for name in _STEPS if name in moments}
    if "placing clients" in ended and "starting Ray" not in ended:  # inline there is none
        ended = {_before(name): at for name, at in ended.items()}
    laps = pairwise([began, *ended.values()])
    names = (_STEPS[name] for name in ended)
    return {name: after - before for name, (before, after) in zip(names, laps, strict=True)}


def _before(name: str) -> str:
    return "starting Ray" if name == "placing clients" else name


def imports(bytecode: str, command: str = "") -> Taken:
    """Return the seconds that Python says importing the command line or a command takes."""
    asked = [*command.split(), "--help"]
    _, told = _said(bytecode, "-X", "importtime", "-m", "raydp_sim", *asked)
    return {"importing": importing(told)}, None


def importing(told: str) -> float:
    r"""Add up the modules of ours that were not imported by another one of ours.

    Example:
        >>> importing("import time: 9 | 90 |   click\nimport time: 5 | 2000 | raydp_sim.cli.main")
        0.002
    """
    found = [line.split("|") for line in told.splitlines() if line.startswith("import time:")]
    names = {line[2].rstrip(): line[1] for line in found if line[2].startswith(" raydp_sim")}
    return sum(int(seconds) for seconds in names.values()) * 1e-6


def bare(bytecode: str) -> Taken:
    """Start Ray as a run does, and one actor that does nothing."""
    *walls, cpu = map(float, _said(bytecode, "-c", _BARE)[0].split())
    return dict(zip(("importing Ray", "starting Ray", "one actor"), walls, strict=True)), cpu


def _said(bytecode: str, *arguments: str, code: int = 0) -> tuple[str, str]:
    """Return what a process of its own says on standard output and on standard error."""
    command = [sys.executable, *arguments]
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    kept |= {"PYTHONPYCACHEPREFIX": bytecode}
    done = subprocess.run(command, capture_output=True, text=True, env=kept)
    if done.returncode != code:
        last = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        raise RunError(f"`{' '.join(command)}` ended with {done.returncode}: {last}")
    return done.stdout, done.stderr


def document(found: list[Row], machine: dict[str, Any]) -> dict[str, Any]:
    """Return the benchmark as one document."""
    return {
        "benchmark": "startup",
        "machine": machine,
        "rows": [asdict(row) | {"met": row.met} for row in found],
    }
