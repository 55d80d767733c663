"""`raydp-sim bench startup`: how long the first release takes, and what of that is whose."""

import json

import click
from rich import box
from rich.console import Console
from rich.table import Table

from raydp_sim.bench import startup
from raydp_sim.bench.pipeline import machine

_EPILOG = """\b
Example:
  raydp-sim bench startup
"""


@click.command("startup", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def started(as_json: bool) -> None:
    """Run the quickstart as far as its first release, inline and on Ray (about a minute).

    Beside it what Python says importing the command line takes, and Ray alone: started as a run
    starts it, with one actor that does nothing. All take turns; shown are the medians of three
    turns, after one that is not counted. CPU is that of all processes, Ray's own too.
    """
    console = Console(stderr=True)
    with console.status("") as status:

        def say(line: str) -> None:
            status.update(line) if console.is_terminal else click.echo(line, err=True)

        found = list(startup.play(say))
    about = machine()
    if as_json:
        click.echo(json.dumps(startup.document(found, about), indent=2))
        return
    Console(width=100).print(startup_table(found), highlight=False)
    goals = [row.met for row in found if row.met is not None]
    click.echo(
        f"{sum(goals)} of {len(goals)} goals met. {about['cpu']}, Python "
        f"{about['python']}, Ray {about['ray']}, load {about['load']} at the end"
    )


def startup_table(found: list[startup.Row]) -> Table:
    """Lay out every step, and the whole beside its goal."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "step", "seconds", "goal", "CPU s"):
        number = name in ("seconds", "CPU s")
        made.add_column(name, justify="right" if number else "left", no_wrap=True)
    before = ""
    for row in found:
        goal = "" if row.goal is None else f"<= {row.goal:g} {'met' if row.met else 'missed'}"
        made.add_row(
            "" if row.what == before else row.what,
            row.step or "in all",
            f"{row.seconds:.2f}",
            goal,
            "" if row.cpu is None else f"{row.cpu:.2f}",
            style="red" if row.met is False else "",
            end_section=not row.step,
        )
        before = row.what
    return made
