"""Play a scenario and die by SIGKILL just before command number N: killed.py SCENARIO OUT N.

The commands are the engine's: ask, close, charge, release, discard. With N = -1 nothing is killed
and the number of commands is printed.
"""

import json
import os
import signal
import sys
from pathlib import Path

from raydp_sim.actors.conductor import Conductor
from raydp_sim.run import prepare
from raydp_sim.scenario import parse


def main() -> None:
    file, out, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
    commands = 0
    execute = Conductor.execute

    def counting(self, command):
        nonlocal commands
        if commands == last:
            os.kill(os.getpid(), signal.SIGKILL)
        commands += 1
        execute(self, command)

    Conductor.execute = counting
    for _ in prepare(parse(json.loads(Path(file).read_text())), out).play():
        pass
    print(commands)


if __name__ == "__main__":
    main()
