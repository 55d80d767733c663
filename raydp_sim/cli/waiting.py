"""Telling a person who waits for a scenario to be read and calibrated that something happens."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click

from raydp_sim.errors import InputError
from raydp_sim.privacy.composition.search import watched
from raydp_sim.scenario.document import overridden

_FIRST, _NEXT = 2.0, 10.0


@contextlib.contextmanager
def waiting(
    document: Any, overrides: Iterable[str] = (), first: float = _FIRST, then: float = _NEXT
) -> Iterator[list[float]]:
    """Say after two seconds what takes so long, and go on saying so; a terminal shows one line.

    While a mechanism is calibrated it says how often was tried, and what the last try gave.

    Yields a list that has the seconds it took, once it is over.

    Args:
        document: the scenario as read: whether it has a target to be calibrated.
        overrides: assignments that are still to be made in it.
        first: seconds before anything is said.
        then: seconds between two lines, where there is no terminal.
    """
    if isinstance(document, Mapping):
        with contextlib.suppress(InputError):  # told by whoever makes them
            document = overridden(document, overrides)
    mechanism = document.get("mechanism") if isinstance(document, Mapping) else None
    target = mechanism.get("target") if isinstance(mechanism, Mapping) else None
    what = "checking the scenario"
    if isinstance(target, Mapping):
        what = f"calibrating the mechanism for epsilon {target.get('epsilon')} of the whole run"
    live, over, began, took = sys.stderr.isatty(), threading.Event(), time.monotonic(), [0.0]

    tries = list[tuple[float, float]]()

    def tell() -> None:
        pause = first
        while not over.wait(pause):
            line = f"{what}: {tried(tries)}{time.monotonic() - began:.0f} s so far"
            click.echo(f"\r{line}" if live else line, err=True, nl=not live)
            pause = 1.0 if live else then
        if live and pause != first:
            click.echo("\r\033[K", err=True, nl=False)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        with watched(lambda loss, epsilon: tries.append((loss, epsilon))):
            yield took
    finally:
        over.set()
        teller.join()
        took[0] = time.monotonic() - began


def tried(tries: list[tuple[float, float]]) -> str:
    """Say how often a calibration has tried, and what came of the last; nothing before the first.

    Example:
        >>> tried([(1.0, 0.2), (2.0, 0.9316)])
        'try 2, epsilon_local 2 gives epsilon 0.9316, '
    """
    if not tries:
        return ""
    loss, epsilon = tries[-1]
    return f"try {len(tries)}, epsilon_local {loss:.4g} gives epsilon {epsilon:.4g}, "
