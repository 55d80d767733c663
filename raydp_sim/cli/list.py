"""`raydp-sim list`: the scenarios that ship."""

import json
from pathlib import Path
from typing import Any

import click

from raydp_sim import figures
from raydp_sim.cli import tables
from raydp_sim.cli.shipped import shipped, shown
from raydp_sim.cli.tables import Column, Row
from raydp_sim.errors import InputError
from raydp_sim.scenario import load
from raydp_sim.scenario.document import is_figure, read

_EPILOG = """\b
Example:
  raydp-sim list
  raydp-sim list --json
"""
_PIPE = 160  # pipes have no width; there the description should stay on its line
_WORDS = 14


@click.command("list", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print the list as one JSON document.")
def command(as_json: bool) -> None:
    """Show the scenarios that ship; `raydp-sim run NAME` plays one."""
    rows = [_row(name, shown(path)) for name, path in shipped().items()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    columns = [
        Column("name", right=False, bold=True),
        Column("clients"),
        Column("rounds"),
        Column("trust", right=False),
        Column("path", right=False),
        Column("description", right=False, wraps=True),
    ]
    lines = []
    for row in rows:
        numbers = ("" if n is None else f"{n:,}" for n in (row["clients"], row["rounds"]))
        rest = (row["trust"] or "", row["path"], row["description"])
        lines.append(Row((row["name"], *numbers, *rest)))
    # A description needs some words on a line to be read.
    room = tables.width(_PIPE) - _WORDS
    laid = tables.fitted(columns, lines, room, ("path", "trust", "rounds"))
    laid.show(_PIPE)
    laid.explain()


def _row(name: str, path: Path) -> dict[str, Any]:
    if is_figure(read(path)):
        # A figure is computed for many numbers of clients and rounds, with no trust to choose.
        described = figures.load(path).description
        nothing = dict.fromkeys(("clients", "rounds", "trust"))
        return {"name": name, "description": described, **nothing, "path": str(path)}
    try:
        scenario = load(path)
    except InputError:
        return _as_written(name, path)
    return {
        "name": name,
        "description": scenario.description,
        "clients": scenario.population.clients,
        "rounds": scenario.task.rounds,
        "trust": scenario.trust,
        "path": str(path),
    }


def _as_written(name: str, path: Path) -> dict[str, Any]:
    """Return the row of a scenario that cannot be loaded here, such as one without its data."""
    document = read(path)
    population, task = (document.get(section, {}) for section in ("population", "task"))
    return {
        "name": name,
        "description": document.get("description", ""),
        "clients": population.get("clients"),
        "rounds": task.get("rounds"),
        "trust": document.get("trust"),
        "path": str(path),
    }
