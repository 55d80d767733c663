"""Playing the points of a sweep, with progress, from wherever it was interrupted."""

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from raydp_sim.cli.phrases import duration, epsilon
from raydp_sim.cli.playing import one_interrupt
from raydp_sim.cli.tables import wrapped_for_stderr
from raydp_sim.errors import InputError, RunError, bad_field
from raydp_sim.run import Run, prepare, reopen
from raydp_sim.run.directory import RunDir
from raydp_sim.scenario import Scenario
from raydp_sim.sweep import manifest
from raydp_sim.sweep.grid import Point

Step = Callable[[], None]


def play_all(
    grid: Sequence[Point],
    scenarios: Sequence[Scenario],
    folder: Path,
    made: Mapping[str, Any],
    address: str | None,
    origin: Path,
) -> list[dict[str, Any]]:
    """Play every point that is not complete and return the summaries of all.

    Args:
        grid: the points.
        scenarios: what each of them plays.
        folder: the sweep directory.
        made: what it is made from; written before the first point.
        address: a running Ray cluster to join.
        origin: the scenario's file.

    Raises:
        InputError: a point cannot be played; if that is known before, nothing is.
        RunError: a point cannot go on; the same sweep continues it.
    """
    if address is not None and any(one.placement.backend == "inline" for one in scenarios):
        remedy = "a point says placement.backend: inline; leave --address out"
        raise bad_field("--address", address, remedy)
    runs = [
        _run(folder / "points" / point.folder, scenario, address, origin)
        for point, scenario in zip(grid, scenarios, strict=True)
    ]
    _plan(grid, runs)
    folder.mkdir(parents=True, exist_ok=True)
    manifest.write(folder, made)
    with one_interrupt(), _ray(scenarios, runs, address), _progress(runs) as begin:
        for point, run in zip(grid, runs, strict=True):
            if run.result is None:
                _play(point, run, begin(str(point)))
    summaries = [run.result.summary for run in runs if run.result is not None]
    if len(summaries) < len(runs):
        raise RunError("a point ended without a result")
    return summaries


def _run(path: Path, scenario: Scenario, address: str | None, origin: Path) -> Run:
    """Open a point where it stands: complete, interrupted, or not begun."""
    if RunDir(path).begun():
        return reopen(path, address)
    if path.is_dir():
        shutil.rmtree(path)  # killed while it was being made, so nothing is in it yet
    return prepare(scenario, path, address, origin)


def _plan(grid: Sequence[Point], runs: Sequence[Run]) -> None:
    """Say what is to come, and refuse what cannot fit before anything is played."""
    seconds, epsilons = 0.0, []
    for point, run in zip(grid, runs, strict=True):
        if run.result is not None:
            continue
        try:
            plan = run.planned()
        except InputError as error:
            raise InputError(f"--over {point}: {error}") from None
        seconds += plan.seconds
        epsilons.append(plan.epsilon)
    done = len(runs) - len(epsilons)
    text = f"sweep: {len(runs)} points" + (f", {done} complete" if done else "")
    if epsilons:
        low, high = epsilon(min(epsilons)), epsilon(max(epsilons))
        planned = low if low == high else f"{low} to {high}"
        text += f", {duration(seconds)}; epsilon {planned} for a client in every release"
    click.echo(wrapped_for_stderr(text), err=True)


def _play(point: Point, run: Run, step: Step) -> None:
    try:
        with contextlib.closing(run.play()) as rows:
            for _ in rows:
                step()
    except InputError as error:
        raise InputError(f"--over {point}: {error}") from None
    except RunError as error:
        raise RunError(f"{point}: {error}", error.resumable) from error


@contextlib.contextmanager
def _ray(scenarios: Sequence[Scenario], runs: Sequence[Run], address: str | None) -> Iterator[None]:
    """Hold one Ray for all points, if any needs it; each run finds it there."""
    timeouts = [
        one.placement.start_timeout
        for one, run in zip(scenarios, runs, strict=True)
        if one.placement.backend == "ray" and run.result is None
    ]
    if not timeouts:
        yield
        return
    # Ray takes a second to import; what does not need it should not wait for it.
    from raydp_sim.actors.cluster import connected

    click.echo("starting Ray", err=True)
    with connected(address, max(timeouts)):
        yield


@contextlib.contextmanager
def _progress(runs: Sequence[Run]) -> Iterator[Callable[[str], Step]]:
    """Show which point is being played: a bar on a terminal, elsewhere a line per point."""
    left = [run.scenario for run in runs if run.result is None]
    console, numbers = Console(stderr=True), iter(range(1, len(left) + 1))
    if not left or not console.is_terminal or console.is_dumb_terminal:

        def say(name: str) -> Step:
            click.echo(f"playing {name} ({next(numbers)} of {len(left)})", err=True)
            return lambda: None

        yield say
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.completed:.0f} of {task.total:.0f} releases"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        lengths = [scenario.task.rounds * scenario.repeat for scenario in left]
        task = bar.add_task("", total=sum(lengths))

        def begin(name: str) -> Step:
            place = next(numbers)
            short = name if len(name) <= 30 else f"point {place} of {len(left)}"
            # Withheld batches make no rows, so each point begins where it should.
            bar.update(task, description=short, completed=sum(lengths[: place - 1]))
            return lambda: bar.advance(task)

        yield begin
