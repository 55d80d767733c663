"""`raydp-sim compare`: finished runs side by side."""

from pathlib import Path
from typing import Any

import click

from raydp_sim.cli import tables
from raydp_sim.cli.phrases import epsilon
from raydp_sim.cli.pictures import picture_file
from raydp_sim.cli.tables import Column, Row
from raydp_sim.durable import write_durable
from raydp_sim.errors import InputError
from raydp_sim.registry import search_also
from raydp_sim.run import RunResult, reopen
from raydp_sim.run.documents import dumped
from raydp_sim.scenario.document import is_figure, read
from raydp_sim.sweep.comparison import cell, differences, draw, labels
from raydp_sim.sweep.grid import Point
from raydp_sim.sweep.outcomes import Outcome, measure_of

_EPILOG = """\b
Example:
  raydp-sim compare runs/first runs/second
  raydp-sim compare runs/clients/points/* --plot clients.png
"""
_PIPE = 120


@click.command("compare", epilog=_EPILOG)
@click.argument("runs", metavar="RUN RUN...", nargs=-1, required=True)
@click.option("--plot", metavar="FILE.png", help="Draw error, epsilon and bytes of each run.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(runs: tuple[str, ...], plot: str | None, as_json: bool) -> None:
    """Show finished runs side by side: what differs in their scenarios, and what came of them.

    The error is one that all of them have: of what the whole run learned, if they do.
    """
    search_also(Path.cwd())
    picture = picture_file(plot)
    results = _results(runs)
    names = labels([str(result.run_dir) for result in results])
    differ = differences([result.scenario.document() for result in results])
    summaries = [result.summary for result in results]
    measure = measure_of(summaries)
    rows = []
    for place, summary in enumerate(summaries):
        point = Point({field: values[place] for field, values in differ.items()})
        rows.append(Outcome.of(point, summary, measure))
    if picture is not None:
        write_durable(picture, draw(names, [vars(row) for row in rows], measure))
    if as_json:
        click.echo(dumped(_document(results, rows, measure)))
        return
    _print(names, rows, differ, measure)
    if picture is not None:
        click.echo(f"\npicture: {picture}")


def _results(runs: tuple[str, ...]) -> list[RunResult]:
    if len(runs) < 2:
        raise InputError(f"RUN is {runs[0]!r}; give at least two run directories to compare")
    found: dict[Path, RunResult] = {}
    for run in runs:
        path = Path(run)
        file = path / "scenario.yaml"
        if file.is_file() and is_figure(read(file)):
            raise InputError(f"{run}: a figure has no error or epsilon; give a played run")
        if path.resolve() in found:
            raise InputError(f"{run}: it is given twice; give every run once")
        result = reopen(path).result
        if result is None:
            raise InputError(f"{run}: it is not complete; end it with `raydp-sim resume {run}`")
        found[path.resolve()] = result
    return list(found.values())


def _document(results: list[RunResult], rows: list[Outcome], measure: str | None) -> dict[str, Any]:
    played = []
    for result, row in zip(results, rows, strict=True):
        numbers = {name: value for name, value in vars(row).items() if name != "point"}
        differ = dict(row.point.values)
        played.append({"run_dir": str(result.run_dir), "differs": differ, **numbers})
    return {"error": measure, "runs": played}


def _print(
    names: list[str], rows: list[Outcome], differ: dict[str, list[Any]], measure: str | None
) -> None:
    """Print a line per fact and a column per run; runs that find no room come below."""
    error = (measure or "error").replace("_", " ")
    facts: list[tuple[str, list[str]]] = [
        (field, [cell(value) for value in values]) for field, values in differ.items()
    ]
    facts += [
        ("epsilon", [epsilon(row.epsilon) for row in rows]),
        ("delta", [f"{row.delta:.4g}" for row in rows]),
        ("epsilon_local", [_or_none(row.epsilon_local) for row in rows]),
        (error, ["none" if row.error is None else f"{row.error:.4g}" for row in rows]),
        ("standard error", [_or_none(row.standard_error, 2) for row in rows]),
        ("releases", [f"{row.releases:g}" for row in rows]),
        ("bits per report", [f"{row.bits:,}" for row in rows]),
        ("bytes in all", [f"{row.wire_bytes:,}" for row in rows]),
        ("wall time", [f"{row.wall_s:.1f} s" for row in rows]),
    ]
    columns = [Column("", right=False, bold=True), *(Column(name) for name in names)]
    lines = [Row((fact, *values)) for fact, values in facts]
    for number, laid in enumerate(tables.stacked(columns, lines, tables.width(_PIPE))):
        if number:
            click.echo()
        laid.show(_PIPE)
    if not differ:
        tables.say("\nThe scenarios are the same.")


def _or_none(value: float | None, digits: int = 4) -> str:
    return "none" if value is None else f"{value:.{digits}g}"
