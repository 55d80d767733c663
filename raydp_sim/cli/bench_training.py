"""`raydp-sim bench training`: how fast clients train, beside a loop that does nothing else."""

import json

import click
from rich import box
from rich.console import Console
from rich.table import Table

from raydp_sim.bench import training
from raydp_sim.bench.pipeline import machine
from raydp_sim.bench.training import BOUNDED, CASES, FLAT, GROWING, HOLDING, Result

_EPILOG = """\b
Example:
  raydp-sim bench training
  raydp-sim bench training --case cnn --json
"""


@click.command("training", epilog=_EPILOG)
@click.option(
    "--case",
    "names",
    type=click.Choice([*CASES, "population", "memory"]),
    multiple=True,
    help="Measure only this case; may be given more than once.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def trained(names: tuple[str, ...], as_json: bool) -> None:
    """Compare training by actors with two processes that only compute (about 8 minutes).

    The floor (tests/training_floors.py) gathers the same samples, computes the same gradients in
    two processes of one thread each, and does nothing else; the two take turns, and rates are
    medians of the ratios of segments, by the clock and by CPU time. Clients are actors, servers are
    in the driver (placement.servers); `apart` is the rate with servers that are actors too. The
    floor of the linear cases is NumPy's small products; `same` is the rate beside a floor with the
    compiled kernel that clients use: what it lacks of 1 is what actors, checks and accounts take.

    `calls ms` is what the same calls take between actors that do nothing, and `bound` the rate that
    floor and calls alone would have, one after the other. Since the floor keeps both cores busy,
    the CPU rate bounds the rate as well. Both are of the first floor: with the compiled kernel a
    rate may be higher. `population` is the same cohort of ever more clients, `memory` what an actor
    held at most while cohorts of two sizes were trained on. CPU of the actors is that of the
    driver, the workers and Ray's own processes.
    """
    chosen = list(dict.fromkeys(names)) or [*CASES, "population", "memory"]
    cases = [CASES[name] for name in chosen if name in CASES]
    cases += GROWING if "population" in chosen else ()
    cases += HOLDING if "memory" in chosen else ()
    console = Console(stderr=True)
    with console.status("") as status:

        def say(line: str) -> None:
            if console.is_terminal:
                status.update(line)
            elif "segment" not in line:
                console.print(line, highlight=False)

        # The same case may be asked for by name and for its memory.
        found = list(training.play({case.name: case for case in cases}.values(), say))
    about = machine()
    if as_json:
        click.echo(json.dumps(training.document(found, about), indent=2))
        return
    Console(width=152).print(training_table(found), highlight=False)
    for line in remarks(found):
        click.echo(line)
    click.echo(
        f"{about['cpu']}, Python {about['python']}, NumPy {about['numpy']}, "
        f"kernels {about['kernels']}, Ray {about['ray']}, "
        f"load {about['load']} at the end"
    )


def training_table(found: list[Result]) -> Table:
    """Lay out the results, one row per case, each goal beside what was reached."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    made.add_column("", no_wrap=True)
    names = ("updates/s", "ms", "floor ms", "calls ms", "CPU ms", "floor CPU", "CPU rate", "bound")
    for name in (*names, "apart", "same", "rate", "goal", "MiB"):
        made.add_column(name, justify="left" if name == "goal" else "right", no_wrap=True)
    for result in found:
        actors, floor = result.median("actors"), result.median("floor")
        bare, bound = "", ""
        if result.bound is not None:
            bare, bound = f"{result.median('bare').wall * 1e3:.1f}", f"{result.bound:.2f}"
        goal = "" if result.met is None else f">= {result.case.goal:g} "
        made.add_row(
            result.case.name,
            f"{result.updates:,.0f}",
            *(f"{each * 1e3:.1f}" for each in (actors.wall, floor.wall)),
            bare,
            *(f"{each * 1e3:.1f}" for each in (actors.cpu, floor.cpu)),
            f"{result.cpu_rate:.2f}",
            bound,
            "" if result.apart is None else f"{result.apart:.2f}",
            "" if result.same is None else f"{result.same:.2f}",
            f"{result.rate:.2f}",
            goal + {True: "yes", False: "NO", None: ""}[result.met],
            f"{result.peak / 2**20:.0f}",
            style="red" if result.met is False else "",
        )
    return made


def remarks(found: list[Result]) -> list[str]:
    """Say what the cases are, whether rounds are flat in the population, and memory bounded."""
    lines = [f"{result.case.name}: {result.case.title}" for result in found]
    by_name = {result.case.name: result for result in found}
    growing = [by_name[case.name] for case in GROWING if case.name in by_name]
    if len(growing) == len(GROWING):
        slower = growing[-1].median("actors").wall / growing[0].median("actors").wall
        met = "met" if slower <= FLAT else "NOT met"
        lines.append(
            f"{growing[-1].case.clients:,} clients take {slower:.2f} times as long as "
            f"{growing[0].case.clients:,} (goal <= {FLAT:g}: {met})"
        )
    holding = [by_name[case.name] for case in HOLDING if case.name in by_name]
    if len(holding) == len(HOLDING):
        small, large = (result.peak for result in holding)
        met = "met" if large <= BOUNDED * small else "NOT met"
        lines.append(
            f"an actor holds {large / 2**20:.0f} MiB at most with a cohort of "
            f"{holding[1].case.cohort:,}, {large / max(1, small):.2f} times what it holds with "
            f"{holding[0].case.cohort:,} (goal <= {BOUNDED:g}: {met})"
        )
    return lines
