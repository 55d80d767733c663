"""One stretch of a campaign: plays or resumes a run and kills some of its actors' processes.

`python -m raydp_sim.chaos.leg FILE OUT ADDRESS` reads kills as one JSON line from standard input,
makes each when its row has come, and says in JSON lines what happened. Drivers and nodes are killed
from outside; that a node was, is a further line of input. It is a process of its own, since it may
not survive.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from raydp_sim.actors.backend import Actor, Lost
from raydp_sim.actors.crew import Crew
from raydp_sim.chaos.plan import Kill
from raydp_sim.errors import InputError, RunError
from raydp_sim.run import Watcher, prepare, reopen
from raydp_sim.run.directory import RunDir
from raydp_sim.scenario import load


def say(**fields: Any) -> None:
    """Tell the campaign."""
    print(json.dumps(fields), flush=True)


def victims(crew: Crew, kind: str) -> list[Actor]:
    """Return the actors of a kind."""
    return {
        "client": crew.clients,
        "shuffler": crew.collectors if crew.apart else [],
        "aggregator": crew.readers,
        "ledger": [crew.ledger],
        "metrics": [crew.metrics],
    }[kind]


def _process(crew: Crew, kill: Kill) -> int | None:
    """Return the process that is to be killed; None if a kill before has ended it just now."""
    found = victims(crew, kill.kind)
    victim = found[int(kill.pick * len(found))]
    (ref,) = crew.backend.call(victim, "__ray_call__", _own_pid)
    try:
        return int(crew.backend.get(ref))
    except Lost:
        return None


def _own_pid(actor: object) -> int:
    return os.getpid()


def _strike(pid: int, kill: Kill, struck: threading.Event) -> None:
    def strike() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        struck.set()

    timer = threading.Timer(kill.delay, strike)
    timer.daemon = True
    timer.start()


def play(
    file: Path, out: Path, address: str | None, kills: list[Kill], struck: threading.Event
) -> None:
    """Play on, with kills of actors on the way.

    Args:
        file: the scenario.
        out: the run directory.
        address: of the cluster.
        kills: that are to be made.
        struck: is set while no kill is under way; rows between two are counted then.
    """
    directory = RunDir(out)
    run = reopen(out, address) if directory.begun() else prepare(load(file), out, address)
    crews: list[Crew] = []
    run.watcher = Watcher(placed=crews.append)
    rows = 0
    for _ in run.releases():
        say(row=time.monotonic())
        rows += struck.is_set()
        if not kills or rows < kills[0].after:
            continue
        kill, pid = kills[0], None
        if kill.kind not in ("driver", "node") and (pid := _process(crews[-1], kill)) is None:
            continue  # until the next row: there will be another in its place
        del kills[0]
        rows = 0
        struck.clear()
        say(kill=asdict(kill), at=time.monotonic())
        if pid is not None:
            _strike(pid, kill, struck)
    say(over=True)


def _hear(struck: threading.Event) -> None:
    """Note that a node was killed, and end with the campaign, whoever ended that."""
    # Not through `sys.stdin`, whose lock a thread must not hold when the process ends.
    while os.read(0, 1 << 10):
        struck.set()
    os._exit(3)


def main() -> None:
    """Play what the command line says; end as the command line's own commands do."""
    file, out, address = sys.argv[1:]
    kills = [Kill(**each) for each in json.loads(sys.stdin.readline())]
    struck = threading.Event()
    struck.set()
    threading.Thread(target=_hear, args=(struck,), daemon=True).start()
    try:
        play(Path(file), Path(out), address or None, kills, struck)
    except RunError as error:
        say(stopped=str(error))
        sys.exit(3 if error.resumable else 1)
    except InputError as error:
        say(stopped=str(error))
        sys.exit(2)


if __name__ == "__main__":
    main()
