"""`raydp-sim bench levels`: what several levels of privacy cost, beside a floor."""

import json

import click
from rich import box
from rich.console import Console
from rich.table import Table

from raydp_sim.bench import levels
from raydp_sim.bench.pipeline import machine

_EPILOG = """\b
Example:
  raydp-sim bench levels
  raydp-sim bench levels --json
"""


@click.command("levels", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def leveled(as_json: bool) -> None:
    """Measure one release for 1 to 10 levels of privacy (about half a minute).

    100,000 and a million reports of 1000 categories by 'hadamard-cascade', without actors: what
    clients spend on reports and keys, and all readers together on opening, counting and estimating.
    The floor is NumPy drawing, packing and counting once per report and level.
    """
    with Console(stderr=True).status("") as status:
        found = list(levels.rows(progress=status.update))
    if as_json:
        click.echo(json.dumps(levels.document(found, machine()), indent=2))
        return
    Console(width=100).print(_table(found), highlight=False)
    for goal, met in levels.goals(found).items():
        click.echo(f"{goal}: {'met' if met else 'NOT met'}")
    about = machine()
    click.echo(
        f"CPU-seconds of one process, ns per report and level. {about['cpu']}, Python "
        f"{about['python']}, NumPy {about['numpy']}, "
        f"kernels {about['kernels']}, load {about['load']} at the end"
    )


def _table(found: list[levels.Row]) -> Table:
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("reports", "levels", "clients s", "readers s", "floor s", "to floor"):
        made.add_column(name, justify="right", no_wrap=True)
    for name in ("ns each", "error", "exact"):
        made.add_column(name, justify="right", no_wrap=True)
    before = 0
    for row in found:
        made.add_row(
            "" if row.reports == before else f"{row.reports:,}",
            str(row.levels),
            f"{row.clients:.4f}",
            f"{row.readers:.4f}",
            f"{row.floor:.4f}",
            f"{row.seconds / row.floor:.2f}",
            f"{row.nanoseconds:.1f}",
            f"{row.error:.3g}",
            f"{row.exact:.3g}",
        )
        before = row.reports
    return made
