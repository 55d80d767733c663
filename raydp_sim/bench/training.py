"""The training benchmark: actors that train, beside two processes that only compute gradients."""

import contextlib
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from raydp_sim.bench.bare import Bare
from raydp_sim.bench.contenders import Floor, Pipeline, Sample, our_processes, tree_cpu
from raydp_sim.scenario import Scenario, parse, setting_of

FLOORS = Path(__file__).resolve().parents[2] / "tests" / "training_floors.py"
SEGMENTS = 5
_START_SECONDS = 120.0
_BARE_ROUNDS = 40
_PRIVATE = {"kind": "rinf", "radius": 0.01, "epsilon_local": 2.0, "on_out_of_range": "clip"}
# Noise that is added once, by the aggregator, to an exact sum: clients only compute.
_PLAIN = {
    "kind": "central-gaussian",
    "radius": 10.0,
    "epsilon": 10.0,
    "delta": 1e-12,
    "on_out_of_range": "clip",
}
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Case:
    """One workload.

    Attributes:
        name: what `--case` calls it.
        title: what it is, in words.
        floor: what the floor calls its kernel.
        cohort, clients: how many train in a round, and how many there are.
        rounds: of a measured segment.
        task, mechanism, trust: of the scenario.
        goal: least rounds per second, as a multiple of the floor's.
        samples: that there are in all; clients share them where they hold more.
    """

    name: str
    title: str
    floor: str
    cohort: int
    clients: int
    rounds: int
    task: dict[str, Any]
    mechanism: dict[str, Any]
    trust: str = "shuffle"
    goal: float | None = None
    samples: int = 60_000

    def scenario(self) -> Scenario:
        """Return what the actors play: samples of 28 x 28 that need no files."""
        points = 60 if self.task["kind"] == "fedavg" else 1
        data = {
            "kind": "synthetic-digits",
            "n": self.samples,
            "side": 28,
            "points": points,
            "test": 100,
            "overlap": points * self.clients > self.samples,
        }
        document: dict[str, Any] = {
            "name": f"bench-{self.name}",
            "seed": 1,
            "trust": self.trust,
            "task": {"rounds": 1000, "evaluate_every": 1000, **self.task},
            "population": {"clients": self.clients, "data": data},
            "mechanism": self.mechanism,
            "placement": {"backend": "ray"},
        }
        if self.cohort < self.clients:
            document["participation"] = {"kind": "uniform", "sampled": self.cohort}
        return parse(document)


# Steps so small that noise never leads a model astray, which would end the run.
_LINEAR = {"kind": "fedavg", "model": {"kind": "linear"}, "steps": 1, "step_size": 0.001}
_CNN = {"kind": "cldp-sgd", "model": {"kind": "cnn"}, "step_size": 0.1}


def _linear(name: str, cohort: int, clients: int, rounds: int, private: bool, goal: float) -> Case:
    how = "clip, R_inf, shuffle" if private else "plain"
    return Case(
        name,
        f"linear softmax, 60 samples a client, {cohort:,} of {clients:,}, {how}",
        "linear-private" if private else "linear",
        cohort,
        clients,
        rounds,
        _LINEAR,
        _PRIVATE if private else _PLAIN,
        "shuffle" if private else "central",
        goal,
    )


_LARGE = Case(
    "cnn",
    "CNN, one sample a client, 10,000 of 60,000, clip, R_inf, shuffle",
    "cnn",
    10_000,
    60_000,
    2,
    _CNN,
    _PRIVATE,
    goal=0.9,
)
CASES = {
    case.name: case
    for case in (
        _linear("plain-100", 100, 1_000, 40, False, 0.5),
        _linear("plain-1000", 1_000, 10_000, 8, False, 0.8),
        _linear("private-100", 100, 1_000, 40, True, 0.5),
        _linear("private-1000", 1_000, 10_000, 8, True, 0.8),
        _LARGE,
    )
}
# The same cohort of ever larger populations; the first is what the others are compared with.
GROWING = tuple(
    replace(
        _linear(f"of-{clients}", 100, clients, 40, True, 0.5),
        goal=None,
        title=f"linear softmax, 60 samples a client, 100 of {clients:,}, clip, R_inf, shuffle",
    )
    for clients in (1_000, 10_000, 100_000)
)
# How much slower the largest population may be, and how much more a tenfold cohort may hold.
FLAT, BOUNDED = 1.25, 1.25
# An actor's memory while cohorts of two sizes are trained on: only tiles of gradients may be held.
HOLDING = (
    replace(
        _LARGE,
        name="cnn-1000",
        title=_LARGE.title.replace("10,000", "1,000"),
        cohort=1_000,
        goal=None,
    ),
    _LARGE,
)


