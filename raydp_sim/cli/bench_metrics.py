"""`raydp-sim bench metrics`: what it costs that others follow a run."""

import json

import click
from rich import box
from rich.console import Console
from rich.table import Table

from raydp_sim.bench import metrics
from raydp_sim.bench.cases import CASES
from raydp_sim.bench.pipeline import machine

_EPILOG = """\b
Example:
  raydp-sim bench metrics
  raydp-sim bench metrics --case e --json
"""


@click.command("metrics", epilog=_EPILOG)
@click.option(
    "--case",
    type=click.Choice(list(CASES)),
    default="a",
    help="Rounds of this case of `bench pipeline` are played with and without followers.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def measured(case: str, as_json: bool) -> None:
    """Measure streams with three followers attached (about 2 minutes).

    Rows per second into Parquet while three processes read them all; how long a row takes from
    being written to being read by them; and by how much the CPU-seconds of a run (the driver, the
    actors, Ray's own processes and the one that serves, without the followers) grow.
    """
    console = Console(stderr=True)
    with console.status("") as status:

        def say(line: str) -> None:
            if console.is_terminal:
                status.update(line)
            elif "segment" not in line:
                console.print(line, highlight=False)

        found = list(metrics.figures(say, case))
    about = machine()
    if as_json:
        rows = [figure.document() for figure in found]
        click.echo(json.dumps({"benchmark": "metrics", "machine": about, "figures": rows}))
        return
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "measured", "", "goal"):
        made.add_column(name, justify="right" if name == "measured" else "left", no_wrap=True)
    for figure in found:
        relation = ">=" if figure.at_least else "<="
        goal = f"{relation} {figure.goal:,g} {'yes' if figure.met else 'NO'}"
        style = "" if figure.met else "red"
        made.add_row(figure.name, f"{figure.value:,.4g}", figure.unit, goal, style=style)
    Console(width=100).print(made, highlight=False)
    for figure in found:
        click.echo(f"{figure.name}: {figure.note}")
    versions = f"Python {about['python']}, Ray {about['ray']}"
    click.echo(f"{about['cpu']}, {versions}, load {about['load']} at the end")
