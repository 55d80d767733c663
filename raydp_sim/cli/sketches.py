"""`raydp-sim sketches`: algorithms made of sketched means, all schemes side by side."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import yaml

from raydp_sim.cli import tables
from raydp_sim.cli.pictures import picture_file
from raydp_sim.cli.stored import finished, read_stored, store
from raydp_sim.cli.tables import Column, Row
from raydp_sim.errors import InputError
from raydp_sim.metrics import streams
from raydp_sim.metrics.sketches import (
    MEASURES,
    OURS,
    SCHEMA,
    Compared,
    compared,
    draw,
    rows,
    setting_of,
    table,
)
from raydp_sim.scenario import parse
from raydp_sim.scenario import setting_of as settled
from raydp_sim.scenario.document import read
from raydp_sim.tasks.sketching.power_iteration import PowerIteration

_EPILOG = """\b
Example:
  raydp-sim sketches runs/component/points/*
  raydp-sim sketches runs/*/points/* --csv sketches.csv --plot sketches.png
  raydp-sim sketches sketches.csv --of error
"""
_PIPE = 130
_SHORT = {"Rand-k-Spatial": "Spatial", "Rand-Proj-Spatial": "Proj-Spatial"}


@click.command("sketches", epilog=_EPILOG)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--of",
    "measure",
    type=click.Choice(MEASURES),
    default="loss",
    show_default=True,
    help="The task's loss, the squared error of its means, or the distance of power iteration's "
    "last vector from the first principal component.",
)
@click.option("--csv", "file", metavar="FILE.csv", help="Write means over repetitions.")
@click.option("--plot", metavar="FILE.png", help="Draw the loss against iterations.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    runs: tuple[str, ...], measure: str, file: str | None, plot: str | None, as_json: bool
) -> None:
    """Compare schemes of sketching by what power iteration, k-means or regression made of them.

    RUN is the directory of a finished run, such as the points of a sweep, or a file that `--csv`
    wrote. Shown is the last iteration, mean over repetitions; `best` says whether
    Rand-Proj-Spatial, decoded with `avg`, is, or that no more than two standard errors lie between
    it and the next (`close`).
    """
    picture = picture_file(plot)
    found = pa.concat_tables([_rows(run) for run in runs])
    _check_once(found)
    if file is not None:
        store(found, file)
    if picture is not None:
        draw(found, picture)
    together = compared(found, measure)
    if as_json:
        click.echo(json.dumps([_document(one) for one in together], indent=2))
        return
    if not together:
        raise InputError("there are no two schemes of one setting; give more runs")
    _print(together, measure)


def _rows(run: str) -> pa.Table:
    if run.endswith(".csv"):
        return read_stored(run, SCHEMA, "sketches")
    folder = finished(run)
    document = read(folder / "scenario.yaml")
    errors = streams.read(folder / "metrics", "errors")
    try:
        setting, _ = setting_of(document)
        if "loss" not in errors.column_names:
            raise KeyError("loss")
    except KeyError:
        wanted = "power-iteration, k-means or linear-regression of a sketch"
        raise InputError(f"{run}: it is no run of {wanted}") from None
    distances = []
    if setting.task == PowerIteration.kind:
        for repetition in range(document.get("repeat", 1)):
            distances.append(_distance(folder, document, repetition))
    return table(rows(document, errors, distances))


def _distance(folder: Path, document: dict[str, Any], repetition: int) -> float:
    """Return how far the last vector of a repetition is from the first principal component."""
    part = f"repetition-{repetition}/" if document.get("repeat", 1) > 1 else ""
    with np.load(folder / "model" / f"{part}last.npz") as model:
        point = model["point"][0]
    whole = {name: document[name] for name in ("seed", "population", "task")}
    top = _principal(yaml.safe_dump(document), json.dumps(whole, sort_keys=True), repetition)
    return float(np.sqrt(max(0.0, 2.0 - 2.0 * abs(float(point @ top)))))


@lru_cache(maxsize=64)
def _same(key: str, repetition: int) -> list[Any]:
    """Return a place to keep what runs of the same data have in common."""
    return []


def _principal(written: str, key: str, repetition: int) -> Any:
    kept = _same(key, repetition)
    if not kept:
        scenario = parse(yaml.safe_load(written))
        assert isinstance(scenario.task, PowerIteration)
        setting = settled(scenario)
        ids = np.arange(scenario.population.clients, dtype=np.uint32)
        held = scenario.population.hold(ids, scenario.stream(repetition))
        samples, real = scenario.task.samples(setting, held)
        rows = ((samples - scenario.task.middle(setting)) * real[..., None]).reshape(
            -1, samples.shape[-1]
        )
        kept.append(np.linalg.eigh(rows.T @ rows)[1][:, -1])
    return kept[0]


def _check_once(found: pa.Table) -> None:
    seen: set[tuple[Any, ...]] = set()
    for row in found.to_pylist():
        key = tuple(row[name] for name in SCHEMA.names[:6])
        if key in seen:
            raise InputError(
                f"two runs are of {row['scheme']} at {row['task']}, {row['split']}, "
                f"{row['clients']} clients and {row['kept']} numbers; give one, with --repeat"
            )
        seen.add(key)


def _document(one: Compared) -> dict[str, Any]:
    values = {name: {"mean": mean, "spread": spread} for name, (mean, spread) in one.values.items()}
    return {
        **one.setting._asdict(),
        "iterations": one.iterations,
        "runs": one.runs,
        "correlation": one.correlation,
        "values": values,
        "best": one.best,
        "holds": one.holds,
    }


def _print(together: list[Compared], measure: str) -> None:
    schemes = list(dict.fromkeys(name for one in together for name in one.values))
    columns = [
        Column("task", right=False),
        Column("split", right=False),
        *(Column(name) for name in ("n", "k", "runs", "R")),
        *(Column(_SHORT.get(name, name)) for name in schemes),
        Column("best", right=False),
    ]
    lines = []
    for one in together:
        setting = one.setting
        cells = [setting.task, setting.split, str(setting.clients), str(setting.kept)]
        cells += [str(one.runs), f"{one.correlation:.3g}"]
        cells += [f"{one.values[name][0]:.4g}" if name in one.values else "" for name in schemes]
        lines.append(Row((*cells, one.holds)))
    tables.fitted(columns, lines, tables.width(_PIPE)).show(_PIPE)
    click.echo()
    judged = [one.holds for one in together]
    said = f"{OURS} has the least {measure} in {judged.count('yes')} of {len(judged)} settings"
    close = judged.count("close")
    tables.say(
        f"{said}; in {close} it cannot be told from the best, or the next." if close else f"{said}."
    )
