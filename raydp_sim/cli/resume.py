"""`raydp-sim resume`: continue an interrupted run."""

from pathlib import Path

import click

from raydp_sim.cli import playing
from raydp_sim.cli.waiting import waiting
from raydp_sim.errors import InputError
from raydp_sim.registry import search_also
from raydp_sim.run import reopen
from raydp_sim.scenario.document import is_figure, read

_EPILOG = """\b
Example:
  raydp-sim resume runs/quickstart-20250101-120000
"""


@click.command("resume", epilog=_EPILOG)
@click.argument("run")
@click.option("--address", help="Join the Ray cluster at host:port (or auto).")
@playing.COPY_TO
@click.option("--serve", is_flag=True, help="Let others follow it live, if they could not before.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON document.")
def command(run: str, address: str | None, copy_to: str | None, serve: bool, as_json: bool) -> None:
    """Continue the run in the directory RUN from its last checkpoint.

    It ends with the same numbers as a run that was never interrupted. A run that was served is
    served again. For a run that is already complete the summary is printed again, and it is copied
    if --copy-to says so.
    """
    search_also(Path.cwd())
    file = Path(run) / "scenario.yaml"
    if file.is_file() and is_figure(read(file)):
        raise InputError(f"{run}: a figure is not resumed; compute it anew: raydp-sim run {file}")
    with waiting(read(file) if file.is_file() else None) as took:
        made = reopen(run, address)
    made.loading_s = took[0]
    there = playing.copies(copy_to)
    if made.result is not None:
        click.echo(f"{run} is already complete", err=True)
        playing.print_result(made, as_json)
        playing.send(made, there)
        return
    metrics = made.scenario.metrics
    if serve and metrics.address is None:
        served = metrics.model_copy(update={"serve": True})
        made.scenario = made.scenario.model_copy(update={"metrics": served})
    playing.play(made, as_json)
    playing.send(made, there)
