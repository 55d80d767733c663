"""`raydp-sim watch`: a run while it is played, in the terminal, from its folder or over Flight."""

import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import click
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from raydp_sim.errors import InputError, RunError
from raydp_sim.metrics.view import STREAMS, Tail, View
from raydp_sim.run.directory import RunDir

_EPILOG = """\b
Example:
  raydp-sim watch runs/quickstart-20250101-120000
  RAYDP_SIM_TOKEN=... raydp-sim watch grpc://127.0.0.1:8815
"""
_PAUSE = 0.5  # seconds between two looks at a folder
_REFRESH = 0.1
_BESIDE = 46  # columns beside the spark lines

Step = tuple[View, str]
"""What there is to see, and the state of the run in a word."""


@click.command("watch", epilog=_EPILOG)
@click.argument("run", metavar="RUN|URL")
@click.option("--token", help="Of a run that is served; default: RAYDP_SIM_TOKEN.")
@click.option(
    "--certificate",
    type=click.Path(exists=True, dir_okay=False),
    help="PEM file with the certificate that signed the server's.",
)
@click.option("--once", is_flag=True, help="Show what there is now, and end.")
def command(run: str, token: str | None, certificate: str | None, once: bool) -> None:
    """Show a run while it is played: last values, and spark lines of how they went.

    RUN is a run directory on this machine; URL is what `raydp-sim run --serve` printed, on this
    machine or another. It ends with the run, or with Ctrl-C, which the run does not notice. Where
    there is no terminal, what there is now is shown once.
    """
    console = Console()
    once = once or not console.is_terminal
    if "://" in run:
        from raydp_sim.metrics.live.client import connect

        client = connect(run, token, certificate)
        (about, *_) = client.runs()
        steps = _now(client, about) if once else _followed(client)
    else:
        about, steps = _of_folder(run, once)
    if once:
        view, state = next(steps)
        console.print(_shown(about, view, state, console.width), highlight=False)
        return
    try:
        with Live(console=console, auto_refresh=False) as live:
            for view, state in steps:
                live.update(_shown(about, view, state, console.width), refresh=True)
    except KeyboardInterrupt:
        return


def _of_folder(run: str, once: bool) -> tuple[dict[str, Any], Iterator[Step]]:
    directory = RunDir.existing(run)
    scenario = directory.scenario()
    about = {
        "run": directory.path.name,
        "scenario": scenario.name,
        "rounds": scenario.task.rounds,
        "repeat": scenario.repeat,
    }
    return about, _looked_at(directory, once)


def _looked_at(directory: RunDir, once: bool) -> Iterator[Step]:
    tail, view = Tail(directory.metrics), View()
    while True:
        # Before rows are read: whoever has ended, has written them all. A summary comes last.
        played = directory.played()
        state = "over" if directory.summary_file.exists() else "live" if played else "interrupted"
        for stream, rows in tail.new():
            view.take(stream, rows)
        yield view, state
        if once or state != "live":
            return
        time.sleep(_PAUSE)


def _now(client: Any, about: dict[str, Any]) -> Iterator[Step]:
    view, known = View(), client.streams()
    for stream in STREAMS:
        if stream in known:
            view.take(stream, client.read(stream))
    yield view, about["state"]


def _followed(client: Any) -> Iterator[Step]:
    """Yield the state a few times a second, while threads take rows in."""
    view, events, waiting = View(), queue.Queue[tuple[str, Any]](), 0
    for stream in STREAMS:
        try:
            following = client.follow(stream)
        except InputError:  # which the token does not open
            continue
        waiting += 1
        threading.Thread(target=_collect, args=(stream, following, events), daemon=True).start()
    state = "live"
    while waiting:
        yield view, state
        deadline = time.monotonic() + _REFRESH
        while waiting and (left := deadline - time.monotonic()) > 0:
            try:
                stream, rows = events.get(timeout=left)
            except queue.Empty:
                break
            if isinstance(rows, Exception):
                state, waiting = "interrupted", 0
            elif rows is None:
                waiting -= 1
            else:
                view.take(stream, rows)
    yield view, "over" if state == "live" else state


def _collect(stream: str, following: Any, events: "queue.Queue[tuple[str, Any]]") -> None:
    try:
        for batch in following:
            events.put((stream, batch))
        events.put((stream, None))
    except (InputError, RunError) as error:
        events.put((stream, error))


def _shown(about: dict[str, Any], view: View, state: str, width: int) -> Group:
    """Lay out what there is to see."""
    total = about["rounds"] * about["repeat"]
    head = Text.assemble(
        (str(about["run"]), "bold"),
        f"  {about['scenario']}  {view.done:,} of {total:,} releases  ",
        (state, "green" if state == "live" else ""),
    )
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    made.add_column("")
    made.add_column("last", justify="right", no_wrap=True)
    made.add_column("so far", no_wrap=True, style="cyan")
    for name, last, line in view.table(max(8, min(60, width - _BESIDE))):
        made.add_row(Text(name), last, line)
    return Group(head, made)
