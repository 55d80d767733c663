"""The pipeline benchmark: actors, inline backend and floor, interleaved in one run."""

import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from raydp_sim.actors.backend import Inline
from raydp_sim.bench.cases import Case, Goals
from raydp_sim.bench.contenders import Floor, Pipeline, Sample, actors_pss, tree_cpu
from raydp_sim.kernels import CHOICE
from raydp_sim.run.provenance import provenance

SEGMENTS = 9
_START_SECONDS = 120.0
_PSS_ROUNDS = 5
Progress = Callable[[str], None]


@dataclass
class Result:
    """What one case took; seconds are medians over the segments, per round.

    Attributes:
        case: which.
        clients: how many clients there were.
        samples: the segments of each contender.
        pss: bytes of the actors and the object store while rounds were under way; 0 if not asked.
    """

    case: Case
    clients: int
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    pss: int = 0

    def median(self, contender: str) -> Sample:
        """Return a contender's median wall and CPU seconds per round."""
        walls, cpus = zip(*self.samples[contender], strict=True)
        return Sample(statistics.median(walls), statistics.median(cpus))

    def rate(self, contender: str) -> float:
        """Return its rounds per second as a multiple of the floor's."""
        return self.median("floor").wall / self.median(contender).wall

    def cpu(self, contender: str) -> float:
        """Return its CPU-seconds per round as a multiple of the floor's."""
        return self.median(contender).cpu / max(self.median("floor").cpu, 1e-9)

    def met(self) -> dict[str, bool]:
        """Say of each goal whether it is reached."""
        goals, met = self.case.goals, {}
        if goals.rate is not None:
            met["rate"] = self.rate("actors") >= goals.rate
        if goals.cpu is not None:
            met["cpu"] = self.cpu("actors") <= goals.cpu
        if goals.pss is not None:
            met["pss"] = self.pss < goals.pss
        for name, most in goals.wall().items():
            met[name] = self.median(name).wall * 1e3 <= most
        return met

    def document(self) -> dict[str, Any]:
        """Return everything that was measured."""
        medians = {name: self.median(name) for name in self.samples}
        return {
            "case": self.case.name,
            "title": self.case.title,
            "clients": self.clients,
            "seconds_per_round": {name: each._asdict() for name, each in medians.items()},
            "to_floor": {
                name: {"rate": self.rate(name), "cpu": self.cpu(name)}
                for name in self.samples
                if name != "floor" and "floor" in self.samples
            },
            "pss_bytes": self.pss or None,
            "goals": asdict(self.case.goals),
            "met": self.met(),
            "segments": {
                name: [each._asdict() for each in samples] for name, samples in self.samples.items()
            },
        }


def play(
    cases: Iterable[Case],
    progress: Progress = lambda line: None,
    segments: int = SEGMENTS,
    clients: int | None = None,
    rounds: int | None = None,
) -> Iterator[Result]:
    """Measure cases one after another; yield each result as it is there.

    Args:
        cases: which.
        progress: called with what is happening.
        segments: measured segments of each contender.
        clients: replaces every case's number of clients.
        rounds: replaces every case's rounds per segment.

    Raises:
        InputError: when the floors are missing.
    """
    # Ray takes a second to import; `--help` should not wait for it.
    from raydp_sim.actors.cluster import connected
    from raydp_sim.actors.on_ray import OnRay
    from raydp_sim.actors.together import Together

    with contextlib.ExitStack() as stack:
        floor = Floor()
        stack.callback(floor.stop)
        progress("starting Ray")
        stack.enter_context(connected(None, _START_SECONDS))
        for case in cases:
            with tempfile.TemporaryDirectory(prefix="raydp-bench-") as folder:
                number = clients or case.clients
                ray = Together() if case.servers == "driver" else OnRay()
                yield _measure(case, number, floor, ray, Path(folder), progress, segments, rounds)


def _measure(
    case: Case,
    clients: int,
    floor: Floor,
    ray: Any,
    folder: Path,
    progress: Progress,
    segments: int,
    rounds: int | None,
) -> Result:
    result = Result(case, clients)
    many, few = (rounds or each for each in case.rounds)
    progress(f"case {case.name}: placing {clients:,} clients in actors")
    clock, scenario = tree_cpu(floor.process.pid), case.scenario("ray", clients)
    made: list[Pipeline] = []
    contenders: dict[str, Callable[[], Sample]] = {}
    try:
        if "actors" in case.contenders:
            actors = Pipeline(scenario, ray, folder / "actors", clock)
            made.append(actors)
            contenders["actors"] = lambda: actors.play(many)
        if "inline" in case.contenders:
            progress(f"case {case.name}: preparing the inline backend and the floor")
            alone = case.scenario("inline", clients)
            inline = Pipeline(alone, Inline(), folder / "inline", time.process_time)
            contenders["inline"] = lambda: inline.play(max(1, few // 4))
        if "floor" in case.contenders:
            contenders["floor"] = lambda: floor.play(case.floor_name, clients, few)
        for contend in contenders.values():
            contend()  # first touch of memory, caches, connections
        result.samples = {name: [] for name in contenders}
        for segment in range(segments):
            progress(f"case {case.name}: segment {segment + 1} of {segments}")
            for name, contend in contenders.items():
                result.samples[name].append(contend())
        if case.goals.pss is not None:
            sizes = [0]
            actors.advance(_PSS_ROUNDS, lambda: sizes.append(actors_pss(without=floor.process.pid)))
            result.pss = max(sizes)
    finally:
        with contextlib.suppress(Exception):
            for pipeline in made:
                pipeline.stop()
    return result


def document(results: list[Result], segments: int = SEGMENTS) -> dict[str, Any]:
    """Return the whole benchmark as one document."""
    return {
        "benchmark": "pipeline",
        "segments": segments,
        "machine": machine(),
        "cases": [result.document() for result in results],
    }


def machine() -> dict[str, Any]:
    """Say what it was measured on."""
    return {
        **provenance(),
        "kernels": CHOICE.name,
        "cores": psutil.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "load": round(os.getloadavg()[0], 2),
    }


__all__ = ["SEGMENTS", "Goals", "Result", "document", "machine", "play"]
