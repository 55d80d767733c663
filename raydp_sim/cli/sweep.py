"""`raydp-sim sweep`: play a scenario for every combination of some values."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import click
import pyarrow.parquet as pq

from raydp_sim.cli import playing, shipped, tables
from raydp_sim.cli.phrases import epsilon
from raydp_sim.cli.sweeping import play_all
from raydp_sim.cli.tables import Column, Row
from raydp_sim.durable import fresh_folder, write_durable
from raydp_sim.errors import InputError
from raydp_sim.registry import search_also
from raydp_sim.run.documents import dumped
from raydp_sim.scenario import Scenario, parse
from raydp_sim.scenario.document import assigned, is_figure, overridden, read
from raydp_sim.sweep import manifest
from raydp_sim.sweep.grid import Axis, Point, points, shown
from raydp_sim.sweep.outcomes import Best, Outcome, best, measure_of, table
from raydp_sim.sweep.picture import draw

_EPILOG = """\b
Example:
  raydp-sim sweep quickstart --over mechanism.epsilon_local=0.5,1,2,4 \\
    --over mechanism.coordinates=1,2,4 --repeat 5 --set placement.backend=inline
  raydp-sim sweep quickstart --over population.clients=2000,5000,1e4 --out runs/clients
"""
_PIPE = 120


@click.command("sweep", epilog=_EPILOG)
@click.argument("scenario")
@click.option(
    "--over",
    "over",
    multiple=True,
    required=True,
    metavar="A.B=V1,V2,...",
    help="A field and its values; may be repeated: every combination is a point.",
)
@click.option("--repeat", type=click.IntRange(1), metavar="N", help="Repetitions of every point.")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="A.B=VALUE",
    help="Replace a field at every point; may be repeated.",
)
@click.option("--address", help="Join the Ray cluster at host:port (or auto).")
@click.option(
    "--out",
    metavar="DIR",
    help="The sweep directory: new, or that of the same sweep, which is then continued.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the points as one JSON document.")
def command(
    scenario: str,
    over: tuple[str, ...],
    repeat: int | None,
    assignments: tuple[str, ...],
    address: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Play SCENARIO, a file or the name of one that ships, at every point of a grid.

    All points have the seed of the file, and their numbers do not depend on the order. The sweep
    directory holds points/, a run directory each, sweep.parquet with a row per point, sweep.png
    and sweep.json. With the same arguments and --out an interrupted sweep is continued: points
    that are complete are not played again.

    The error is that of what the whole run learned; best is the point with the least.
    """
    path = shipped.find(scenario)
    axes = [Axis.read(text) for text in over]
    grid = points(axes)
    _check_fields(axes, assignments, repeat)
    scenarios = _scenarios(path, grid, assignments, repeat)
    found = {grid[place].folder: one.document() for place, one in enumerate(scenarios)}
    made = manifest.manifest(str(path), axes, found)
    folder = _folder(scenarios[0].name, out, made)
    try:
        summaries = play_all(grid, scenarios, folder, made, address, path)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_interrupted(folder)) from None
    measure = measure_of(summaries)
    rows = zip(grid, summaries, strict=True)
    outcomes = [Outcome.of(point, summary, measure) for point, summary in rows]
    chosen = best(outcomes)
    _write(folder, outcomes, measure, chosen)
    if as_json:
        click.echo(dumped(_document(folder, outcomes, measure, chosen)))
        return
    _print(outcomes, measure, chosen)
    click.echo(f"\nsweep directory  {folder}")
    for name in ("sweep.parquet", "sweep.png"):
        click.echo(f"{name:<17}{folder / name}")


def _check_fields(axes: Sequence[Axis], assignments: Sequence[str], repeat: int | None) -> None:
    """Refuse a field that is given in two ways."""
    given = {text.partition("=")[0].strip(): f"--set {text}" for text in assignments}
    if repeat is not None:
        given["repeat"] = f"--repeat {repeat}"
    for axis in axes:
        for field, option in given.items():
            if f"{field}.".startswith(f"{axis.field}."):
                raise InputError(f"--over {axis.field} and {option} both say it; give one of them")


def _scenarios(
    path: Path, grid: Sequence[Point], assignments: Sequence[str], repeat: int | None
) -> list[Scenario]:
    """Check every point before anything is played."""
    document = read(path)
    if is_figure(document):
        raise InputError(f"{path}: a figure is computed, not swept; give a scenario")
    search_also(Path.cwd(), path.parent)
    if not isinstance(document, Mapping):
        parse(document, source=str(path))  # which says what is wrong with it
    document = overridden(document, assignments)
    if repeat is not None:
        document["repeat"] = repeat
    made = []
    for point in grid:
        try:
            changed = assigned(document, point.values)
            made.append(parse(changed, source=str(path), folder=path.parent))
        except InputError as error:
            raise InputError(f"--over {point}: {error}") from None
    return made


