"""`raydp-sim stress`: what latecomers, absentees and dropouts do to an estimate."""

import contextlib
import difflib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from raydp_sim.cli import tables
from raydp_sim.cli.playing import check_writable
from raydp_sim.cli.shipped import shipped
from raydp_sim.cli.tables import Column, Row
from raydp_sim.durable import fresh_folder, write_durable
from raydp_sim.errors import InputError, RunError, bad_field
from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.registry import search_also
from raydp_sim.run import RunResult, prepare
from raydp_sim.scenario import Scenario, load
from raydp_sim.stress.diagnosis import Finding, diagnose
from raydp_sim.stress.measures import Measures, measure
from raydp_sim.stress.picture import draw

BASELINE = "steady"
_FOLDER = "stress/"
_PICTURES = (".png", ".pdf", ".svg")
_EPILOG = """\b
Example:
  raydp-sim stress
  raydp-sim stress night-drought stragglers --out runs/nights
  raydp-sim stress half-dropout --set population.dropout=0.8 --json
"""
_PIPE = 112
_COLUMNS = (
    "error: squared, of one release. final: of the mean of all of them, in this run. expected: of",
    "the same, noise and squared bias. bias: from the population to those who took part. batch:",
    "reports in a release, 5th percentile and median. made/held: releases, and batches withheld.",
    "epsilon/plan: of the client charged most, and planned. behind: releases that reports were",
    "behind, mean and most. wasted: reports begun that are in no release.",
)
Step = Callable[[], None]


