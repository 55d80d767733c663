"""A driver that waits after some of its rows: python paced.py FILE OUT ADDRESS ROW...

It says in JSON lines how far it is and, at the first wait, at which address each actor of clients
is; it goes on after a line of standard input. At each wait it hands batches that clients made
before they were replaced to every collector, once more and for a release that is still to come, and
says how many were let in.
"""

import contextlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray

from raydp_sim.actors.backend import Lost
from raydp_sim.actors.crew import Crew
from raydp_sim.errors import RunError
from raydp_sim.run import Watcher, prepare, reopen
from raydp_sim.run.directory import RunDir
from raydp_sim.scenario import load


def say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


class Zombies:
    """Keeps the first batches of every client actor, to be sent again when it was replaced."""

    def __init__(self) -> None:
        self.crews: list[Crew] = []
        self.kept: dict[int, Any] = {}  # by placement: reports for each collector

    def placed(self, crew: Crew) -> None:
        self.crews.append(crew)
        self.kept.clear()
        call = crew.backend.call

        def keeping(actor: Any, method: str, *args: Any, returns: int = 1) -> Any:
            refs = call(actor, method, *args, returns=returns)
            if method in ("report", "reports") and crew is self.crews[-1] and actor in crew.clients:
                self.kept.setdefault(crew.clients.index(actor), refs[1:])
            return refs

        crew.backend.call = keeping  # type: ignore[method-assign]

    def again(self, release: int) -> tuple[int, int]:
        """Return how many batches of replaced actors were sent, and how many of them let in."""
        crew, sent, taken = self.crews[-1], 0, 0
        for source, batches in self.kept.items():
            if not crew.epochs[source]:
                continue
            for collector, ref in zip(crew.receivers, batches, strict=True):
                with contextlib.suppress(Lost):
                    made = crew.backend.get(ref)
                    first = made[0] if isinstance(made, list) else made  # of a span
                    late = replace(first, release=release)
                    taken += sum(crew.ask(collector, "collect", late))
                    sent += 1
        return sent, taken


def address(_: Any) -> str:
    """Return where an actor is that runs this."""
    return str(ray.util.get_node_ip_address())


def places(crew: Crew) -> list[str]:
    return ray.get([client.__ray_call__.remote(address) for client in crew.clients])


def main() -> None:
    file, out, address, *waits = sys.argv[1:]
    begun = RunDir(Path(out)).begun()
    run = reopen(out, address) if begun else prepare(load(file), out, address)
    zombies = Zombies()
    run.watcher = Watcher(placed=zombies.placed)
    try:
        for number, _ in enumerate(run.play(), 1):
            if str(number) in waits:
                sent, taken = zombies.again(run.scenario.task.rounds - 1)
                crew = zombies.crews[-1]
                where = {"clients": places(crew)} if str(number) == waits[0] else {}
                say(row=number, replaced=sum(crew.epochs), late=sent, taken=taken, **where)
                sys.stdin.readline()
    except RunError as error:
        say(stopped=str(error))
        sys.exit(3 if error.resumable else 1)
    say(over=True, replaced=sum(zombies.crews[-1].epochs), crews=len(zombies.crews))


if __name__ == "__main__":
    main()
