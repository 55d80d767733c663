"""`raydp-sim run`: play a scenario."""

from pathlib import Path

import click

from raydp_sim.cli import playing, shipped
from raydp_sim.cli.waiting import waiting
from raydp_sim.errors import InputError, bad_field
from raydp_sim.registry import search_also
from raydp_sim.run import prepare
from raydp_sim.scenario import load
from raydp_sim.scenario.document import is_figure, read

_EPILOG = """\b
Example:
  raydp-sim run quickstart
  raydp-sim run scenarios/quickstart.yaml --set population.clients=2000 --seed 3 --out runs/first
  raydp-sim run seeds/000-figure-5.6
  raydp-sim run week --serve --set metrics.tokens=tokens.yaml
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
@playing.COPY_TO
@click.option(
    "--serve", is_flag=True, help="Let others follow the run live, at a free port of this machine."
)
@click.option("--serve-at", metavar="HOST:PORT", help="The same, at an address of your choice.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON document.")
def command(
    scenario: str,
    assignments: tuple[str, ...],
    seed: int | None,
    address: str | None,
    out: str | None,
    copy_to: str | None,
    serve: bool,
    serve_at: str | None,
    as_json: bool,
) -> None:
    """Play SCENARIO, a file or the name of one that ships, and print a summary.

    First the plan: what the run needs, what it will cost a client, and the error to expect; a
    warning if the trivial answer would be as good, with the setting to change.

    Progress goes to standard error, the summary to standard output, everything else to the run
    directory: scenario.yaml, metrics/, ledger/, checkpoints/, summary.json, plot.png and log.txt.

    A file with a `figure` section is computed instead: its run directory holds scenario.yaml,
    figure/, summary.json and plot.png.
    """
    path = shipped.find(scenario)
    document = read(path)
    if is_figure(document):
        live = ("--serve", serve or None), ("--serve-at", serve_at), ("--copy-to", copy_to)
        for option, value in (("--seed", seed), ("--address", address), *live):
            if value is not None:
                raise bad_field(option, value, "a figure is computed, not played; leave it out")
        from raydp_sim.cli.figures import run_figure  # here, since runs do without figures

        run_figure(path, assignments, out, as_json)
        return
    if serve or serve_at is not None:
        assignments = (*assignments, f"metrics.serve={serve_at or 'true'}")
    search_also(Path.cwd())
    with waiting(document, assignments) as took:
        loaded = load(path, assignments, seed)
    made = prepare(loaded, out, address, origin=path)
    made.loading_s = took[0]
    playing.check_writable(made.directory.path)
    there = playing.copies(copy_to)
    try:
        playing.play(made, as_json)
        playing.send(made, there)
    except InputError as error:
        # What only the running found out; the fault of an option is named by itself.
        source = "" if str(error).startswith("--") else f"{path}: "
        raise InputError(f"{source}{error}") from None
