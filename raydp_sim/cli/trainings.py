"""`raydp-sim trainings`: what many training runs came to, side by side."""

import json
import re
from dataclasses import asdict
from typing import Any

import click
import pyarrow as pa

from raydp_sim.cli import tables
from raydp_sim.cli.phrases import epsilon
from raydp_sim.cli.pictures import picture_file
from raydp_sim.cli.stored import finished, read_stored, store
from raydp_sim.cli.tables import Column, Row
from raydp_sim.errors import InputError
from raydp_sim.metrics.trainings import SCHEMA, SCORES, Outcome, draw, outcomes, row, table
from raydp_sim.scenario.document import read

_EPILOG = """\b
Example:
  raydp-sim trainings runs/frontier-*
  raydp-sim trainings runs/frontier-* --csv frontier.csv --plot frontier.png
"""
_PIPE = 100
_SEED = re.compile(r"-\d+$")


@click.command("trainings", epilog=_EPILOG)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--csv", "file", metavar="FILE.csv", help="Write one row per run.")
@click.option("--plot", metavar="FILE.png", help="Draw accuracy against bits, or by setting.")
@click.option(
    "--of",
    type=click.Choice(list(SCORES)),
    default="test",
    show_default=True,
    help="Samples that accuracies of runs are on; a file has those that it was written with.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    runs: tuple[str, ...], file: str | None, plot: str | None, of: str, as_json: bool
) -> None:
    """Show what training runs came to: accuracy, epsilon, bits of a report and rounds.

    RUN is the directory of a finished run, or a file that `--csv` wrote. Runs whose directories are
    called alike but for a number at the end, as in codebook-1 and codebook-2, are taken together:
    shown is their mean, with the standard deviation of a single run.
    """
    picture = picture_file(plot)
    found = pa.concat_tables([_runs(run, of) for run in runs])
    together = outcomes(found)
    if file is not None:
        store(found, file)
    if picture is not None:
        draw(together, picture)
    if as_json:
        click.echo(json.dumps([asdict(one) for one in together], indent=2))
        return
    _print(together)


def _runs(run: str, of: str) -> pa.Table:
    if run.endswith(".csv"):
        return read_stored(run, SCHEMA, "trainings")
    folder = finished(run)
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    if "learning" not in summary:
        raise InputError(f"{run}: it trained nothing; give runs that train a model")
    made = row(_SEED.sub("", folder.name), read(folder / "scenario.yaml"), summary, of)
    if made["accuracy"] is None and made["alone"] is None and of != "test":
        raise InputError(
            f"{run}: it looked at no samples for {of}; give runs with population.data.{of}, or "
            f"personal_{of} where models are personal"
        )
    return table([made])


def _print(found: list[Outcome]) -> None:
    alone = any(one.alone is not None for one in found)
    withheld = any(one.withheld for one in found)
    names = ["bits", "rounds", *(["withheld"] if withheld else []), "epsilon_local", "epsilon"]
    columns = [
        Column("setting", right=False),
        Column("mechanism", right=False),
        *(Column(name) for name in [*names, "accuracy", *(["alone"] if alone else [])]),
    ]
    rows = []
    for one in found:
        cells = [one.setting, one.mechanism, f"{one.bits:,}", f"{one.rounds:,}"]
        cells += [f"{one.withheld:g}"] if withheld else []
        cells += ["none" if one.epsilon_local is None else f"{one.epsilon_local:.4g}"]
        cells += [epsilon(one.epsilon), _percent(one)]
        cells += ["" if one.alone is None else f"{one.alone:.4f}"] if alone else []
        rows.append(Row(tuple(cells)))
    tables.fitted(columns, rows, tables.width(_PIPE)).show(_PIPE)
    if any(one.runs > 1 for one in found):
        click.echo()
        counts = sorted({one.runs for one in found if one.runs > 1})
        said = " or ".join(map(str, counts))
        tables.say(f"With brackets it is the mean of {said} runs; they have one's deviation.")


def _percent(one: Outcome) -> str:
    if one.accuracy is None:
        return "none"
    return f"{one.accuracy:.4f}" + ("" if one.spread is None else f" ({one.spread:.4f})")
