"""`raydp-sim run`: play a scenario."""

from pathlib import Path

import click

from raydp_sim.cli import playing, shipped
from raydp_sim.errors import InputError
from raydp_sim.registry import search_also
from raydp_sim.run import prepare
from raydp_sim.scenario import load

_EPILOG = """\b
Example:
  raydp-sim run quickstart
  raydp-sim run scenarios/quickstart.yaml --set population.clients=2000 --seed 3 --out /tmp/first
"""


@click.command("run", epilog=_EPILOG)
@click.argument("scenario")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="A.B=VALUE",
    help="Replace a field of the scenario, such as task.rounds=5; may be repeated.",
)
@click.option("--seed", type=int, help="Replace the scenario's seed.")
@click.option(
    "--address",
    help="Join the Ray cluster at host:port (or auto); without it a private Ray is started.",
)
@click.option(
    "--out",
    metavar="DIR",
    help="The run directory, new or empty; default: one under runs/.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON document.")
def command(
    scenario: str,
    assignments: tuple[str, ...],
    seed: int | None,
    address: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Play SCENARIO, a file or the name of one that ships, and print a summary.

    Progress goes to standard error, the summary to standard output, everything else to the run
    directory: scenario.yaml, metrics/, ledger/, checkpoints/, summary.json, plot.png and log.txt.
    """
    path = shipped.find(scenario)
    search_also(Path.cwd())
    made = prepare(load(path, assignments, seed), out, address, origin=path)
    playing.check_writable(made.directory.path)
    try:
        playing.play(made, as_json)
    except InputError as error:
        # What only the running found out; the fault of an option is named by itself.
        source = "" if str(error).startswith("--") else f"{path}: "
        raise InputError(f"{source}{error}") from None
