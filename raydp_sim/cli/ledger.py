"""`raydp-sim ledger`: who has spent what, at any moment of a run."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from raydp_sim.accounting import planned
from raydp_sim.cli.ledger_plot import draw
from raydp_sim.document import read
from raydp_sim.errors import InputError, bad_field
from raydp_sim.figures.model import is_figure
from raydp_sim.privacy import store
from raydp_sim.privacy.histories import Entry, Standing, history, replayed, standing
from raydp_sim.registry import search_also
from raydp_sim.rundir import RunDir
from raydp_sim.scenario import Scenario

_EPILOG = """\b
Example:
  raydp-sim ledger runs/quickstart-20250101-120000
  raydp-sim ledger runs/quickstart-20250101-120000 --client 17
  raydp-sim ledger runs/quickstart-20250101-120000 --release 4 --plot spent.png --json
"""
_NAMES = {
    "min": "least",
    "p5": "5 % have at most",
    "p25": "25 %",
    "median": "median",
    "p75": "75 %",
    "p95": "95 %",
    "max": "most",
}


@click.command("ledger", epilog=_EPILOG)
@click.argument("run")
@click.option("--client", type=int, metavar="ID", help="Show the history of one client, from 0.")
@click.option(
    "--release", type=int, metavar="R", help="Stop after this release, from 0; default: the last."
)
@click.option("--repetition", type=int, default=0, metavar="K", help="Which one, from 0.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "--plot", metavar="FILE", help="Draw what clients have spent and how often they took part."
)
def command(
    run: str,
    client: int | None,
    release: int | None,
    repetition: int,
    as_json: bool,
    plot: str | None,
) -> None:
    """Show what the clients of the run in the directory RUN have spent, finished or not.

    Numbers of clients, releases and repetitions count from 0, as in the run's tables. What is
    shown follows from ledger/ alone: events and who was charged, never from anybody's data.
    """
    search_also(Path.cwd())
    file = Path(run) / "scenario.yaml"
    if file.is_file() and is_figure(read(file)):
        raise InputError(f"{run}: a figure has no ledger; give the directory of a played run")
    directory = RunDir.existing(run)
    scenario = directory.scenario()
    _check(scenario, client, release, repetition)
    delta, clients = scenario.privacy.delta, scenario.population.clients
    mechanism = scenario.bound_mechanism
    with directory.reading():
        rows = store.charges(directory.ledger, repetition)
        ledger = replayed(rows, clients, delta, release, mechanism.event())
        found = standing(ledger)
        entries: list[Entry] = []
        if client is not None:
            rows = store.charges(directory.ledger, repetition)
            entries = history((row for row in rows if _until(row, release)), client, delta)
    plan = planned(scenario, mechanism)
    if plot is not None:
        draw(ledger.epsilons(), ledger.participations(), plan, found.guarantee.delta, Path(plot))
    document = {
        "run_dir": str(directory.path),
        "repetition": repetition,
        "release": release,
        "charged": sum(ledger.charged.values()),
        "clients": clients,
        **_document(found, plan),
    }
    if client is not None:
        document["client"] = client
        document["history"] = [_entry(entry) for entry in entries]
    if as_json:
        click.echo(json.dumps(document, indent=2))
    elif client is not None:
        _print_history(client, entries, document)
    else:
        _print_standing(found, document)


def _check(scenario: Scenario, client: int | None, release: int | None, repetition: int) -> None:
    for option, value, most, what in (
        ("--client", client, scenario.population.clients, "clients"),
        ("--release", release, scenario.task.rounds, "releases"),
        ("--repetition", repetition, scenario.repeat, "repetitions"),
    ):
        if value is not None and not 0 <= value < most:
            raise bad_field(option, value, f"the run has {most} {what}; give 0 to {most - 1}")


def _until(row: store.Charge, release: int | None) -> bool:
    return release is None or row.release <= release


def _document(found: Standing, plan: float) -> dict[str, Any]:
    guarantee = found.guarantee
    return {
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "planned": plan,
        "bound": guarantee.bound,
        "assumption": guarantee.assumption,
        "per_client": found.per_client(),
        "participation": found.participation,
    }


def _entry(entry: Entry) -> dict[str, Any]:
    row = asdict(entry)
    row["event"] = {"kind": type(entry.event).__name__, **row["event"]}
    return row


def _console() -> Console:
    # Pipes have no width; a wide one keeps the words of the assumption together.
    return Console(width=None if sys.stdout.isatty() else 100)


def _print_standing(found: Standing, document: dict[str, Any]) -> None:
    console, per_client = _console(), document["per_client"]
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("releases charged", f"{document['charged']:,}")
    table.add_row("clients", f"{document['clients']:,}, {per_client['never']:.1%} never charged")
    table.add_row("worst client", f"{per_client['worst']}")
    table.add_row("planned epsilon", f"{document['planned']:.4g} for a client in every release")
    table.add_row("delta", f"{document['delta']:.4g}")
    table.add_row("bound", document["bound"])
    table.add_row("which holds for", document["assumption"])
    counts = document["participation"]
    table.add_row(
        "releases per client",
        f"{counts['min']} to {counts['max']}, {counts['median']:g} median, {counts['mean']:.4g} "
        f"mean, Gini coefficient {counts['gini']:.3f}",
    )
    console.print(table, highlight=False, markup=False)
    spread = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    spread.add_column("epsilon", style="bold", no_wrap=True)
    for name in _NAMES.values():
        spread.add_column(name, justify="right", no_wrap=True)
    spread.add_row("of clients", *(f"{per_client[name]:.4g}" for name in _NAMES))
    console.print()
    console.print(spread, highlight=False, markup=False)


def _print_history(client: int, entries: list[Entry], document: dict[str, Any]) -> None:
    console = _console()
    if not entries:
        console.print(f"client {client} was never charged", highlight=False, markup=False)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("release", "time", "batch", "epsilon_local"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("charged", no_wrap=True)
    for name in ("epsilon so far", "delta"):
        table.add_column(name, justify="right", no_wrap=True)
    for entry in entries:
        numbers = (f"{entry.release}", f"{entry.time:.6g}", f"{entry.n:,}", f"{entry.epsilon0:.4g}")
        kind = type(entry.event).__name__ + ("" if entry.took_part else " (not sampled)")
        table.add_row(*numbers, kind, f"{entry.epsilon:.4g}", f"{entry.delta:.3g}")
    console.print(table, highlight=False, markup=False)
    console.print()
    took = sum(entry.took_part for entry in entries)
    console.print(
        f"client {client} took part in {took} of {document['charged']} releases and has spent "
        f"{entries[-1].epsilon:.4g}; planned were {document['planned']:.4g}",
        highlight=False,
        markup=False,
    )
