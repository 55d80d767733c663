"""Playing a figure for a person: progress on stderr, the table of claims on stdout."""

import json
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from raydp_sim.cli.playing import check_writable
from raydp_sim.durable import fresh_folder
from raydp_sim.figures import load, play
from raydp_sim.figures.play import Watcher


class Display:
    """Live progress. On a terminal one line that changes; elsewhere a line per panel."""

    def __init__(self) -> None:
        self.live: Progress | None = None
        self.task = TaskID(0)
        console = Console(stderr=True)
        if sys.stderr.isatty() and not console.is_dumb_terminal:
            columns = (TextColumn("{task.description:<16}"), BarColumn(bar_width=30))
            self.live = Progress(*columns, console=console, transient=True)
            self.task = self.live.add_task("starting", total=None)

    def __enter__(self) -> Watcher:
        if self.live is not None:
            self.live.start()
        return Watcher(self._panel, self._row, self._claims)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def _panel(self, name: str, rows: int) -> None:
        if self.live is None:
            click.echo(f"panel {name}: {rows} values", err=True)
        else:
            self.live.reset(self.task, description=f"panel {name}", total=rows)

    def _row(self) -> None:
        if self.live is not None:
            self.live.advance(self.task)

    def _claims(self, count: int) -> None:
        if self.live is None:
            click.echo(f"{count} claims, and the picture", err=True)
        else:
            self.live.reset(self.task, description="claims", total=None)


def run_figure(path: Path, assignments: tuple[str, ...], out: str | None, as_json: bool) -> None:
    """Play a figure's file with live progress, then print its claims.

    Raises:
        KeyboardInterrupt: says what is left behind.
    """
    file = load(path, assignments)
    folder = fresh_folder(file.name, out)
    check_writable(folder)
    try:
        with Display() as watcher:
            played = play(file, folder, watcher)
    except KeyboardInterrupt:
        left = f"; {folder} is incomplete" if folder.exists() else ""
        raise KeyboardInterrupt(f"interrupted{left}; run the figure again") from None
    if as_json:
        click.echo(json.dumps(played.summary, indent=2))
    else:
        print_claims(played.summary)


def print_claims(summary: dict[str, Any]) -> None:
    """Print what the text says beside what was computed here."""
    # Pipes have no width; a wide one keeps the reasons readable.
    console = Console(width=None if sys.stdout.isatty() else 110)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 1, 0))
    table.add_column("claim", ratio=5)
    table.add_column("seed", no_wrap=True)
    table.add_column("here", ratio=2)
    table.add_column("holds", no_wrap=True)
    table.add_column("why", ratio=6)
    for claim in summary["claims"]:
        holds = "yes" if claim["holds"] else "no"
        table.add_row(claim["claim"], claim["printed"], claim["here"], holds, claim["why"])
    if summary["claims"]:
        console.print(table, highlight=False, markup=False)
        console.print()
    else:
        console.print("The text claims no number about this figure.\n")
    folder, timing = Path(summary["run_dir"]), summary["timing"]
    facts = (
        ("figure", summary["scenario"]),
        ("CPU time", f"{timing['cpu_s']:.1f} s"),
        ("run directory", folder),
        ("picture", folder / "plot.png"),
    )
    for name, value in facts:
        console.print(f"{name:<16}{value}", soft_wrap=True, highlight=False, markup=False)
