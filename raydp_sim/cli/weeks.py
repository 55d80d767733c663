"""`raydp-sim bench participation`: what a simulated week costs."""

import json

import click
from rich import box
from rich.console import Console
from rich.table import Table

from raydp_sim.bench import participation
from raydp_sim.bench.pipeline import machine
from raydp_sim.cli.shipped import shipped
from raydp_sim.scenario import load

_EPILOG = """\b
Example:
  raydp-sim bench participation
"""


@click.command("participation", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def asynchronous(as_json: bool) -> None:
    """Play scenarios/week.yaml on Ray, then parts of it with twice the reports or the clients.

    Cost should grow with the reports and not with the clients or the time that passes: a tenth of
    the week is played as it is, with twice the releases, and with twice the clients of whom each
    checks in half as often, in turns; shown are the medians of three. CPU is that of the driver,
    the workers and Ray's own processes.
    """
    console = Console(stderr=True)
    with console.status("") as status:

        def say(line: str) -> None:
            status.update(line) if console.is_terminal else click.echo(line, err=True)

        rows = list(participation.play(load(shipped()["week"]), say))
    about = machine()
    if as_json:
        click.echo(json.dumps(participation.document(rows, about), indent=2))
        return
    Console(width=100).print(participation_table(rows), highlight=False)
    click.echo("Seconds without placing the clients; below, medians of three turns.")
    click.echo(
        f"{about['cpu']}, Python {about['python']}, Ray "
        f"{about['ray']}, load {about['load']} at the end"
    )


def participation_table(rows: list[participation.Row]) -> Table:
    """Lay out what weeks took, with ratios to the same part of the week unchanged."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    made.add_column("", no_wrap=True)
    for name in ("clients", "releases", "reports", "days", "wall s", "CPU s", "wall", "CPU"):
        made.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        times = participation.ratio(rows, row)
        made.add_row(
            row.name,
            *(f"{number:,}" for number in (row.clients, row.releases, row.reports)),
            f"{row.days:.2f}",
            f"{row.seconds.wall:.1f}",
            f"{row.seconds.cpu:.1f}",
            *(("", "") if times is None else (f"{times[name]:.2f}x" for name in ("wall", "cpu"))),
            end_section=times is None,
        )
    return made