@click.command("stress", epilog=_EPILOG)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="A.B=VALUE",
    help="Replace a field of every scenario; may be repeated.",
)
@click.option("--out", metavar="DIR", help="Where the run directories go; default: under runs/.")
@click.option("--plot", metavar="FILE", help="The picture; default: stress.png in that folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list, a row per scenario.")
def command(
    names: tuple[str, ...],
    assignments: tuple[str, ...],
    out: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Play the stress scenarios, or those NAMEd, and compare them with `steady`.

    A NAME is one of those that `raydp-sim list` shows under stress/, or a scenario file of your
    own. Each run directory stays, with a picture of all of them and stress.json, the table.
    """
    search_also(Path.cwd())
    found = _chosen(names, assignments)
    folder = fresh_folder("stress", out)
    check_writable(folder)
    picture = folder / "stress.png" if plot is None else _picture(plot)
    results = {}
    with _progress(list(found.values())) as begin:
        for name, (path, scenario) in found.items():
            results[name] = _play(path, scenario, folder / name, begin(name))
    rows = [_measured(result) for result in results.values()]
    findings = [diagnose(row, rows[0]) for row in rows]
    draw(rows, picture)
    document = [
        {
            **row.document(),
            "baseline": rows[0].name,
            "description": result.scenario.description,
            "findings": [{"rule": each.rule, "text": each.text} for each in wrong],
            "run_dir": str(result.run_dir),
        }
        for row, wrong, result in zip(rows, findings, results.values(), strict=True)
    ]
    text = json.dumps(document, indent=2)
    write_durable(folder / "stress.json", f"{text}\n".encode())
    if as_json:
        click.echo(text)
        return
    _print(rows, findings)
    click.echo(f"\nrun directories  {folder}\npicture          {picture}")


def _chosen(
    names: tuple[str, ...], assignments: tuple[str, ...]
) -> dict[str, tuple[Path, Scenario]]:
    """Load everything before anything is played; the baseline comes first."""
    ours = {
        name.removeprefix(_FOLDER): path
        for name, path in shipped().items()
        if name.startswith(_FOLDER)
    }
    paths = [ours[BASELINE]]
    for name in names or ours:
        short = name.removeprefix(_FOLDER)
        path = ours.get(short, Path(name))
        if not path.is_file():
            near = difflib.get_close_matches(short, ours, 1)
            known = f"did you mean {near[0]!r}? " if near else ""
            raise bad_field("NAME", name, f"{known}there are {', '.join(ours)}, or give a file")
        if path not in paths:
            paths.append(path)
    found: dict[str, tuple[Path, Scenario]] = {}
    for path in paths:
        scenario = load(path, assignments)
        if scenario.name in found:
            raise InputError(f"{path}: name is {scenario.name!r}; another has it: change it")
        found[scenario.name] = path, scenario
    return found


def _picture(plot: str) -> Path:
    """Find out now, not after all the runs, whether the picture can be written."""
    path = Path(plot)
    if path.suffix not in _PICTURES:
        raise bad_field("--plot", plot, f"it must end in {', '.join(_PICTURES)}")
    try:
        check_writable(path.resolve().parent)
    except InputError:
        raise bad_field("--plot", plot, "its folder is not writable: give another") from None
    return path


def _play(path: Path, scenario: Scenario, out: Path, step: Step) -> RunResult:
    made = prepare(scenario, out, origin=path)
    try:
        with contextlib.closing(made.play()) as rows:
            for _ in rows:
                step()
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if made.result is None:
        raise RunError(f"{scenario.name} ended without a result")
    return made.result


def _measured(result: RunResult) -> Measures:
    folder = result.run_dir
    withheld = streams.read(folder / "metrics", "withheld")
    charges = store.charges(folder / "ledger")
    return measure(result.scenario, result.summary, result.metrics, withheld, charges)


@contextlib.contextmanager
def _progress(found: list[tuple[Path, Scenario]]) -> Iterator[Callable[[str], Step]]:
    """Show what is being played: a bar on a terminal, elsewhere a line per scenario."""
    console, total = Console(stderr=True), len(found)
    if not console.is_terminal or console.is_dumb_terminal:
        numbers = iter(range(1, total + 1))

        def say(name: str) -> Step:
            click.echo(f"playing {name} ({next(numbers)} of {total})", err=True)
            return lambda: None

        yield say
        return
    columns = (
        TextColumn("{task.description:<22}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:.0f} of {task.total:.0f} releases"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        releases = sum(scenario.task.rounds * scenario.repeat for _, scenario in found)
        task, before = bar.add_task("", total=releases), 0
        lengths = iter([scenario.task.rounds * scenario.repeat for _, scenario in found])

        def begin(name: str) -> Step:
            nonlocal before
            # Withheld batches make no rows, so each scenario begins where it should.
            bar.update(task, description=name, completed=before)
            before += next(lengths)
            return lambda: bar.advance(task)

        yield begin


def _print(rows: list[Measures], findings: list[list[Finding]]) -> None:
    for laid in _tables(rows):
        laid.show(_PIPE)
        click.echo()
    for line in (" ".join(_COLUMNS),) if tables.is_terminal() else _COLUMNS:
        tables.say(line)
    click.echo("\nwhat went wrong, and what to change\n")
    words = []
    for row, wrong in zip(rows, findings, strict=True):
        for number, each in enumerate(wrong or [Finding("none", "Nothing went wrong.")]):
            words.append(Row(("" if number else row.name, each.text)))
        words.append(Row(("", "")))
    columns = [Column("", right=False, bold=True), Column("", right=False, wraps=True)]
    tables.fitted(columns, words[:-1], tables.width(_PIPE), headed=False).show(_PIPE)


def _tables(rows: list[Measures]) -> list[tables.Laid]:
    heads = (
        *("error", "final", "expected", "bias", "batch", "made/held", "epsilon/plan"),
        *("Gini", "behind", "wasted"),
    )
    columns = [Column("scenario", right=False, bold=True), *map(Column, heads)]
    lines = [
        Row(
            (
                row.name,
                _number(row.squared_error),
                _number(row.running_error),
                _number(row.expected_error),
                _number(row.bias),
                f"{row.batch_p5:.0f}, {row.batch_median:.0f}",
                f"{row.made}/{row.withheld_count}",
                f"{row.epsilon:.3g}/{row.planned:.3g}",
                f"{row.gini:.2f}",
                f"{row.staleness:.1f}, {row.stalest}",
                f"{row.waste.total:.0%}",
            )
        )
        for row in rows
    ]
    return tables.stacked(columns, lines, tables.width(_PIPE))


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.2g}"
