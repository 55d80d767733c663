"""`raydp-sim data`: what the clients of a scenario with labelled data hold."""

import json
from typing import Any

import click
import numpy as np

from raydp_sim.cli import shipped, tables
from raydp_sim.cli.pictures import picture_file
from raydp_sim.cli.tables import Column, Row
from raydp_sim.datasets.holdings import Counts, Spread, label_counts
from raydp_sim.datasets.labelled import HeldOut, Labelled
from raydp_sim.errors import bad_field
from raydp_sim.scenario import Scenario, load

_EPILOG = """\b
Example:
  raydp-sim data scenario.yaml
  raydp-sim data scenario.yaml --set population.data.partition.alpha=0.1 --plot labels.png
"""
_PIPE = 100


@click.command("data", epilog=_EPILOG)
@click.argument("scenario")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="A.B=VALUE",
    help="Replace a field of the scenario first, as in `run`; may be repeated.",
)
@click.option("--seed", type=int, help="Replace the scenario's seed, which deals the samples.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--plot", metavar="FILE.png", help="Draw who holds which labels.")
def command(
    scenario: str, assignments: tuple[str, ...], seed: int | None, as_json: bool, plot: str | None
) -> None:
    """Show how the samples of SCENARIO are divided, in its first repetition; nothing is run.

    Printed are samples and classes of the clients, how many the client with fewest and the one
    with most hold, and what is held out for validation and test.
    """
    path = picture_file(plot)
    loaded = load(shipped.find(scenario), assignments, seed)
    population, classes = loaded.population, loaded.population.data.labels()
    if classes == 0:
        remedy = "it has no labels; this command is about data that tasks learn a model from"
        raise bad_field("population.data.kind", population.data.kind, remedy)
    held = population.hold(np.arange(population.clients, dtype=np.uint32), loaded.stream(0))
    counts = label_counts(held, classes)
    found = _found(loaded, held, counts)
    if path is not None:
        from raydp_sim.cli.data_plot import draw

        draw(counts, path)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    tables.say(found["data"], _PIPE)
    rows = [Row((name, value)) for name, value in _shown(found)]
    columns = [Column("what", right=False, bold=True), Column("how many", right=False, wraps=True)]
    tables.fitted(columns, rows, tables.width(_PIPE), headed=False).show(_PIPE)


def _found(scenario: Scenario, held: Labelled, counts: Counts) -> dict[str, Any]:
    population = scenario.population
    validation, test = (
        None if each is None else Spread.of(each.sizes)._asdict()
        for each in (held.validation, held.test)
    )
    found = {
        "data": population.data.said(),
        "clients": population.clients,
        "samples": int(counts.sum()),
        "points_per_client": Spread.of(counts.sum(axis=1))._asdict(),
        "personal_validation": validation,
        "personal_test": test,
        "labels_per_client": Spread.of((counts > 0).sum(axis=1))._asdict(),
        "classes": counts.sum(axis=0).tolist(),
        **_held_out(population.data.held_out()),
    }
    if population.group_data:
        members = population.members(np.arange(population.clients), scenario.stream(0))
        found["groups"] = {
            name: counts[members == place].sum(axis=0).tolist()
            for place, name in enumerate(population.groups)
        }
    return found


def _held_out(held_out: HeldOut | None) -> dict[str, int]:
    validation = None if held_out is None else held_out.validation()
    return {
        "validation": 0 if validation is None else len(validation.labels),
        "test": 0 if held_out is None else len(held_out.test().labels),
    }


def _shown(found: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("clients", f"{found['clients']:,}"),
        ("samples they train on", f"{found['samples']:,}"),
        ("points per client", _spread(found["points_per_client"])),
        ("labels per client", _spread(found["labels_per_client"])),
    ]
    for kind in ("validation", "test"):
        if found[f"personal_{kind}"] is not None:
            rows.append((f"{kind} samples per client", _spread(found[f"personal_{kind}"])))
    rows.append(("samples by class", _by_class(found["classes"])))
    rows += [(f"of {name}", _by_class(counts)) for name, counts in found.get("groups", {}).items()]
    return [
        *rows,
        ("held out for validation", f"{found['validation']:,}"),
        ("held out for the test", f"{found['test']:,}"),
    ]


def _spread(found: dict[str, float]) -> str:
    least, median, most = (f"{found[name]:,.10g}" for name in ("least", "median", "most"))
    return f"{least} at least, {median} in the median, {most} at most"


def _by_class(counts: list[int]) -> str:
    return ", ".join(f"{place}: {count:,}" for place, count in enumerate(counts))
