"""What asynchronous participation costs: it should grow with reports, not with people or time."""

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from raydp_sim.actors.backend import Backend
from raydp_sim.bench.contenders import Pipeline, Sample, tree_cpu
from raydp_sim.scenario import Scenario, parse

WEEK = 604_800.0
_START_SECONDS = 120.0
TURNS = 3
_SHARE = 0.1  # of a week's releases in the comparisons
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Case:
    """A change of the week.

    Attributes:
        name: what is changed, in words.
        releases, clients, every: factors on the week's own.
    """

    name: str
    releases: float = 1.0
    clients: float = 1.0
    every: float = 1.0

    def scenario(self, week: Scenario, share: float, people: float = 1.0) -> Scenario:
        """Return the week with this change, for a share of its releases and of its clients."""
        document = week.document()
        population, policy = document["population"], document["participation"]
        population["clients"] = max(1, round(population["clients"] * people * self.clients))
        policy["batch"] = max(1, round(policy["batch"] * people))
        policy["every"] *= self.every
        document["shuffle"]["min_batch"] = policy["batch"]
        rounds = document["task"]["rounds"] * share * self.releases
        document["task"]["rounds"] = max(1, round(rounds))
        return parse(document)


# With twice the people each checks in half as often: as many reports in as long a time.
CASES = (
    Case("the week"),
    Case("twice the reports", releases=2.0),
    Case("twice the clients", clients=2.0, every=2.0),
)


@dataclass(frozen=True)
class Row:
    """What one case took.

    Attributes:
        name: of the case.
        clients, releases, reports: how many.
        days: of virtual time.
        seconds: wall and CPU seconds of the releases, without placing the clients; of several
            turns the medians.
    """

    name: str
    clients: int
    releases: int
    reports: int
    days: float
    seconds: Sample


def play(
    week: Scenario,
    progress: Progress = lambda line: None,
    share: float = _SHARE,
    people: float = 1.0,
    backend: Backend | None = None,
    whole: bool = True,
) -> Iterator[Row]:
    """Play the whole week once, then a share of it with and without each change, in turns.

    Args:
        week: the scenario.
        progress: called with what is happening.
        share: part of the week's releases that the changes are measured on.
        people: part of its clients and of its batches.
        backend: where; a private Ray unless given.
        whole: whether the whole week is played first.
    """
    if backend is None:
        # Ray takes a second to import; `--help` should not wait for it.
        from raydp_sim.actors.cluster import connected
        from raydp_sim.actors.on_ray import OnRay

        progress("starting Ray")
        with connected(None, _START_SECONDS):
            yield from play(week, progress, share, people, OnRay(), whole)
        return
    if whole:
        progress(f"a whole week of {round(week.population.clients * people):,} clients")
        yield _measure(Case("a whole week"), CASES[0].scenario(week, 1.0, people), backend)
    found: dict[Case, list[Row]] = {case: [] for case in CASES}
    for turn in range(TURNS):
        for case, rows in found.items():
            progress(f"turn {turn + 1} of {TURNS}: {case.name}")
            rows.append(_measure(case, case.scenario(week, share, people), backend))
    for rows in found.values():
        walls, cpus = zip(*(row.seconds for row in rows), strict=True)
        yield replace(rows[0], seconds=Sample(median(walls), median(cpus)))


def _measure(case: Case, scenario: Scenario, backend: Backend) -> Row:
    with tempfile.TemporaryDirectory(prefix="raydp-bench-") as folder:
        pipeline = Pipeline(scenario, backend, Path(folder) / "run", tree_cpu(without=0))
        try:
            wall, cpu = time.perf_counter(), pipeline.cpu()
            last: dict[str, Any] = {"time": 0.0}
            reports = 0
            for row in pipeline.conductor.play(scenario.task.rounds):
                reports, last = reports + row["batch_size"], row
            seconds = Sample(time.perf_counter() - wall, pipeline.cpu() - cpu)
        finally:
            pipeline.stop()
    releases = scenario.task.rounds
    days = last["time"] / (WEEK / 7)
    return Row(case.name, scenario.population.clients, releases, reports, days, seconds)


def document(rows: list[Row], machine: dict[str, Any]) -> dict[str, Any]:
    """Return the benchmark as one document; ratios are to the same part of the week unchanged."""
    return {
        "benchmark": "participation",
        "machine": machine,
        "rows": [
            {**asdict(row), "seconds": row.seconds._asdict(), "ratio": ratio(rows, row)}
            for row in rows
        ],
    }


def ratio(rows: list[Row], row: Row) -> dict[str, float] | None:
    """Return a row's seconds as multiples of those of the unchanged case; None for the whole."""
    base = next(each for each in rows if each.name == CASES[0].name)
    if row.name not in {case.name for case in CASES}:
        return None
    wall = row.seconds.wall / max(base.seconds.wall, 1e-9)
    return {"wall": wall, "cpu": row.seconds.cpu / max(base.seconds.cpu, 1e-9)}
