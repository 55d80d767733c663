"""`raydp-sim bench scale`: what 10^6 to 10^9 clients need, from what one costs."""

import json
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console

from raydp_sim.bench.pipeline import machine
from raydp_sim.bench.scale import CASES, Cost, Needs, Node, measured, needs
from raydp_sim.errors import bad_field

_CLIENTS = (10**6, 10**7, 10**8, 10**9)
_HEADS = ("clients", "CPU-s", "memory GiB", "network GB", "nodes", "seconds", "senders", "reports")
_EPILOG = """\b
Example:
  raydp-sim bench scale
  raydp-sim bench scale --cpus 64 --memory 256 --seconds 60
"""


@click.command("scale", epilog=_EPILOG)
@click.option("--cpus", default=16, show_default=True, help="Of a node.")
@click.option("--memory", default=64, show_default=True, help="GiB of a node.")
@click.option("--network", default=10.0, show_default=True, help="Gbit per second of a node.")
@click.option("--seconds", default=10.0, show_default=True, help="That a release may take.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def scaled(cpus: int, memory: int, network: float, seconds: float, as_json: bool) -> None:
    """Measure what one client costs and say what a million to a billion need (about a minute).

    CPU-s: processor time of one release, without Ray's own. memory: of all nodes together. network:
    of all reports of a release. nodes: as many as time and memory ask for. seconds: of a release
    then. senders: client actors that each shuffler hears from, with one shuffler on every node.
    reports: that a shuffler holds.
    """
    for option, value in (("--cpus", cpus), ("--memory", memory), ("--network", network)):
        if value <= 0:
            raise bad_field(option, value, "it must be positive")
    if seconds <= 0:
        raise bad_field("--seconds", seconds, "it must be positive")
    node = Node(cpus, memory << 30, network * 1e9 / 8)
    console = Console(stderr=True)
    costs = {
        case: measured(case, lambda text: console.print(text, highlight=False)) for case in CASES
    }
    document = found(costs, node, seconds, machine())
    if as_json:
        click.echo(json.dumps(document))
        return
    for line in lines(document):
        click.echo(line)


def found(
    costs: dict[str, Cost], node: Node, seconds: float, about: dict[str, Any]
) -> dict[str, Any]:
    """Return everything as one document."""
    cases = {
        case: {
            "cost": asdict(cost),
            "needs": [asdict(needs(cost, clients, node, seconds)) for clients in _CLIENTS],
        }
        for case, cost in costs.items()
    }
    node_row = asdict(node)
    return {
        "benchmark": "scale",
        "machine": about,
        "node": node_row,
        "seconds": seconds,
        "cases": cases,
    }


def lines(document: dict[str, Any]) -> list[str]:
    """Return what is printed of a document."""
    said = []
    for case, each in document["cases"].items():
        cost = Cost(**each["cost"])
        said.append(
            f"{case}: a client costs {cost.cpu_s * 1e9:.3g} ns of CPU a release, "
            f"{cost.memory:.3g} bytes of memory and {cost.wire:.3g} bytes of network"
        )
        said += _table([Needs(**row) for row in each["needs"]])
        said.append("")
    node = Node(**document["node"])
    about = document["machine"]
    said.append(
        f"nodes of {node.cpus} CPUs, {node.memory / 2**30:.0f} GiB and "
        f"{node.network * 8 / 1e9:g} Gbit/s; a release may take {document['seconds']:g} s. "
        f"Measured on {about['cpu']}, NumPy {about['numpy']}, load {about['load']}."
    )
    return said


def _table(rows: list[Needs]) -> list[str]:
    cells = [
        (
            f"{row.clients:,}",
            f"{row.cpu_s:,.3g}",
            f"{row.memory / 2**30:,.3g}",
            f"{row.network / 1e9:,.3g}",
            f"{row.nodes:,}",
            f"{row.seconds:.3g}",
            f"{row.senders:,}",
            f"{row.reports:,}",
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(_HEADS, *cells, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in (_HEADS, *cells)
    ]
