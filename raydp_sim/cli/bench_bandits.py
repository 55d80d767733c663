"""`raydp-sim bench bandits`: what a bandit's run costs, beside the same draws alone."""

import json

import click
from rich import box
from rich.console import Console
from rich.table import Table

from raydp_sim.bench import bandits
from raydp_sim.bench.pipeline import machine

LINEAR = 1.1
_EPILOG = """\b
Example:
  raydp-sim bench bandits
  raydp-sim bench bandits --json
"""


@click.command("bandits", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def played(as_json: bool) -> None:
    """Measure whole runs of bandits beside a process that does the same draws and nothing else.

    The exact simulation plays ten million rounds with a thousand actions, sums drawn and not their
    parts; shown are medians of three, `cold` with the search for local losses. Actors play a
    quarter of a million, half a million and a million rounds with ten actions, a client each,
    behind a shuffler; placing the clients is not counted, and CPU is that of the driver, the
    workers and Ray's own processes. The floor is tests/bandit_floors.py.
    """
    console = Console(stderr=True)
    with console.status("") as status:

        def say(line: str) -> None:
            status.update(line) if console.is_terminal else click.echo(line, err=True)

        rows = list(bandits.play(say))
    about = machine()
    if as_json:
        click.echo(json.dumps(bandits.document(rows, about), indent=2))
        return
    Console(width=110).print(bandit_table(rows), highlight=False)
    power = bandits.growth_of(rows)
    met = "met" if power <= LINEAR else "NOT met"
    click.echo(f"actors: CPU time grows like reports^{power:.2f} (goal <= {LINEAR:g}: {met})")
    click.echo(
        f"{about['cpu']}, Python {about['python']}, NumPy {about['numpy']}, "
        f"kernels {about['kernels']}, Ray {about['ray']}, "
        f"load {about['load']} at the end"
    )


def bandit_table(rows: list[bandits.Row]) -> Table:
    """Lay out what runs took, each goal beside what was reached."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    made.add_column("", no_wrap=True)
    for name in ("rounds", "reports", "wall s", "CPU s", "floor s", "floor CPU", "goal"):
        made.add_column(name, justify="left" if name == "goal" else "right", no_wrap=True)
    for row in rows:
        goal = "" if row.goal is None else f"< {row.goal:g} {'yes' if row.met else 'NO'}"
        seconds = (row.seconds.wall, row.seconds.cpu, row.floor.wall, row.floor.cpu)
        counts = (f"{row.rounds:,}", f"{row.reports:,}")
        made.add_row(row.name, *counts, *(f"{each:.3g}" for each in seconds), goal)
    return made