@dataclass
class Result:
    """What one case took; seconds are medians over the segments, per round.

    Attributes:
        case: which.
        samples: the segments of each contender.
        peak: most bytes that any actor of clients held while rounds were under way.
    """

    case: Case
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    peak: int = 0

    def median(self, contender: str) -> Sample:
        """Return a contender's median wall and CPU seconds per round."""
        walls, cpus = zip(*self.samples[contender], strict=True)
        return Sample(statistics.median(walls), statistics.median(cpus))

    @property
    def updates(self) -> float:
        """Clients' gradients per second of the actors."""
        return self.case.cohort / self.median("actors").wall

    @property
    def rate(self) -> float:
        """Rounds per second as a multiple of the floor's, segment by segment."""
        pairs = zip(self.samples["floor"], self.samples["actors"], strict=True)
        return statistics.median(floor.wall / actors.wall for floor, actors in pairs)

    @property
    def cpu_rate(self) -> float:
        """Rounds per CPU-second as a multiple of the floor's: others' load disturbs it less."""
        pairs = zip(self.samples["floor"], self.samples["actors"], strict=True)
        return statistics.median(floor.cpu / actors.cpu for floor, actors in pairs)

    @property
    def bound(self) -> float | None:
        """The rate that a round would have of the floor's work and Ray's calls, and nothing else.

        None where the bare loop was not played.
        """
        if "bare" not in self.samples:
            return None
        pairs = zip(self.samples["floor"], self.samples["bare"], strict=True)
        return statistics.median(floor.wall / (floor.wall + bare.wall) for floor, bare in pairs)

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None where there is none."""
        return None if self.case.goal is None else self.rate >= self.case.goal

    def document(self) -> dict[str, Any]:
        """Return everything that was measured."""
        return {
            "case": self.case.name,
            "title": self.case.title,
            "seconds_per_round": {name: self.median(name)._asdict() for name in self.samples},
            "updates_per_second": self.updates,
            "to_floor": self.rate,
            "cpu_to_floor": self.cpu_rate,
            "bound": self.bound,
            "goal": self.case.goal,
            "met": self.met,
            "actor_peak_bytes": self.peak or None,
            "segments": {
                name: [each._asdict() for each in samples] for name, samples in self.samples.items()
            },
        }


class Pair:
    """Two floors of one thread each, which play half a cohort each."""

    def __init__(self) -> None:
        self.floors = [Floor(FLOORS) for _ in range(2)]

    def play(self, case: Case) -> Sample:
        """Play a segment; a round is over when both halves are."""
        for floor in self.floors:
            floor.begin(case.floor, case.cohort // 2, case.rounds)
        taken = [floor.end() for floor in self.floors]
        return Sample(max(each.wall for each in taken), sum(each.cpu for each in taken))

    @property
    def pids(self) -> list[int]:
        """Of its processes."""
        return [floor.process.pid for floor in self.floors]

    def stop(self) -> None:
        """End both."""
        for floor in self.floors:
            floor.stop()


def play(
    cases: Iterable[Case], progress: Progress = lambda line: None, segments: int = SEGMENTS
) -> Iterator[Result]:
    """Measure cases one after another; yield each result as it is there.

    Raises:
        InputError: when the floors are missing.
    """
    # Ray takes a second to import; `--help` should not wait for it.
    from raydp_sim.actors.cluster import connected
    from raydp_sim.actors.on_ray import OnRay

    with contextlib.ExitStack() as stack:
        pair = Pair()
        stack.callback(pair.stop)
        progress("starting Ray")
        stack.enter_context(connected(None, _START_SECONDS))
        for case in cases:
            with tempfile.TemporaryDirectory(prefix="raydp-bench-") as folder:
                yield _measure(case, pair, OnRay(), Path(folder), progress, segments)


def _measure(
    case: Case, pair: Pair, ray: Any, folder: Path, progress: Progress, segments: int
) -> Result:
    result = Result(case, {"actors": [], "floor": [], "bare": []})
    progress(f"{case.name}: placing {case.clients:,} clients in actors")
    clock, scenario = tree_cpu(*pair.pids), case.scenario()
    actors = Pipeline(scenario, ray, folder / "actors", clock)
    bare = Bare(ray, setting_of(scenario).mechanism.domain.width, actors.crew.apart, clock)
    try:
        actors.play(2)  # first touch of memory, caches, connections
        pair.play(replace(case, rounds=1))
        bare.play(2)
        for segment in range(segments):
            progress(f"{case.name}: segment {segment + 1} of {segments}")
            result.samples["actors"].append(actors.play(case.rounds))
            result.samples["floor"].append(pair.play(case))
            result.samples["bare"].append(bare.play(_BARE_ROUNDS))
        result.peak = _peak(pair.pids)
    finally:
        with contextlib.suppress(Exception):
            actors.stop()
        with contextlib.suppress(Exception):
            bare.stop()
    return result


def _peak(without: list[int]) -> int:
    """Return the most memory that an actor of clients ever had resident."""
    peaks = [0]
    for process in our_processes(*without):
        with contextlib.suppress(psutil.Error, OSError):
            if process.name().startswith("ray::ClientAc"):
                status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
                line = next(line for line in status if line.startswith("VmHWM"))
                peaks.append(int(line.split()[1]) << 10)
    return max(peaks)


def document(results: list[Result], machine: dict[str, Any]) -> dict[str, Any]:
    """Return the whole benchmark as one document."""
    return {
        "benchmark": "training",
        "machine": machine,
        "cases": [result.document() for result in results],
        "met": all(result.met is not False for result in results),
    }


__all__ = ["CASES", "GROWING", "HOLDING", "Case", "Result", "document", "play"]
