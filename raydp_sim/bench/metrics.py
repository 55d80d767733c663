"""What live metrics cost: rows per second into Parquet, follow latency, and the run's own CPU."""

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raydp_sim.bench.cases import CASES
from raydp_sim.bench.contenders import Pipeline, Sample, tree_cpu
from raydp_sim.bench.following import Follower
from raydp_sim.metrics import parts, streams
from raydp_sim.metrics.live.access import grant
from raydp_sim.metrics.live.client import connect
from raydp_sim.metrics.live.feed import Feed, Serving
from raydp_sim.metrics.page.serving import available
from raydp_sim.metrics.writer import Writer

FOLLOWERS, SEGMENTS = 3, 5
_TOKEN = "the token of a benchmark on this machine"
_STREAM = "bench"
_SECONDS, _BATCH, _COLUMNS = 4.0, 500, 8
_SENT, _PAUSE = 400, 0.005
_START_SECONDS = 120.0
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Figure:
    """One figure beside its goal.

    Attributes:
        name: what it is.
        value: what was measured.
        goal: what it should be.
        at_least: whether more is better.
        unit: of both.
        note: how it was measured.
    """

    name: str
    value: float
    goal: float
    at_least: bool
    unit: str
    note: str

    @property
    def met(self) -> bool:
        """Whether the goal is reached."""
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    def document(self) -> dict[str, Any]:
        """Return everything that was measured."""
        return {**vars(self), "met": self.met}


def figures(progress: Progress = lambda line: None, case: str = "a") -> Iterator[Figure]:
    """Measure everything; yield each figure as it is there.

    Args:
        progress: called with what is happening.
        case: of the pipeline benchmark, whose rounds are played with and without followers.
    """
    progress("rows into Parquet with followers attached")
    yield throughput()
    progress("how long a row takes to a follower")
    yield latency()
    yield overhead(progress, case)


def _followed(work: Callable[[Writer], float]) -> tuple[float, list[dict[str, Any]]]:
    """Let followers read a stream that `work` writes; return its result, and theirs."""
    with tempfile.TemporaryDirectory(prefix="raydp-bench-") as folder:
        writer = Writer(Path(folder) / "metrics")
        feed, followers = Feed(writer, Serving(grants=[grant(_TOKEN)])), list[Follower]()
        try:
            # A first row, so that the stream is there to be followed.
            writer.batch(_STREAM, _rows(0, 1))
            while _STREAM not in connect(feed.url, _TOKEN).streams():
                time.sleep(0.05)
            followers += [Follower(feed.url, _TOKEN, _STREAM) for _ in range(FOLLOWERS)]
            found = work(writer)
            writer.flush()
            feed.close(over=True)
            return found, [follower.result() for follower in followers]
        finally:
            feed.close(over=False)
            for follower in followers:
                follower.stop()


def _rows(release: int, count: int) -> Any:
    values = np.arange(count, dtype=np.float64) + release
    numbers = {f"value_{place}": values + place for place in range(_COLUMNS - 1)}
    sent = np.full(count, time.monotonic())
    return streams.keyed(streams.released({"sent": sent, **numbers}), 0, release)


def throughput(seconds: float = _SECONDS) -> Figure:
    """Write as many rows as possible, with followers that read them all."""
    written = 0

    def write(writer: Writer) -> float:
        nonlocal written
        began, release = time.perf_counter(), 1
        while time.perf_counter() - began < seconds:
            writer.batch(_STREAM, _rows(release, _BATCH))
            writer.flush_if_late()
            release += 1
        writer.flush()
        took = time.perf_counter() - began
        written = sum(part.rows for part in parts.listed(writer.folder, _STREAM))
        assert written == (release - 1) * _BATCH + 1
        return written / took

    rate, found = _followed(write)
    seen = ", ".join(f"{each['rows']:,}" for each in found)
    note = f"{_COLUMNS + 2} columns, {written:,} rows; the followers read {seen}"
    return Figure("rows into Parquet", rate, 200_000.0, True, "rows/s", note)


def latency(rows: int = _SENT) -> Figure:
    """Send rows one by one, and see when followers have them."""

    def write(writer: Writer) -> float:
        for release in range(1, rows + 1):
            writer.batch(_STREAM, _rows(release, 1))
            writer.flush_if_late()
            time.sleep(_PAUSE)
        return 0.0

    found = _followed(write)[1]
    median = statistics.median(each["latency"] for each in found) * 1e3
    note = f"median of {rows} rows, one every {_PAUSE * 1e3:g} ms, {FOLLOWERS} followers"
    return Figure("follow latency", median, 20.0, False, "ms", note)


def overhead(progress: Progress = lambda line: None, case: str = "a") -> Figure:
    """Play the same rounds with followers and without, in turns; compare CPU-seconds."""
    from raydp_sim.actors.cluster import connected
    from raydp_sim.actors.on_ray import OnRay

    chosen = CASES[case]
    scenario, rounds = chosen.scenario("ray"), chosen.rounds[0]
    with contextlib.ExitStack() as stack:
        progress("starting Ray")
        stack.enter_context(connected(None, _START_SECONDS))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="raydp-bench-")))
        progress(f"placing the clients of case {case}, twice")
        served, plain = (
            Pipeline(scenario, OnRay(), folder / name, lambda: 0.0) for name in ("served", "plain")
        )
        for pipeline in (served, plain):
            stack.callback(_quietly, pipeline.stop)
        crew = served.crew
        # With the page too, as `run --serve` has it.
        page = ("127.0.0.1", 0) if available() else None
        serving = Serving(grants=[grant(_TOKEN)], page=page)
        url, _ = crew.ask(crew.metrics, "serve", serving)
        followers = [Follower(url, _TOKEN, "releases") for _ in range(FOLLOWERS)]
        for follower in followers:
            stack.callback(follower.stop)
        served.cpu = plain.cpu = tree_cpu(*(follower.process.pid for follower in followers))
        samples: dict[str, list[Sample]] = {"served": [], "plain": []}
        for segment in range(SEGMENTS + 1):
            progress(f"with and without followers: segment {segment} of {SEGMENTS}")
            # Each goes first as often as the other.
            order = [("served", served), ("plain", plain)]
            for name, pipeline in order if segment % 2 else order[::-1]:
                found = pipeline.play(rounds)
                if segment:  # the first is warm-up
                    samples[name].append(found)
    ratios = [a.cpu / b.cpu for a, b in zip(samples["served"], samples["plain"], strict=True)]
    more = (statistics.median(ratios) - 1.0) * 100.0
    shown = ", ".join(f"{(ratio - 1.0) * 100.0:+.1f}" for ratio in ratios)
    each = statistics.median(sample.cpu for sample in samples["plain"]) * 1e3
    wall = statistics.median(sample.wall for sample in samples["plain"]) * 1e3
    note = (
        f"{chosen.title}: {each:.1f} ms of CPU and {wall:.1f} ms a round without; median of "
        f"{SEGMENTS} pairs of {rounds} rounds ({shown})"
    )
    return Figure("CPU with followers", more, 5.0, False, "% more", note)


def _quietly(stop: Callable[[], None]) -> None:
    with contextlib.suppress(Exception):
        stop()
