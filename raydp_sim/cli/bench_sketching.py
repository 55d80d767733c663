"""`raydp-sim bench sketching`: what the means, majorities and gradients of 004 cost."""

import json

import click
from rich import box
from rich.console import Console
from rich.table import Table

from raydp_sim.bench import ensembles, shuffled_gradients, sketching
from raydp_sim.bench.contenders import Floor
from raydp_sim.bench.pipeline import machine
from raydp_sim.bench.timed import Cases, Row, document

CASES: tuple[Cases, ...] = (
    sketching.rows,
    # Theirs need no process beside ours.
    lambda floor, progress: ensembles.rows(progress),
    lambda floor, progress: shuffled_gradients.rows(progress),
)
_EPILOG = """\b
Example:
  raydp-sim bench sketching
  raydp-sim bench sketching --json
"""


@click.command("sketching", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def sketched(as_json: bool) -> None:
    """Time sketches, private majorities and shuffled gradients, each beside a floor.

    Half a minute. Of sketches: a release, encoding and decoding, medians of five calls in
    CPU-seconds of one process, all clients together, once the normaliser is known. The floor is
    tests/sketching_floors.py: NumPy and LAPACK on the same sizes, with none of our code; of
    Rand-Proj-Spatial it only solves equations that it is given. Of majorities: the programs of the
    best noise functions; of shuffled gradients: an epoch with its noise.
    """
    found: list[Row] = []
    floor = Floor(sketching.FLOOR)
    console = Console(stderr=True)
    try:
        with console.status("") as status:

            def say(line: str) -> None:
                status.update(line) if console.is_terminal else click.echo(line, err=True)

            for rows in CASES:
                found += rows(floor, say)
    finally:
        floor.stop()
    judged, about = sketching.claims(found), machine()
    if as_json:
        click.echo(json.dumps(document("sketching", found, judged, about), indent=2))
        return
    Console(width=100).print(timed_table(found), highlight=False)
    for claim, holds in judged.items():
        click.echo(f"{claim}: {'holds' if holds else 'does NOT hold'}")
    click.echo(
        f"CPU-milliseconds of one process. {about['cpu']}, Python {about['python']}, NumPy "
        f"{about['numpy']}, load {about['load']} at the end"
    )


def timed_table(found: list[Row]) -> Table:
    """Lay out what calls took, each goal beside what was reached."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "call"):
        made.add_column(name, no_wrap=True)
    for name in ("ms", "floor ms", "to floor"):
        made.add_column(name, justify="right", no_wrap=True)
    made.add_column("goal ms", no_wrap=True)
    before = ""
    for row in found:
        goal = "" if row.goal is None else f"< {1e3 * row.goal:g} {'yes' if row.met else 'NO'}"
        made.add_row(
            "" if row.case == before else row.case,
            row.name,
            f"{1e3 * row.seconds:.3g}",
            f"{1e3 * row.floor:.3g}",
            f"{row.seconds / row.floor:.3g}" if row.floor > 0.0 else "",
            goal,
        )
        before = row.case
    return made
