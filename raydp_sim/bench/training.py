"""The training benchmark: actors that train, beside two processes that only compute gradients.

Clients are Ray actors; those who serve them are in the driver (`placement.servers`), as whoever
trains on one machine would have it. The same with actors of their own is measured beside it.
"""

import contextlib
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import psutil

from raydp_sim.actors.backend import Backend
from raydp_sim.bench.bare import Bare
from raydp_sim.bench.contenders import Floor, Pipeline, Sample, our_processes, tree_cpu
from raydp_sim.bench.training_cases import BOUNDED, CASES, FLAT, GROWING, HOLDING, Case
from raydp_sim.scenario import setting_of

FLOORS = Path(__file__).resolve().parents[2] / "tests" / "training_floors.py"
SEGMENTS = 5
_START_SECONDS = 120.0
_BARE_ROUNDS = 40
Progress = Callable[[str], None]
Played = TypeVar("Played", Pipeline, Bare)


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
        """Rounds per CPU-second as a multiple of the floor's: others' load disturbs it less.

        Since the floor keeps both cores busy, it is also the rate of actors that never wait.
        """
        pairs = zip(self.samples["floor"], self.samples["actors"], strict=True)
        return statistics.median(floor.cpu / actors.cpu for floor, actors in pairs)

    @property
    def bound(self) -> float | None:
        """The rate that a round would have of the floor's work and calls, and nothing else.

        None where the bare loop was not played.
        """
        if "bare" not in self.samples:
            return None
        pairs = zip(self.samples["floor"], self.samples["bare"], strict=True)
        return statistics.median(floor.wall / (floor.wall + bare.wall) for floor, bare in pairs)

    @property
    def apart(self) -> float | None:
        """The rate with servers that are actors of their own; None where that was not played."""
        if "apart" not in self.samples:
            return None
        pairs = zip(self.samples["floor"], self.samples["apart"], strict=True)
        return statistics.median(floor.wall / apart.wall for floor, apart in pairs)

    @property
    def same(self) -> float | None:
        """The rate beside a floor with the kernel that our clients use.

        That of the floor where it uses it too; None where it was not played.
        """
        if self.case.same is None:
            return self.rate
        if "same" not in self.samples:
            return None
        pairs = zip(self.samples["same"], self.samples["actors"], strict=True)
        return statistics.median(same.wall / actors.wall for same, actors in pairs)

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
            "servers_apart": self.apart,
            "to_same_kernel": self.same,
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

    def play(self, case: Case, kernel: str | None = None) -> Sample:
        """Play a segment, of another kernel if given; a round is over when both halves are."""
        for floor in self.floors:
            floor.begin(kernel or case.floor, case.cohort // 2, case.rounds)
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
    from raydp_sim.actors.together import Together

    with contextlib.ExitStack() as stack:
        pair = Pair()
        stack.callback(pair.stop)
        progress("starting Ray")
        stack.enter_context(connected(None, _START_SECONDS))
        for case in cases:
            with tempfile.TemporaryDirectory(prefix="raydp-bench-") as folder:
                backends = Together(), OnRay()
                yield _measure(case, pair, backends, Path(folder), progress, segments)


def _measure(
    case: Case,
    pair: Pair,
    backends: tuple[Backend, Backend],
    folder: Path,
    progress: Progress,
    segments: int,
) -> Result:
    result = Result(case, {"actors": [], "floor": [], "bare": [], "apart": []})
    progress(f"{case.name}: placing {case.clients:,} clients in actors")
    clock, scenario, (together, ray) = tree_cpu(*pair.pids), case.scenario(), backends
    width = setting_of(scenario).mechanism.domain.width
    with contextlib.ExitStack() as stack:
        actors = stack.enter_context(_stopped(Pipeline(scenario, together, folder / "1", clock)))
        apart = stack.enter_context(_stopped(Pipeline(scenario, ray, folder / "2", clock)))
        bare = stack.enter_context(_stopped(Bare(together, width, actors.crew.apart, clock)))
        for each in (actors, apart, bare):
            each.play(2)  # first touch of memory, caches, connections
        for kernel in (case.floor, case.same):
            pair.play(replace(case, rounds=1), kernel)
        for segment in range(segments):
            progress(f"{case.name}: segment {segment + 1} of {segments}")
            result.samples["actors"].append(actors.play(case.rounds))
            result.samples["floor"].append(pair.play(case))
            if case.same is not None:
                result.samples.setdefault("same", []).append(pair.play(case, case.same))
            result.samples["apart"].append(apart.play(case.rounds))
            result.samples["bare"].append(bare.play(_BARE_ROUNDS))
        result.peak = _peak(pair.pids)
    return result


@contextlib.contextmanager
def _stopped(contender: Played) -> Iterator[Played]:
    """End a contender's actors in any case."""
    try:
        yield contender
    finally:
        with contextlib.suppress(Exception):
            contender.stop()


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


__all__ = ["BOUNDED", "CASES", "FLAT", "GROWING", "HOLDING", "Case", "Result", "document", "play"]
