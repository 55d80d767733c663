"""Play a scenario and die by SIGKILL just before command number N: killed.py SCENARIO N=OUT...

The commands are the engine's: ask, close, charge, release, discard. Several deaths are played one
after the other, each in a process of its own, and their exit codes printed as one JSON list.
"""

import json
import os
import signal
import sys
from pathlib import Path

from raydp_sim.actors.conductor import Conductor
from raydp_sim.run import prepare
from raydp_sim.scenario import parse


def play(file: str, death: str) -> None:
    last, out = death.split("=", 1)
    commands = 0
    execute = Conductor.execute

    def counting(self, command):
        nonlocal commands
        if commands == int(last):
            os.kill(os.getpid(), signal.SIGKILL)
        commands += 1
        execute(self, command)

    Conductor.execute = counting
    for _ in prepare(parse(json.loads(Path(file).read_text())), out).play():
        pass


def main() -> None:
    file, *deaths = sys.argv[1:]
    codes = []
    for death in deaths:
        # Forked before anything is played, so the imports are paid for once.
        child = os.fork()
        if child == 0:
            play(file, death)
            os._exit(0)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print(json.dumps(codes))


if __name__ == "__main__":
    main()
