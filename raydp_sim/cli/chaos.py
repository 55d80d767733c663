"""`raydp-sim chaos`: kill a run's processes and prove that it ends as if nothing had happened."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from raydp_sim.chaos.campaign import Campaign, applicable, refuse_absent
from raydp_sim.chaos.plan import KINDS, Kill, planned
from raydp_sim.chaos.record import SCHEMA, Fate, Record, fates_of, is_campaign, table, tallies
from raydp_sim.cli import shipped, tables
from raydp_sim.cli.playing import check_writable
from raydp_sim.cli.stored import read_stored, store
from raydp_sim.cli.tables import Column, Row
from raydp_sim.durable import fresh_folder, write_durable
from raydp_sim.errors import bad_field
from raydp_sim.registry import search_also
from raydp_sim.run.documents import dumped
from raydp_sim.scenario import Scenario, load

_PIPE = 100
_EPILOG = """\b
Example:
  raydp-sim chaos quickstart --kills 20 --seed 1
  raydp-sim chaos quickstart --kill node --kill ledger --nodes 3
"""


@click.command("chaos", epilog=_EPILOG)
@click.argument("scenario")
@click.option("--kills", default=10, show_default=True, help="How many.")
@click.option("--seed", default=0, show_default=True, help="Of what is killed when.")
@click.option(
    "--kill",
    "kinds",
    multiple=True,
    type=click.Choice(KINDS),
    help="Whom; may be repeated; default: all that the scenario has.",
)
@click.option("--nodes", default=1, show_default=True, help="Ray nodes on this machine.")
@click.option(
    "--apart", type=int, help="Releases between two kills on average; default: a sixth of them."
)
@click.option(
    "--set", "assignments", multiple=True, metavar="A.B=VALUE", help="Replace a field; repeatable."
)
@click.option("--out", metavar="DIR", help="Where runs go; default: a new folder under runs/.")
@click.option("--csv", "file", metavar="FILE.csv", help="Write what became of each kill.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as one JSON document.")
def command(
    scenario: str,
    kills: int,
    seed: int,
    kinds: tuple[str, ...],
    nodes: int,
    apart: int | None,
    assignments: tuple[str, ...],
    out: str | None,
    file: str | None,
    as_json: bool,
) -> None:
    """Play SCENARIO while processes of it are killed, resume it, and compare.

    Each run has to end with the very tables, estimate, client state and ledger of one that nothing
    disturbed; no release may be there twice, and none unpaid. An actor that dies is replaced at
    once; where the run has to stop (exit code 3), or its driver was killed, it is resumed, as a
    user would. Runs follow each other until all kills are made. It ends with exit code 3 if
    anything differs.

    Kills are SIGKILL of one process: of an actor, of the driver, or of all of a node. A campaign
    that was interrupted is continued by the same line with its --out. Where SCENARIO is a file that
    --csv wrote, its table is shown again.
    """
    if scenario.endswith(".csv"):
        _show(fates_of(read_stored(scenario, SCHEMA, "chaos")))
        return
    for option, value, least in (("--kills", kills, 1), ("--nodes", nodes, 1)):
        if value < least:
            raise bad_field(option, value, f"it must be at least {least}")
    if apart is not None and apart < 1:
        raise bad_field("--apart", apart, "it must be at least 1")
    search_also(Path.cwd())
    loaded = load(shipped.find(scenario), assignments)
    there = applicable(loaded, several_nodes=nodes > 1)
    refuse_absent(list(kinds), there)
    rows = loaded.task.rounds * loaded.repeat
    plan = planned(list(kinds) or there, kills, seed, apart or max(1, rows // 6))
    options = {"scenario": loaded.document(), "kills": kills, "seed": seed, "nodes": nodes}
    options |= {"kinds": list(kinds), "apart": apart}
    again = out is not None and is_campaign(Path(out))
    folder = Path(out).resolve() if again and out else fresh_folder(f"chaos-{loaded.name}", out)
    check_writable(folder)
    record = Record.taken_up(folder, options)
    with _cluster(loaded, nodes) as (address, lose):
        _play(Campaign(loaded, folder, record, address, lose, _say), plan)
    found = _document(loaded.name, record)
    write_durable(folder / "chaos.json", (dumped(found) + "\n").encode())
    if file is not None:
        store(table(record.fates), file)
    if as_json:
        click.echo(dumped(found))
        return
    _show(record.fates)
    click.echo(f"they are in {folder}")


def _say(text: str) -> None:
    click.echo(text, err=True)


def _play(campaign: Campaign, plan: list[Kill]) -> None:
    """Play a campaign.

    Raises:
        KeyboardInterrupt: says how to continue.
    """
    if made := len(campaign.record.fates):
        _say(f"continuing after {made} of {len(plan)} kills")
    try:
        campaign.play(plan)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted after {len(campaign.record.fates)} of {len(plan)} kills; continue with "
            f"the same options and --out {campaign.folder}"
        ) from None


@contextlib.contextmanager
def _cluster(
    scenario: Scenario, nodes: int
) -> Iterator[tuple[str | None, Callable[[float], None]]]:
    """Start the nodes that are to be played on, if the scenario has actors at all."""
    if scenario.placement.backend == "inline":
        yield None, lambda pick: None
        return
    # Ray takes a second to import; what does not need it should not wait for it.
    from raydp_sim.actors.nodes import nodes as started

    click.echo(f"starting Ray, {nodes} node{'s' if nodes > 1 else ''}", err=True)
    with started(nodes - 1) as made:
        yield made.address, lambda pick: made.lose(int(pick * made.workers))


def _document(name: str, record: Record) -> dict[str, Any]:
    return {
        "scenario": name,
        "seed": record.options["seed"],
        "runs": record.runs,
        "legs": record.legs,
        "identical": True,
        "kinds": {kind: asdict(tally) for kind, tally in tallies(record.fates).items()},
    }


def _show(fates: list[Fate]) -> None:
    heads = ("kills", "went on", "resumed", "seconds lost", "median", "longest")
    columns = [Column("killed", right=False, bold=True), *(Column(head) for head in heads)]
    rows = [
        Row(
            (
                kind,
                str(tally.kills),
                str(tally.went_on),
                str(tally.resumed),
                f"{tally.seconds:.1f}",
                f"{tally.median_s:.1f}",
                f"{tally.longest_s:.1f}",
            )
        )
        for kind, tally in tallies(fates).items()
    ]
    tables.fitted(columns, rows, tables.width(_PIPE)).show(_PIPE)
    runs = len({fate.run for fate in fates})
    tables.say(
        "went on: without the user. resumed: by a new driver, from the last checkpoint. seconds "
        "lost: after each kill, and before the next, the longest that no release came.",
        dim=True,
    )
    click.echo(
        f"{len(fates)} kills in {runs} run{'s' if runs > 1 else ''}, each with the tables, the "
        "estimate and the ledger of the undisturbed run"
    )
