"""`raydp-sim bench`: throughput as ratios to honest floors."""

import json

import click
from rich import box
from rich.console import Console
from rich.table import Table

from raydp_sim.bench import accounting, participation
from raydp_sim.bench.cases import CASES
from raydp_sim.bench.pipeline import SEGMENTS, Result, document, machine, play
from raydp_sim.cli.shipped import shipped
from raydp_sim.scenario import load

_EPILOG = """\b
Example:
  raydp-sim bench pipeline
  raydp-sim bench pipeline --case a --json
  raydp-sim bench accounting
  raydp-sim bench participation
"""


@click.group("bench", epilog=_EPILOG)
def command() -> None:
    """Measure throughput as ratios to honest floors, in one run."""


@command.command("pipeline", epilog=_EPILOG)
@click.option(
    "--case",
    "names",
    type=click.Choice(list(CASES)),
    multiple=True,
    help="Measure only this case; may be given more than once.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def pipeline(names: tuple[str, ...], as_json: bool) -> None:
    """Compare the actor pipeline and the inline backend with the floor (about 5 minutes).

    The floor (tests/floors.py) does the same work in one process, as fast as NumPy can. The three
    take turns; shown is the median of 9 segments. CPU of the actors is that of the driver, the
    workers and Ray's own processes together.
    """
    chosen = [CASES[name] for name in dict.fromkeys(names)] or list(CASES.values())
    console = Console(stderr=True)
    with console.status("") as status:

        def say(line: str) -> None:
            if console.is_terminal:
                status.update(line)
            elif not line.startswith("segment", line.find(": ") + 2):
                console.print(line, highlight=False)

        results = list(play(chosen, say))
    if as_json:
        click.echo(json.dumps(document(results), indent=2))
        return
    Console().print(table(results))
    for line in notes(results):
        click.echo(line)


@command.command("accounting", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def accounts(as_json: bool) -> None:
    """Measure the privacy calculator: CPU-seconds of every row of its default tables.

    Each row is measured cold. However many rounds are composed, divergences may take twice as long
    as for two of them, and loss distributions longer by the logarithm of their number.
    """
    console = Console(stderr=True)
    with console.status("") as status:
        found = list(accounting.rows(progress=status.update))
    if as_json:
        click.echo(json.dumps(accounting.document(found, machine()), indent=2))
        return
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, justify in (("", "left"), ("row", "left"), ("CPU s", "right"), ("goal", "left")):
        made.add_column(name, justify="right" if justify == "right" else "left", no_wrap=True)
    group = ""
    for row in found:
        title = "" if row.group == group else row.group
        group = row.group
        goal = _goal("<", row.goal and round(row.goal, 2), row.met)
        made.add_row(
            title, row.name, f"{row.seconds:.3f}", goal, style="red" if row.met is False else ""
        )
    Console().print(made, highlight=False)
    goals = [row for row in found if row.met is not None]
    about = machine()
    click.echo(
        f"{sum(bool(row.met) for row in goals)} of {len(goals)} goals met. {about['cpu']}, Python "
        f"{about['python']}, NumPy {about['numpy']}, load {about['load']} at the end"
    )


@command.command("participation", epilog=_EPILOG)
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


def table(results: list[Result]) -> Table:
    """Lay out the results, one row per contender, each goal beside what was reached."""
    title = f"bench pipeline, median of {SEGMENTS} segments"
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    made.add_column("")
    made.add_column("who")
    for name in ("wall ms", "CPU ms", "rate", "goal", "CPU", "goal"):
        made.add_column(name, justify="left" if name == "goal" else "right")
    for result in results:
        goals, met = result.case.goals, result.met()
        for name in result.samples:
            seconds, ours = result.median(name), name == "actors"
            made.add_row(
                result.case.name if ours else "",
                name,
                f"{seconds.wall * 1e3:.2f}",
                f"{seconds.cpu * 1e3:.2f}",
                f"{result.rate(name):.3g}",
                _goal(">=", goals.rate, met.get("rate")) if ours else "",
                f"{result.cpu(name):.3g}",
                _goal("<=", goals.cpu, met.get("cpu")) if ours else "",
                end_section=name == "floor",
            )
    return made


def notes(results: list[Result]) -> list[str]:
    """Say what the cases are, what they needed, and what they were measured on."""
    lines = [
        "Per round; rate and CPU as multiples of the floor's. Actors: the driver, the workers",
        "and Ray's own processes, rounds overlapping.",
    ]
    for result in results:
        line = f"({result.case.name}) {result.case.title}"
        if result.case.goals.pss is not None:
            limit = result.case.goals.pss / 2**30
            met = "met" if result.met()["pss"] else "NOT met"
            size = f"{result.pss / 2**30:.2f} GiB"
            line += f"; actors and object store hold {size} (goal < {limit:g}: {met})"
        lines.append(line)
    about = machine()
    lines.append(
        f"{about['cpu']}, {about['memory_bytes'] / 2**30:.0f} GiB, Python {about['python']}, "
        f"NumPy {about['numpy']}, Ray {about['ray']}, load {about['load']} at the end"
    )
    return lines


def _goal(relation: str, goal: float | None, met: bool | None) -> str:
    return "" if goal is None else f"{relation} {goal:g} {'yes' if met else 'NO'}"
