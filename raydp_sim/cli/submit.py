"""`raydp-sim submit`: play a scenario on a cluster that is elsewhere, and bring the run back."""

import time
from pathlib import Path

import click

from raydp_sim.cli import shipped
from raydp_sim.cli.playing import check_writable
from raydp_sim.cli.summary_table import print_summary
from raydp_sim.durable import fresh_folder
from raydp_sim.errors import InputError, RunError, bad_field
from raydp_sim.registry import search_also
from raydp_sim.remote import handed, parcel
from raydp_sim.remote.jobs import Job, Jobs, Unreachable
from raydp_sim.run.documents import dumped, read_back
from raydp_sim.scenario import load

_LOOK_SECONDS = 1.0
_PATIENCE_SECONDS = 300.0  # without an answer, before following is given up

_EPILOG = """\b
Example:
  raydp-sim submit quickstart --address http://localhost:8265
  raydp-sim submit --attach quickstart-20250101-120000-1a2b3c --address http://localhost:8265
"""


@click.command("submit", epilog=_EPILOG)
@click.argument("scenario", required=False)
@click.option("--address", required=True, help="Ray's dashboard on the head: http://HOST:8265.")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="A.B=VALUE",
    help="Replace a field of the scenario; may be repeated.",
)
@click.option("--seed", type=int, help="Replace the scenario's seed.")
@click.option("--attach", metavar="ID", help="Follow a run that was handed in before.")
@click.option("--stop", metavar="ID", help="End a run that was handed in before; it is kept there.")
@click.option(
    "--there",
    default="~/raydp-sim-runs",
    show_default=True,
    metavar="DIR",
    help="Where the cluster keeps run directories; a shared folder outlives the head.",
)
@click.option("--out", metavar="DIR", help="Where the run comes back to; default: under runs/.")
@click.option(
    "--copy-to",
    metavar="URI",
    help="Where the cluster also copies the finished run to; see `raydp-sim run`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON document.")
def command(
    scenario: str | None,
    address: str,
    assignments: tuple[str, ...],
    seed: int | None,
    attach: str | None,
    stop: str | None,
    there: str,
    out: str | None,
    copy_to: str | None,
    as_json: bool,
) -> None:
    """Hand SCENARIO in to a Ray cluster, follow it, and copy its run directory back.

    The run goes on when this command ends: after Ctrl-C, or when the terminal is closed, follow it
    again with --attach. Files that a scenario names have to be there, under the same path.
    """
    jobs = Jobs(address)
    if sum(each is not None for each in (scenario, attach, stop)) != 1:
        raise InputError("give one of SCENARIO, --attach ID and --stop ID")
    if stop is not None:
        jobs.stop(stop)
        click.echo(f"asked {jobs.address} to stop {stop}", err=True)
        return
    if scenario is not None:
        name = _hand_in(jobs, scenario, assignments, seed, there, out, copy_to)
    else:
        assert attach is not None
        name = attach
        fixed = ("--set", assignments or None), ("--seed", seed), ("--copy-to", copy_to)
        for option, value in fixed:
            if value is not None:
                raise bad_field(option, value, "the run is handed in already; leave it out")
    place = fresh_folder(name, out) if out is not None else Path("runs", name).resolve()
    try:
        _bring_back(jobs, name, _followed(jobs, name), place)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"the run goes on; follow it with `raydp-sim submit --attach {name} --address "
            f"{jobs.address}`, or end it with --stop {name}"
        ) from None
    summary = read_back((place / "summary.json").read_text(encoding="utf-8"))
    click.echo(f"the run is in {place}", err=True)
    if as_json:
        click.echo(dumped(summary))
    else:
        print_summary({**summary, "run_dir": str(place)})


def _hand_in(
    jobs: Jobs,
    scenario: str,
    assignments: tuple[str, ...],
    seed: int | None,
    there: str,
    out: str | None,
    copy_to: str | None,
) -> str:
    """Check a scenario here, where a mistake is found at once, and hand it in."""
    path = shipped.find(scenario)
    search_also(Path.cwd())
    loaded = load(path, assignments, seed)
    if loaded.placement.backend != "ray":
        remedy = "on a cluster it has to be ray; add --set placement.backend=ray"
        raise bad_field("placement.backend", loaded.placement.backend, remedy)
    if out is not None:
        check_writable(fresh_folder(loaded.name, out))
    name = handed.new_name(loaded.name)
    folder = f"{there.rstrip('/')}/{name}"
    jobs.submit(
        name,
        handed.playing(folder, assignments, seed, copy_to),
        handed.variables(path.read_text(encoding="utf-8")),
        {handed.FOLDER: folder},
    )
    click.echo(f"handed in as {name}; follow it anywhere with --attach {name}", err=True)
    return name


def _followed(jobs: Jobs, name: str) -> Job:
    """Show what a run says until it is over; a head that is away for a while is waited for."""
    shown, since = 0, time.monotonic()
    while True:
        try:
            about = jobs.about(name)
            said = jobs.log(name)
        except Unreachable:
            if time.monotonic() - since > _PATIENCE_SECONDS:
                raise
            time.sleep(_LOOK_SECONDS)
            continue
        since = time.monotonic()
        click.echo(said[shown:], err=True, nl=False)
        shown = len(said)
        if about.over:
            return about
        time.sleep(_LOOK_SECONDS)


def _bring_back(jobs: Jobs, name: str, about: Job, place: Path) -> None:
    """Copy the run directory here by a second job, whose log it is.

    Raises:
        InputError: the cluster refused the scenario.
        RunError: the run did not finish.
    """
    if (place / "summary.json").is_file():
        return  # copied by an earlier --attach
    if about.status != "SUCCEEDED":
        why = f"{name} ended as {about.status} on the cluster: {about.message.splitlines()[-1:]}"
        if about.code == 2:
            raise InputError(f"{why}; what it said is above")
        raise RunError(f"{why}; its directory there is {about.metadata.get(handed.FOLDER)}", False)
    folder = about.metadata.get(handed.FOLDER)
    if folder is None:
        raise InputError(f"{name} is a job at {jobs.address}, but none of `raydp-sim submit`")
    copier = handed.new_name(f"{name}-copy")
    click.echo("copying the run directory", err=True)
    jobs.submit(copier, handed.sending(folder), {}, {})
    while not (sent := jobs.about(copier)).over:
        time.sleep(_LOOK_SECONDS)
    if sent.status != "SUCCEEDED":
        raise RunError(f"{folder} could not be read on the cluster: {sent.message}", False)
    parcel.unwrap(jobs.log(copier), place)
