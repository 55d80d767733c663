"""What bandits cost: runs of actors, whose cost should be linear in T, and the exact simulation."""

import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from raydp_sim.actors.backend import Backend
from raydp_sim.bench.contenders import FLOORS, Floor, Pipeline, Sample, tree_cpu
from raydp_sim.random import Stream
from raydp_sim.scenario import Scenario, parse
from raydp_sim.tasks.bandits.amplification import batch_epsilon, epsilon0_for_batch
from raydp_sim.tasks.bandits.instance import random_instance
from raydp_sim.tasks.bandits.problem import Problem
from raydp_sim.tasks.bandits.simulate import simulate

FLOOR = FLOORS.with_name("bandit_floors.py")
FAST_GOAL, ACTORS_GOAL = 10.0, 60.0
TURNS = 3
_START_SECONDS = 120.0
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """What one run took.

    Attributes:
        name: what was run, in words.
        rounds: T.
        reports: clients whose reward was reported, or added to a drawn sum.
        seconds: wall and CPU seconds of a run, medians over turns.
        floor: those of the floor with as many reports.
        goal: wall seconds that a run should stay below; None: no goal.
    """

    name: str
    rounds: int
    reports: int
    seconds: Sample
    floor: Sample
    goal: float | None

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None where there is none."""
        return None if self.goal is None else self.seconds.wall < self.goal


def fast(floor: Floor, rounds: int = 10**7, actions: int = 1000) -> Iterator[Row]:
    """Measure single runs of the exact simulation, in the plane at epsilon = 1.

    The first run of a shuffled bandit also finds the local losses of its batches, which are kept
    for the next; both are shown.

    Args:
        floor: to compare with.
        rounds: T.
        actions: K.
    """
    instance = random_instance(actions, 2, Stream(1))
    for model, kept in (("central", True), ("shuffle", False), ("shuffle", True)):
        problem = Problem(instance.actions, rounds, model, 1.0)  # type: ignore[arg-type]
        samples, reports = [], 0
        for turn in range(TURNS):
            if not kept:
                epsilon0_for_batch.cache_clear()
                batch_epsilon.cache_clear()
            wall, cpu = time.perf_counter(), time.process_time()
            played = simulate(problem, instance, 1, Stream(2).at(turn).generator())
            samples.append(Sample(time.perf_counter() - wall, time.process_time() - cpu))
            reports = int(played.clients.sum())
        name = f"simulated, {model}" + ("" if kept else ", cold")
        below = middle([floor.play("sums", reports, 100) for _ in range(TURNS)])
        yield Row(name, rounds, reports, middle(samples), below, FAST_GOAL)


def scenario_of(rounds: int) -> Scenario:
    """Return a shuffled bandit of ten actions in the plane, one client a round, epsilon = 1.

    The best of nine comes twice, so that two are left to the end and every batch is played.
    """
    instance = random_instance(9, 2, Stream(3))
    actions = [*instance.actions.tolist(), instance.actions[instance.means.argmax()].tolist()]
    document = {
        "name": "bench-bandits",
        "trust": "shuffle",
        "population": {
            "clients": rounds,
            "data": {"kind": "linear-rewards", "theta": instance.theta.tolist()},
        },
        "task": {"kind": "bandit", "actions": actions},
        "mechanism": {
            "kind": "laplace",
            "radius": 1.0,
            "target": {"epsilon": 1.0, "delta": 1e-6},
        },
    }
    return parse(document)


def actors(
    floor: Floor, backend: Backend, sizes: tuple[int, ...], progress: Progress = lambda line: None
) -> Iterator[Row]:
    """Measure whole runs on actors, without placing the clients: every batch until the commitment.

    Args:
        floor: to compare with.
        backend: where.
        sizes: T of the runs; the last has the goal.
        progress: called with what is happening.
    """
    for rounds in sizes:
        progress(f"actors, {rounds:,} rounds")
        scenario = scenario_of(rounds)
        with tempfile.TemporaryDirectory(prefix="raydp-bench-") as folder:
            clock = tree_cpu(floor.process.pid)
            pipeline = Pipeline(scenario, backend, Path(folder) / "run", clock)
            try:
                wall, cpu, reports = time.perf_counter(), pipeline.cpu(), 0
                for row in pipeline.conductor.play(scenario.task.rounds):
                    reports += row["batch_size"]
                seconds = Sample(time.perf_counter() - wall, pipeline.cpu() - cpu)
            finally:
                pipeline.stop()
        below = middle([floor.play("reports", reports, 1) for _ in range(TURNS)])
        goal = ACTORS_GOAL if rounds == sizes[-1] else None
        yield Row("actors, shuffle", rounds, reports, seconds, below, goal)


def growth_of(rows: list[Row]) -> float:
    """Return p of reports^p that fits the CPU seconds of the first and last runs on actors."""
    first, *_, last = [row for row in rows if row.name.startswith("actors")]
    more = math.log(last.seconds.cpu / first.seconds.cpu)
    return more / math.log(last.reports / first.reports)


def middle(samples: list[Sample]) -> Sample:
    """Return the medians."""
    walls, cpus = zip(*samples, strict=True)
    return Sample(statistics.median(walls), statistics.median(cpus))


def play(
    progress: Progress = lambda line: None,
    sizes: tuple[int, ...] = (250_000, 500_000, 1_000_000),
) -> Iterator[Row]:
    """Measure everything, on a private Ray.

    Args:
        progress: called with what is happening.
        sizes: T of the runs on actors.
    """
    # Ray takes a second to import; `--help` should not wait for it.
    from raydp_sim.actors.cluster import connected
    from raydp_sim.actors.on_ray import OnRay

    floor = Floor(FLOOR)
    try:
        progress("the exact simulation, ten million rounds and a thousand actions")
        yield from fast(floor)
        progress("starting Ray")
        with connected(None, _START_SECONDS):
            yield from actors(floor, OnRay(), sizes, progress)
    finally:
        floor.stop()


def document(rows: list[Row], machine: dict[str, Any]) -> dict[str, Any]:
    """Return the benchmark as one document."""
    return {
        "benchmark": "bandits",
        "machine": machine,
        "rows": [
            {
                **asdict(row),
                "seconds": row.seconds._asdict(),
                "floor": row.floor._asdict(),
                "met": row.met,
            }
            for row in rows
        ],
    }
