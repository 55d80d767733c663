"""`raydp-sim bench`: throughput as ratios to honest floors."""

import json
import sys
from dataclasses import asdict

import click
from rich import box
from rich.console import Console
from rich.table import Table

from raydp_sim.bench import accounting, gains
from raydp_sim.bench import mechanisms as randomizers
from raydp_sim.bench.accountants import beside
from raydp_sim.bench.cases import CASES
from raydp_sim.bench.pipeline import SEGMENTS, Result, document, machine, play
from raydp_sim.cli.bench_bandits import played
from raydp_sim.cli.bench_levels import leveled
from raydp_sim.cli.bench_metrics import measured
from raydp_sim.cli.bench_peers import compared
from raydp_sim.cli.bench_scale import scaled
from raydp_sim.cli.bench_sketching import sketched
from raydp_sim.cli.bench_startup import started
from raydp_sim.cli.bench_training import trained
from raydp_sim.cli.weeks import asynchronous
from raydp_sim.errors import bad_field
from raydp_sim.mechanisms import MECHANISMS

_EPILOG = """\b
Example:
  raydp-sim bench pipeline
  raydp-sim bench pipeline --case a --json
  raydp-sim bench accounting
  raydp-sim bench accounting --peers
  raydp-sim bench gains
  raydp-sim bench mechanisms --kind privunit --kind l2
  raydp-sim bench levels
  raydp-sim bench participation
  raydp-sim bench training
  raydp-sim bench bandits
  raydp-sim bench metrics
  raydp-sim bench sketching
  raydp-sim bench startup
  raydp-sim bench peers --install
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
    workers and Ray's own processes together. Case e is small rounds, each of them durable before
    its release is made: their goals are milliseconds, and the floor too waits for the disk.
    """
    chosen = [CASES[name] for name in dict.fromkeys(names)] or [
        case for case in CASES.values() if not case.large
    ]
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
@click.option("--peers", "peers", is_flag=True, help="Compare epsilons with dp_accounting's.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def accounts(peers: bool, as_json: bool) -> None:
    """Measure the privacy calculator: CPU-seconds of every row of its default tables.

    Each row is measured cold. However many rounds are composed, divergences may take twice as long
    as for two of them, and loss distributions longer by the logarithm of their number.
    """
    console = Console(stderr=True)
    if peers:
        _beside(console, as_json)
        return
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
        f"{about['python']}, NumPy {about['numpy']}, "
        f"kernels {about['kernels']}, load {about['load']} at the end"
    )


def _beside(console: Console, as_json: bool) -> None:
    with console.status("") as status:
        found = list(beside(progress=status.update))
    if as_json:
        rows = [asdict(row) | {"smaller": row.smaller} for row in found]
        click.echo(
            json.dumps({"benchmark": "accountants", "delta": accounting.DELTA, "rows": rows})
        )
        return
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("run", "ours", "by", "dp_accounting", "smaller"):
        made.add_column(name, justify="right" if name in ("ours", "dp_accounting") else "left")
    for row in found:
        theirs = "no event" if row.peers is None else f"{row.peers:.5g}"
        made.add_row(row.title, f"{row.ours:.5g}", row.bound, theirs, row.smaller)
    Console().print(made, highlight=False)
    click.echo(f"Proved epsilons at delta {accounting.DELTA:g}; both err upwards.")


@command.command("gains", epilog=_EPILOG)
def law_gains() -> None:
    """Print what knowing a mechanism's law gains, as the table of docs/accounting-gains.md."""
    with Console(stderr=True).status("") as status:
        found = list(gains.gains(progress=status.update))
    click.echo(gains.markdown(found))


command.add_command(asynchronous)
command.add_command(leveled)
command.add_command(trained)
command.add_command(played)
command.add_command(measured)
command.add_command(sketched)
command.add_command(scaled)
command.add_command(started)
command.add_command(compared)