def _folder(name: str, out: str | None, made: Mapping[str, Any]) -> Path:
    if out is not None and (Path(out) / manifest.NAME).is_file():
        folder = Path(out).resolve()
        manifest.check(folder, made)
    else:
        folder = fresh_folder(f"{name}-sweep", out)
    playing.check_writable(folder)
    return folder


def _interrupted(folder: Path) -> str:
    if not folder.exists():
        return "interrupted before anything was played; nothing was written"
    return f"interrupted; the same command with --out {folder} continues"


def _write(folder: Path, outcomes: list[Outcome], measure: str | None, chosen: Best | None) -> None:
    buffer = BytesIO()
    pq.write_table(table(outcomes, measure), buffer)
    write_durable(folder / "sweep.parquet", buffer.getvalue())
    least = None if chosen is None else chosen.least_error
    write_durable(folder / "sweep.png", draw(outcomes, measure, least))


def _document(
    folder: Path, outcomes: list[Outcome], measure: str | None, chosen: Best | None
) -> dict[str, Any]:
    cheap = None if chosen is None else chosen.cheapest
    return {
        "sweep_dir": str(folder),
        "error": measure,
        "points": [
            {"run_dir": str(folder / "points" / one.point.folder), **one.document()}
            for one in outcomes
        ],
        "best": None if chosen is None else dict(chosen.least_error.point.values),
        "best_at_least_epsilon": None if cheap is None else dict(cheap.point.values),
    }


def _print(outcomes: list[Outcome], measure: str | None, chosen: Best | None) -> None:
    values = {field: [one.point.values[field] for one in outcomes] for field in _fields(outcomes)}
    # A field with one value is named among the words below.
    varied = [field for field, each in values.items() if len(set(map(shown, each))) > 1]
    heads = ("epsilon", "error", "± s.e.", "local loss", "bits", "wall s")
    columns = [Column(_short(field, varied)) for field in varied] + [Column(h) for h in heads]
    rows = []
    for one in outcomes:
        cells = (
            *(shown(one.point.values[field]) for field in varied),
            epsilon(one.epsilon),
            "none" if one.error is None else f"{one.error:.4g}",
            "" if one.standard_error is None else f"{one.standard_error:.2g}",
            "" if one.epsilon_local is None else epsilon(one.epsilon_local),
            f"{one.bits:,}",
            f"{one.wall_s:.1f}",
        )
        least = chosen is not None and one is chosen.least_error
        rows.append(Row(cells, "bold green" if least else ""))
    if all(one.standard_error is None for one in outcomes):
        place = len(varied) + heads.index("± s.e.")
        columns = columns[:place] + columns[place + 1 :]
        rows = [Row(row.cells[:place] + row.cells[place + 1 :], row.style) for row in rows]
    laid = tables.fitted(columns, rows, room := tables.width(_PIPE), heads[:-4:-1])
    if laid.needed <= room:
        laid.show(_PIPE)
        laid.explain()
    else:
        numbered = [Row((f"{n}", *row.cells), row.style) for n, row in enumerate(rows, 1)]
        for part in tables.stacked([Column("point"), *columns], numbered, room):
            part.show(_PIPE)
            click.echo()
    click.echo()
    for sentence in _sentences(outcomes, measure, chosen):
        tables.say(sentence, otherwise=_PIPE)


def _fields(outcomes: list[Outcome]) -> list[str]:
    return list(outcomes[0].point.values)


def _short(field: str, fields: list[str]) -> str:
    last = [other.rpartition(".")[2] for other in fields]
    short = field.rpartition(".")[2]
    return short if last.count(short) == 1 else field


def _sentences(outcomes: list[Outcome], measure: str | None, chosen: Best | None) -> list[str]:
    """Name the best points, and say what best means."""
    if chosen is None or measure is None:
        return ["No point is best: nothing was released, or the points have no error in common."]
    first = chosen.least_error
    words = measure.replace("_", " ")
    sentences = [
        f"best: {first.point}, with the least {words} of {len(outcomes)} points, {_error(first)}, "
        f"at epsilon {epsilon(first.epsilon)}."
    ]
    if first.standard_error is None:
        sentences.append(
            "One repetition: chance may have chosen it; --repeat 5 says how far errors spread."
        )
    elif chosen.close:
        others = "1 other is" if chosen.close == 1 else f"{chosen.close} others are"
        sentences.append(f"{others} within two standard errors of it.")
    if (cheap := chosen.cheapest) is not None and cheap is not first:
        sentences.append(
            f"best at the least epsilon, {epsilon(cheap.epsilon)}: {cheap.point}, {_error(cheap)}."
        )
    return sentences


def _error(one: Outcome) -> str:
    spread = "" if one.standard_error is None else f" ± {one.standard_error:.2g} (standard error)"
    return f"{one.error:.4g}{spread}"
