"""Playing a run for a person: what `run` and `resume` share."""

import contextlib
import os
import signal
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import click

from raydp_sim.cli.display import Display
from raydp_sim.errors import InputError, RunError, bad_field
from raydp_sim.remote.copies import Copies
from raydp_sim.run import Run, Watcher
from raydp_sim.run.documents import dumped

COPY_TO = click.option(
    "--copy-to",
    metavar="URI",
    help="Copy the finished run into a folder there: file:///..., s3://..., gs://..., abfs://...",
)


def copies(uri: str | None) -> Copies | None:
    """Return where a run is to be copied to, if it is."""
    return None if uri is None else Copies(uri)


def send(run: Run, there: "Copies | None") -> None:
    """Copy a finished run, if that was asked for."""
    if there is not None:
        click.echo(f"copied to {there.send(run.directory.path)}", err=True)


def play(run: Run, as_json: bool) -> None:
    """Play a run with live progress, then print its summary.

    Args:
        run: what `prepare` or `reopen` made.
        as_json: whether the summary is printed as JSON.

    Raises:
        KeyboardInterrupt: says how to resume.
    """
    if run.address is not None and run.scenario.placement.backend == "inline":
        remedy = "the scenario says placement.backend: inline; leave --address out or set it to ray"
        raise bad_field("--address", run.address, remedy)
    done = run.checkpoint.repetition * run.scenario.task.rounds + run.checkpoint.finished
    display = Display(run.scenario, done)

    run.watcher = Watcher(
        display.planned, display.phase, display.loaded, display.served, told=display.told
    )
    try:
        with one_interrupt(), display, contextlib.closing(run.play()) as rows:
            for row in rows:
                display.row(row)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_interrupted(run)) from None
    except (InputError, RunError):
        raise
    except OSError as error:
        raise _unwritten(run, error) from error
    except Exception:
        if run.directory.path.exists():
            run.directory.log(traceback.format_exc())
        raise
    print_result(run, as_json)


def print_result(run: Run, as_json: bool) -> None:
    """Print the summary of a finished run."""
    if run.result is None:
        raise RunError("the run ended without a result")
    if as_json:
        click.echo(dumped(run.result.summary))
    else:
        from raydp_sim.cli.summary_table import print_summary  # here, since it comes last

        print_summary(run.result.summary)


def check_writable(path: Path) -> None:
    """Refuse a run directory that could not be made, before anything is started for it.

    Raises:
        InputError: names the folder that stands in the way.
    """
    parent = next(folder for folder in (path, *path.parents) if folder.exists())
    if not (parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)):
        raise InputError(
            f"--out is {str(path)!r}; {parent} is not a writable directory: give another"
        )


def _unwritten(run: Run, error: OSError) -> RunError:
    """Say how to go on after what only writing or reading a file found out, as a full disk."""
    path = run.directory.path
    why = f"{error.filename or path}: {error.strerror or error}"
    remedy = f"; continue with `raydp-sim resume {path}`" if run.directory.begun() else ""
    return RunError(f"something could not be written or read ({why}){remedy}")


def _interrupted(run: Run) -> str:
    path = run.directory.path
    if not run.directory.begun():
        return "interrupted before the run began; nothing was written"
    return f"interrupted; continue with `raydp-sim resume {path}`"


@contextlib.contextmanager
def one_interrupt() -> Iterator[None]:
    """Let one Ctrl-C stop the run, and impatient further ones not disturb its clean end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen == 1 or seen > 3:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
