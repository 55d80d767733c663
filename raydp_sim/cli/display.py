"""What a person sees while a run is played: its plan and live progress, on standard error."""

import sys
import time
from types import TracebackType
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from raydp_sim.cli.phrases import epsilon, plan_lines, spaced
from raydp_sim.metrics import streams
from raydp_sim.run.preflight import Plan
from raydp_sim.run.serving import Served
from raydp_sim.scenario import Scenario

_STEPS = 10  # progress lines of a run at most, where there is no terminal
_LINE_SECONDS = 2.0
_LIVE_SECONDS = 0.1


class Display:
    """Live progress. On a terminal one line that changes; elsewhere a few plain lines."""

    def __init__(self, scenario: Scenario, done: int = 0) -> None:
        self.scenario = scenario
        self.total = scenario.task.rounds * scenario.repeat
        self.rounds, self.repeat = scenario.task.rounds, scenario.repeat
        self.done = self.said = done
        self.said_at = 0.0
        self.live: Progress | None = None
        self.task = TaskID(0)
        console = Console(stderr=True)
        if sys.stderr.isatty() and not console.is_dumb_terminal:
            columns = (
                TextColumn("{task.description:<16}"),
                BarColumn(bar_width=14),
                TextColumn("{task.fields[detail]}"),
                TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            )
            self.live = Progress(*columns, console=console, transient=True)
            self.task = self.live.add_task("starting", total=None, detail="")

    def __enter__(self) -> "Display":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.live is not None:
            self.live.stop()

    # The hooks of `run.Watcher`.

    def planned(self, plan: Plan) -> None:
        """Say what the run will need and what to expect of it, and whether that is any good."""
        for line in plan_lines(self.scenario, plan):
            self._line(line)

    def phase(self, name: str) -> None:
        """Say what happens now."""
        self.said_at = time.monotonic()
        if self.live is None:
            if name != "playing":
                self._line(name)
            return
        playing = name == "playing"
        self.live.reset(
            self.task,
            description="releases" if playing else name,
            total=self.total if playing else None,
            completed=self.done if playing else 0,
            detail="",
        )

    def loaded(self, done: int, total: int) -> None:
        """Count the client actors that have their data."""
        if self.live is not None:
            self.live.update(
                self.task, total=total, completed=done, detail=f"{done} of {total} actors"
            )

    def served(self, served: Served) -> None:
        """Say where and how the run can be followed."""
        for line in served.lines():
            self._line(line)

    def told(self, line: str) -> None:
        """Say what happened to the run that it went on after."""
        self._line(line)

    def row(self, row: dict[str, Any]) -> None:
        """Show a release: how many are done, the error of this one and what was spent so far."""
        self.done = row["repetition"] * self.rounds + row["release"] + 1
        now, last = time.monotonic(), self.done == self.total
        step = (self.done - self.said) * _STEPS >= self.total
        calm = step and now - self.said_at >= _LINE_SECONDS
        lively = now - self.said_at >= _LIVE_SECONDS
        if not (last or (calm if self.live is None else lively)):
            return
        self.said, self.said_at = self.done, now
        if self.live is None:
            self._line(f"release {self._place(row)}, {_state(row)}")
        else:
            # Short: the bar and the remaining time have to fit on the line too.
            detail = f"{self.done:,} of {self.total:,}, {_state(row, short=True)}"
            self.live.update(self.task, completed=self.done, detail=detail)

    def _place(self, row: dict[str, Any]) -> str:
        place = f"{row['release'] + 1} of {self.rounds}"
        if self.repeat > 1:
            place += f" (repetition {row['repetition'] + 1} of {self.repeat})"
        return place

    def _line(self, text: str) -> None:
        if self.live is None:
            click.echo(text, err=True)
        else:
            self.live.console.print(text, highlight=False, markup=False)


def _state(row: dict[str, Any], short: bool = False) -> str:
    scores = streams.scores(row)
    # The first score a task names is the one it is about.
    name = " ".join(spaced(scores[0]).split()[: 2 if short else None]) if scores else ""
    said = [f"{name} {row[scores[0]]:.4g}"] if scores else []
    if row["epsilon"] is not None:
        said.append(f"epsilon{'' if short else ' so far'} {epsilon(row['epsilon'])}")
    return ", ".join(said) or f"{row['batch_size']:,} reports"
