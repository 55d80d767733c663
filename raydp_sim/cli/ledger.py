"""`raydp-sim ledger`: who has spent what, at any moment of a run."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from raydp_sim.cli import tables
from raydp_sim.cli.answer_table import print_groups
from raydp_sim.cli.ledger_plot import draw
from raydp_sim.cli.phrases import epsilon
from raydp_sim.cli.tables import Column, Row
from raydp_sim.errors import InputError, bad_field
from raydp_sim.privacy.ledger import store
from raydp_sim.privacy.ledger.histories import Entry, Standing, history, replayed, standing
from raydp_sim.registry import search_also
from raydp_sim.run.breakdown import by_group
from raydp_sim.run.directory import RunDir
from raydp_sim.run.documents import dumped
from raydp_sim.scenario import Scenario, bound_mechanism
from raydp_sim.scenario.accounting import opened, planned
from raydp_sim.scenario.document import is_figure, read

_EPILOG = """\b
Example:
  raydp-sim ledger runs/quickstart-20250101-120000
  raydp-sim ledger runs/quickstart-20250101-120000 --client 17
  raydp-sim ledger runs/quickstart-20250101-120000 --release 4 --plot spent.png --json
"""
_PIPE = 100  # pipes have no width; a wide one keeps the words of the assumption together
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
    clients = scenario.population.clients
    mechanism = bound_mechanism(scenario)
    with directory.reading():
        rows = store.charges(directory.ledger, repetition)
        ledger = replayed(rows, opened(scenario, mechanism), release)
        found = standing(ledger)
        entries: list[Entry] = []
        if client is not None:
            rows = store.charges(directory.ledger, repetition)
            until = (row for row in rows if _until(row, release))
            entries = history(until, client, opened(scenario, mechanism))
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
    if scenario.population.groups:
        by, rows_of = scenario.population.grouped_by, by_group(scenario, ledger, repetition)
        document["breakdown"] = {"by": by, "groups": rows_of}
    if client is not None:
        document["client"] = client
        document["history"] = [_entry(entry) for entry in entries]
    if as_json:
        click.echo(dumped(document))
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


def _print_standing(found: Standing, document: dict[str, Any]) -> None:
    per_client, plan = document["per_client"], epsilon(document["planned"])
    counts = document["participation"]
    facts = [
        ("releases charged", f"{document['charged']:,}"),
        ("clients", f"{document['clients']:,}, {per_client['never']:.1%} never charged"),
        ("worst client", f"{per_client['worst']}"),
        ("planned epsilon", f"{plan} for a client in every release"),
        ("delta", f"{document['delta']:.4g}"),
        ("bound", document["bound"]),
        ("which holds for", document["assumption"]),
        (
            "releases per client",
            f"{counts['min']} to {counts['max']}, {counts['median']:g} median, "
            f"{counts['mean']:.4g} mean, Gini coefficient {counts['gini']:.3f}",
        ),
    ]
    columns = [Column("", right=False, bold=True), Column("", right=False, wraps=True)]
    rows = [Row(fact) for fact in facts]
    tables.fitted(columns, rows, tables.width(_PIPE), headed=False).show(_PIPE)
    click.echo()
    spread = [Column("epsilon", right=False, bold=True), *map(Column, _NAMES.values())]
    row = Row(("of clients", *(epsilon(per_client[name]) for name in _NAMES)))
    for laid in tables.stacked(spread, [row], tables.width(_PIPE)):
        laid.show(_PIPE)
    print_groups(document, _PIPE, estimated=False)


def _print_history(client: int, entries: list[Entry], document: dict[str, Any]) -> None:
    if not entries:
        click.echo(f"client {client} was never charged")
        return
    columns = [Column(head) for head in ("release", "time", "batch", "epsilon_local")]
    columns += [Column("charged", right=False), Column("epsilon so far"), Column("delta")]
    rows = []
    for entry in entries:
        place = (f"{entry.release}", f"{entry.time:.6g}", f"{entry.n:,}")
        numbers = (*place, "no report" if entry.epsilon0 is None else epsilon(entry.epsilon0))
        kind = type(entry.event).__name__ + ("" if entry.took_part else " (not sampled)")
        rows.append(Row((*numbers, kind, epsilon(entry.epsilon), f"{entry.delta:.3g}")))
    laid = tables.fitted(columns, rows, tables.width(_PIPE), ("delta", "time", "batch"))
    laid.show(_PIPE)
    laid.explain()
    click.echo()
    took = sum(entry.took_part for entry in entries)
    tables.say(
        f"client {client} took part in {took} of {document['charged']} releases and has spent "
        f"{epsilon(entries[-1].epsilon)}; planned were {epsilon(document['planned'])}"
    )
