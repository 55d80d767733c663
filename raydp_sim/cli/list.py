"""`raydp-sim list`: the scenarios that ship."""

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from raydp_sim import figures
from raydp_sim.cli.shipped import shipped, shown
from raydp_sim.document import read
from raydp_sim.figures.model import is_figure
from raydp_sim.scenario import load

_EPILOG = """\b
Example:
  raydp-sim list
  raydp-sim list --json
"""


@click.command("list", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print the list as one JSON document.")
def command(as_json: bool) -> None:
    """Show the scenarios that ship; `raydp-sim run NAME` plays one."""
    rows = [_row(name, shown(path)) for name, path in shipped().items()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("clients", justify="right")
    table.add_column("rounds", justify="right")
    table.add_column("trust")
    table.add_column("path", overflow="fold")
    table.add_column("description")
    for row in rows:
        numbers = ("" if n is None else f"{n:,}" for n in (row["clients"], row["rounds"]))
        table.add_row(row["name"], *numbers, row["trust"] or "", row["path"], row["description"])
    # Pipes have no width; there the description should stay on its line.
    Console(width=None if sys.stdout.isatty() else 160).print(table, highlight=False, markup=False)


def _row(name: str, path: Path) -> dict[str, Any]:
    if is_figure(read(path)):
        # A figure is computed for many numbers of clients and rounds, with no trust to choose.
        described = figures.load(path).description
        nothing = dict.fromkeys(("clients", "rounds", "trust"))
        return {"name": name, "description": described, **nothing, "path": str(path)}
    scenario = load(path)
    return {
        "name": name,
        "description": scenario.description,
        "clients": scenario.population.clients,
        "rounds": scenario.task.rounds,
        "trust": scenario.trust,
        "path": str(path),
    }
