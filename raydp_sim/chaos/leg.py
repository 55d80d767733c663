"""One stretch of a campaign: plays or resumes a run and kills some of its actors' processes.

`python -m raydp_sim.chaos.leg FILE OUT ADDRESS` reads kills as one JSON line from standard input,
makes each when its row has come, and says in JSON lines what happened. Drivers and nodes are killed
from outside. It is a process of its own, since it may not survive.
"""

import contextlib
import json
import os
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from raydp_sim.actors.backend import Actor
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


def _process(crew: Crew, actor: Actor) -> int:
    (ref,) = crew.backend.call(actor, "__ray_call__", _own_pid)
    return int(crew.backend.get(ref))


def _own_pid(actor: object) -> int:
    return os.getpid()


def _strike(crew: Crew, kill: Kill) -> None:
    found = victims(crew, kill.kind)
    victim = found[int(kill.pick * len(found))]
    pid = _process(crew, victim)

    def strike() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    timer = threading.Timer(kill.delay, strike)
    timer.daemon = True
    timer.start()


def play(file: Path, out: Path, address: str | None, kills: list[Kill]) -> None:
    """Play on, with kills of actors on the way."""
    directory = RunDir(out)
    run = reopen(out, address) if directory.begun() else prepare(load(file), out, address)
    crews: list[Crew] = []
    run.watcher = Watcher(placed=crews.append)
    rows = 0
    for _ in run.releases():
        rows += 1
        say(row=rows)
        if kills and rows >= kills[0].after:
            kill = kills.pop(0)
            rows = 0
            say(kill=asdict(kill))
            if kill.kind not in ("driver", "node"):
                _strike(crews[-1], kill)
    say(over=True)


def main() -> None:
    """Play what the command line says; end as the command line's own commands do."""
    file, out, address = sys.argv[1:]
    kills = [Kill(**each) for each in json.loads(sys.stdin.readline())]
    try:
        play(Path(file), Path(out), address or None, kills)
    except RunError as error:
        say(stopped=str(error))
        sys.exit(3 if error.resumable else 1)
    except InputError as error:
        say(stopped=str(error))
        sys.exit(2)


if __name__ == "__main__":
    main()
