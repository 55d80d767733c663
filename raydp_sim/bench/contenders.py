"""The three that are measured: our actors, our inline backend, and the floor."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import psutil

from raydp_sim.actors.backend import Backend
from raydp_sim.actors.conductor import Conductor
from raydp_sim.actors.crew import Crew
from raydp_sim.errors import InputError, RunError
from raydp_sim.run.directory import RunDir
from raydp_sim.scenario import Scenario

FLOORS = Path(__file__).resolve().parents[2] / "tests" / "floors.py"


class Sample(NamedTuple):
    """Seconds per round of one segment."""

    wall: float
    cpu: float


class Contender(Protocol):
    """Somebody who can be asked for some rounds, and is idle when not asked."""

    def play(self, rounds: int) -> Sample:
        """Play rounds and return what one of them took."""
        ...


class Pipeline:
    """Our own pipeline on a backend, its ledger and metrics durable in a directory of its own."""

    def __init__(
        self, scenario: Scenario, backend: Backend, folder: Path, cpu: Callable[[], float]
    ) -> None:
        RunDir(folder).create(scenario)
        self.crew = Crew(scenario, backend, folder)
        self.crew.begin(0, 0, None)
        self.conductor = Conductor(self.crew)
        self.cpu = cpu
        self.played = 0

    def play(self, rounds: int) -> Sample:
        """Play on by some rounds, which overlap as in a run, until the last one is recorded."""
        # Looking at all processes takes milliseconds, which are nobody's round.
        cpu, wall = self.cpu(), time.perf_counter()
        self.advance(rounds)
        wall = time.perf_counter() - wall
        return Sample(wall / rounds, (self.cpu() - cpu) / rounds)

    def advance(self, rounds: int, each: Callable[[], None] = lambda: None) -> None:
        """Play on; call `each` after every round, while later ones are under way."""
        self.played += rounds
        for _ in self.conductor.play(self.played):
            each()

    def stop(self) -> None:
        """End its actors."""
        self.crew.stop()


class Floor:
    """The floor in a process of its own, which keeps a case's data between segments.

    Args:
        path: of the script that serves it; that of the pipeline unless given.

    Raises:
        InputError: when the floors are not there; they are not part of an installed package.
    """

    def __init__(self, path: Path | None = None) -> None:
        path = path or FLOORS
        if not path.is_file():
            raise InputError(
                f"{path} is missing; the floors are not installed with the package: run the "
                "benchmark from a checkout of the repository (`pip install -e .`)"
            )
        self.process = subprocess.Popen(
            [sys.executable, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def play(self, case: str, clients: int, rounds: int) -> Sample:
        """Have rounds of a case played."""
        self.begin(case, clients, rounds)
        return self.end()

    def begin(self, case: str, clients: int, rounds: int) -> None:
        """Let it play."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{case} {clients} {rounds}\n")
        self.process.stdin.flush()

    def end(self) -> Sample:
        """Wait until it has played."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RunError(f"the floor ended with exit code {self.process.wait()}")
        return Sample(**json.loads(line))

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def tree_cpu(without: int, *others: int) -> Callable[[], float]:
    """Return a clock of the CPU-seconds of this process and all below it, save those named.

    That is the driver, the workers and Ray's own processes. Those that have ended count with what
    they had used when they were last seen, so the clock never runs backwards.
    """
    seen: dict[int, float] = {}

    def clock() -> float:
        for process in our_processes(without, *others):
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            seen[process.pid] = times.user + times.system
        return sum(seen.values())

    return clock


def actors_pss(without: int, *others: int) -> int:
    """Return the bytes that our actors and Ray's object store hold, shared pages counted once.

    The raylet maps the store; each page counts by its share in every process that maps it.
    """
    total = 0
    for process in our_processes(without, *others):
        try:
            name = process.name()
            if name == "raylet" or (name.startswith("ray::") and "IDLE" not in name):
                total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total


def our_processes(*without: int) -> list[psutil.Process]:
    """Return this process and all below it, save those named."""
    me = psutil.Process(os.getpid())
    return [me, *(child for child in me.children(recursive=True) if child.pid not in without)]
