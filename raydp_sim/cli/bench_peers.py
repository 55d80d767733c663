"""`raydp-sim bench peers`: the same training in Flower, in pfl-research and in ours."""

import json
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from raydp_sim.bench import peers
from raydp_sim.bench.peers import CASE, PEERS, SEGMENTS, Result
from raydp_sim.bench.pipeline import machine
from raydp_sim.bench.training import CASES

_EPILOG = """\b
Example:
  raydp-sim bench peers --install
  raydp-sim bench peers --peer flower --json
"""
_FOLDER = Path.home() / ".cache" / "raydp-sim" / "peers"


@click.command("peers", epilog=_EPILOG)
@click.option(
    "--environments",
    type=click.Path(path_type=Path, file_okay=False),
    default=_FOLDER,
    show_default="~/.cache/raydp-sim/peers",
    help="The folder that holds a virtual environment for each.",
)
@click.option("--install", is_flag=True, help="First make the environments that are not there.")
@click.option(
    "--peer",
    "names",
    type=click.Choice(list(PEERS)),
    multiple=True,
    help="Compare only with this one; may be given more than once.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def compared(environments: Path, install: bool, names: tuple[str, ...], as_json: bool) -> None:
    """Train the same linear model in Flower, in pfl-research and in ours (a few minutes).

    Softmax regression of 7,850 parameters, 60 samples a client, 100 of 1,000 clients a round, one
    local step. Every simulator has two workers of one thread each, is set up as its documentation
    says it is fastest, and takes turns with the others; shown are medians of segments after a
    first that is not counted. Starting is not counted. CPU is that of all processes of each.

    The others are installed from PyPI into virtual environments of their own: 0.5 GB for Flower,
    1.1 GB for pfl-research with PyTorch.
    """
    chosen = list(dict.fromkeys(names)) or list(PEERS)
    folder = environments.resolve()
    console = Console(stderr=True)
    with console.status("") as status:

        def say(line: str) -> None:
            if console.is_terminal:
                status.update(escape(line))
            elif not line.startswith("segment"):
                click.echo(line, err=True)

        if install:
            for name in chosen:
                peers.install(folder, PEERS[name], say)
        found = peers.play(folder, chosen, say)
    about = machine()
    if as_json:
        click.echo(json.dumps(peers.document(found, about), indent=2))
        return
    Console(width=100).print(peers_table(found), highlight=False)
    for line in remarks(found):
        click.echo(line)
    click.echo(
        f"{about['cpu']}, Python {about['python']}, kernels {about['kernels']}, "
        f"load {about['load']} at the end"
    )


def peers_table(found: list[Result]) -> Table:
    """Lay out what each does in a second and in a CPU-second, ours first."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    made.add_column("", no_wrap=True)
    heads = ("updates/s", "ours / it", "updates/CPU s", "ours / it", "ms a round", "CPU ms")
    for name in heads:
        made.add_column(name, justify="right", no_wrap=True)
    ours = found[0]
    for result in found:
        taken = result.median
        made.add_row(
            result.name,
            f"{result.updates:,.0f}",
            f"{ours.updates / result.updates:.3g}",
            f"{result.updates_per_cpu:,.0f}",
            f"{ours.updates_per_cpu / result.updates_per_cpu:.3g}",
            f"{taken.wall * 1e3:.1f}",
            f"{taken.cpu * 1e3:.1f}",
        )
    return made


def remarks(found: list[Result]) -> list[str]:
    """Say what was played, how often, and with which versions."""
    lines = [f"{CASES[CASE].title}; medians of {SEGMENTS} segments, in turns"]
    for result in found:
        versions = ", ".join(f"{name} {number}" for name, number in result.versions.items())
        lines.append(f"{result.name}: {versions}")
    return lines
