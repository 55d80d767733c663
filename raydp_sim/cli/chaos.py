"""`raydp-sim chaos`: kill a run's processes and prove that it ends as if nothing had happened."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from raydp_sim.chaos.campaign import Campaign, Tally, applicable, refuse_absent
from raydp_sim.chaos.plan import KINDS, planned
from raydp_sim.cli import shipped, tables
from raydp_sim.cli.playing import check_writable
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
    as_json: bool,
) -> None:
    """Play SCENARIO while processes of it are killed, resume it, and compare.

    Each run has to end with the very tables, estimate, client state and ledger of one that nothing
    disturbed; no release may be there twice, and none unpaid. A client actor that dies is replaced
    at once; where the run has to stop (exit code 3) it is resumed, as a user would. Runs follow
    each other until all kills are made. It ends with exit code 3 if anything differs.

    Kills are SIGKILL of one process: of an actor, of the driver, or of all of a node.
    """
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
    folder = fresh_folder(f"chaos-{loaded.name}", out)
    check_writable(folder)
    with _cluster(loaded, nodes) as (address, lose):
        campaign = Campaign(loaded, folder, address, lose, lambda text: click.echo(text, err=True))
        campaign.play(plan)
    found = _document(campaign, seed)
    write_durable(folder / "chaos.json", (dumped(found) + "\n").encode())
    if as_json:
        click.echo(dumped(found))
        return
    _show(campaign)
    click.echo(
        f"{campaign.runs} runs in {campaign.legs} legs, each with the tables, the estimate and the "
        f"ledger of the undisturbed run; they are in {folder}"
    )


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


def _document(campaign: Campaign, seed: int) -> dict[str, Any]:
    kinds = {
        kind: {
            "kills": tally.kills,
            "replaced": tally.replaced,
            "resumed": tally.resumed,
            "seconds": sum(tally.seconds),
            "longest_s": max(tally.seconds),
        }
        for kind, tally in _in_order(campaign)
    }
    return {
        "scenario": campaign.scenario.name,
        "seed": seed,
        "runs": campaign.runs,
        "legs": campaign.legs,
        "identical": True,
        "kinds": kinds,
    }


def _in_order(campaign: Campaign) -> list[tuple[str, Tally]]:
    return [(kind, campaign.tallies[kind]) for kind in KINDS if kind in campaign.tallies]


def _show(campaign: Campaign) -> None:
    heads = ("kills", "went on", "resumed", "seconds lost", "longest")
    columns = [Column("killed", right=False, bold=True), *(Column(head) for head in heads)]
    rows = [
        Row(
            (
                kind,
                str(tally.kills),
                str(tally.replaced),
                str(tally.resumed),
                f"{sum(tally.seconds):.1f}",
                f"{max(tally.seconds):.1f}",
            )
        )
        for kind, tally in _in_order(campaign)
    ]
    tables.fitted(columns, rows, tables.width(_PIPE)).show(_PIPE)
    tables.say(
        "went on: without the user. resumed: by a new driver, from the last checkpoint. seconds "
        "lost: after each kill the longest that no release came, its own time included.",
        dim=True,
    )
