"""`raydp-sim curves`: the learning curves of training runs, against rounds and epsilon."""

import json
import math
from dataclasses import asdict
from pathlib import Path

import click
import pyarrow as pa

from raydp_sim.cli import tables
from raydp_sim.cli.phrases import epsilon
from raydp_sim.cli.pictures import picture_file
from raydp_sim.cli.tables import Column, Row
from raydp_sim.errors import InputError, bad_field
from raydp_sim.metrics.curves import (
    COLUMNS,
    Reached,
    curves,
    draw,
    reached,
    read_csv,
    write_csv,
)
from raydp_sim.run.directory import RunDir

_EPILOG = """\b
Example:
  raydp-sim curves runs/e2-*
  raydp-sim curves runs/e2-* --at 1.4=0.80 --at 2.91=0.90 --csv e2.csv --plot e2.png
"""
_PIPE = 100


@click.command("curves", epilog=_EPILOG)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--at",
    "points",
    multiple=True,
    metavar="EPSILON[=ACCURACY]",
    help="Show where the runs stood at an epsilon of the papers' own bound, beside what was "
    "printed for it; may be repeated.",
)
@click.option("--csv", "file", metavar="FILE.csv", help="Write all points of all curves.")
@click.option("--plot", metavar="FILE.png", help="Draw the curves.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    runs: tuple[str, ...],
    points: tuple[str, ...],
    file: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Show how good the models of training runs were, when, and at which epsilon.

    RUN is the directory of a run, or a file that `--csv` wrote. Runs are meant to differ in their
    seed only: shown is their mean, with the standard deviation of a single run.
    """
    picture, printed = picture_file(plot), dict(_point(point) for point in points)
    table = pa.concat_tables([_curves(run) for run in runs])
    found = {at: reached(table, at) for at in printed}
    last = reached(table)
    if last is None:
        raise InputError("RUN: the runs have no release in common that was evaluated")
    if file is not None:
        _write(table, file)
    if picture is not None:
        draw(table, printed, picture)
    if as_json:
        said = {f"{at:g}": None if one is None else asdict(one) for at, one in found.items()}
        click.echo(json.dumps({"at": said, "end": asdict(last)}, indent=2))
        return
    _print(found, last, printed)


def _write(table: pa.Table, file: str) -> None:
    try:
        write_csv(table, Path(file))
    except OSError as error:
        raise bad_field("--csv", file, f"it cannot be written: {error.strerror}") from None


def _point(text: str) -> tuple[float, float | None]:
    at, _, value = text.partition("=")
    try:
        return float(at), float(value) if value else None
    except ValueError:
        raise bad_field("--at", text, "write it as 1.4 or as 1.4=0.80") from None


def _curves(run: str) -> pa.Table:
    if run.endswith(".csv"):
        return _stored(Path(run))
    folder = RunDir.existing(run).path
    table = curves(folder.name, folder / "metrics")
    if table.num_rows == 0:
        raise InputError(f"{run}: it has no stream `learning`; give runs that train a model")
    return table


def _stored(path: Path) -> pa.Table:
    """Return curves that `--csv` wrote."""
    try:
        table = read_csv(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: it cannot be read: {error}") from None
    if tuple(table.column_names) != COLUMNS:
        raise InputError(f"{path}: it was not written by `raydp-sim curves --csv`")
    return table


def _print(
    found: dict[float, Reached | None], last: Reached, printed: dict[float, float | None]
) -> None:
    columns = [
        Column("where", right=False),
        *(Column(name) for name in ("round", "papers' epsilon", "epsilon", "accuracy", "printed")),
    ]
    rows = []
    for at, one in found.items():
        paper = printed[at]
        shown = "" if paper is None else f"{paper:.4g}"
        rows.append(Row((f"papers' {at:g}", *_cells(one), shown)))
    rows.append(Row(("end", *_cells(last), "")))
    tables.fitted(columns, rows, tables.width(_PIPE)).show(_PIPE)
    if last.runs > 1:
        click.echo()
        tables.say(f"Mean of {last.runs} runs; in brackets the standard deviation of one.")


def _cells(one: Reached | None) -> tuple[str, ...]:
    if one is None:
        return ("", "", "", "not reached")
    spread = "" if math.isnan(one.spread) else f" ({one.spread:.4f})"
    seed = "" if math.isnan(one.epsilon_seed) else epsilon(one.epsilon_seed)
    return (f"{one.round:,}", seed, epsilon(one.epsilon), f"{one.accuracy:.4f}{spread}")