@command.command("mechanisms", epilog=_EPILOG)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    help="Measure only this kind of mechanism; may be given more than once.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def mechanisms(kinds: tuple[str, ...], as_json: bool) -> None:
    """Measure how fast clients randomize, and whether epsilon matters (a few minutes).

    Every mechanism for vectors of the l2 ball (10,000 of dimension 1000) and for categories (a
    million of 256), at epsilon 1, 2, 4 and 8. The floor is NumPy only drawing the vectors' normals,
    or one uniform per category. CPU time of one process; the squared error is that of the mean of
    the batch, beside what the mechanism states.
    """
    known = MECHANISMS.kinds
    for kind in kinds:
        if kind not in known:
            raise bad_field("--kind", kind, f"choose among {', '.join(known)}")
    console = Console(stderr=True)
    with console.status("") as status:

        def say(line: str) -> None:
            if console.is_terminal:
                status.update(line)
            elif line.endswith(" 1"):
                console.print(line.partition(" at ")[0], highlight=False)

        found = list(randomizers.rows(kinds=kinds or None, progress=say))
    if as_json:
        click.echo(json.dumps(randomizers.document(found, machine()), indent=2))
        return
    # Pipes have no width; a row should stay on its line.
    width = None if sys.stdout.isatty() else 100
    Console(width=width).print(_randomizers(found), highlight=False)
    for name, spread in randomizers.spreads(found).items():
        click.echo(f"{name}: the slowest epsilon takes {spread:.2f} times as long as the fastest")
    for name, note in {row.name: row.note for row in found if row.note}.items():
        click.echo(f"{name} {note}")
    goals = [row for row in found if row.met is not None]
    about = machine()
    click.echo(
        f"{sum(bool(row.met) for row in goals)} of {len(goals)} goals met. {about['cpu']}, Python "
        f"{about['python']}, NumPy {about['numpy']}, "
        f"kernels {about['kernels']}, load {about['load']} at the end"
    )


def _randomizers(found: list[randomizers.Row]) -> Table:
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    made.add_column("", no_wrap=True)
    for name in ("epsilon", "per CPU s", "of floor", "goal", "error", "exact"):
        made.add_column(name, justify="left" if name == "goal" else "right", no_wrap=True)
    for group in dict.fromkeys(row.group for row in found):
        made.add_section()
        inside = sorted(
            (row for row in found if row.group == group),
            key=lambda row: (row.name, row.epsilon or 0.0),
        )
        made.add_row(group, "floor", f"{inside[0].floor:,.0f}", "1")
        before = ""
        for row in inside:
            made.add_row(
                "" if row.name == before else f"  {row.name}",
                "" if row.epsilon is None else f"{row.epsilon:g}",
                f"{row.rate:,.0f}",
                f"{row.rate / row.floor:.3g}",
                _goal(">=", row.goal, row.met),
                f"{row.measured:.3g}",
                f"{row.exact:.3g}",
                style="red" if row.met is False else "",
            )
            before = row.name
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
        floored, (first, *_) = "floor" in result.samples, result.samples
        for name in result.samples:
            seconds, ours = result.median(name), name == "actors"
            made.add_row(
                result.case.name if name == first else "",
                name,
                f"{seconds.wall * 1e3:.2f}",
                f"{seconds.cpu * 1e3:.2f}",
                f"{result.rate(name):.3g}" if floored else "",
                _goal(">=", goals.rate, met.get("rate")) if ours else "",
                f"{result.cpu(name):.3g}" if floored else "",
                _goal("<=", goals.cpu, met.get("cpu")) if ours else "",
                end_section=name == list(result.samples)[-1],
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
        for name, most in result.case.goals.wall().items():
            wall, met = result.median(name).wall * 1e3, "met" if result.met()[name] else "NOT met"
            line += f"; {name} {wall:.2f} ms a round (goal <= {most:g}: {met})"
        lines.append(line)
    about = machine()
    lines.append(
        f"{about['cpu']}, {about['memory_bytes'] / 2**30:.0f} GiB, Python {about['python']}, "
        f"NumPy {about['numpy']}, "
        f"kernels {about['kernels']}, Ray {about['ray']}, load {about['load']} at the end"
    )
    return lines


def _goal(relation: str, goal: float | None, met: bool | None) -> str:
    return "" if goal is None else f"{relation} {goal:g} {'yes' if met else 'NO'}"
