"""`run` as far as its first release, for `raydp-sim bench startup`: says when it got where."""

import json
import sys
import time

_PYTHON = time.time()


def main(arguments: list[str]) -> None:
    """Give `raydp-sim run` these arguments; stop it at its first release and print the moments.

    It is the command itself: only what it tells a person is listened to.
    """
    from raydp_sim.cli import playing
    from raydp_sim.cli.display import Display
    from raydp_sim.cli.main import main as command
    from raydp_sim.cli.run import command as run

    assert run.name is not None
    moments = {"python": _PYTHON, "imported": time.time()}

    class Marked(Display):
        """Notes when something happens first."""

        def phase(self, name: str) -> None:
            moments.setdefault(name, time.time())
            super().phase(name)

        def row(self, row: dict[str, object]) -> None:
            from raydp_sim.bench.contenders import tree_cpu

            moments["released"] = time.time()
            moments["cpu"] = tree_cpu(without=0)()
            raise KeyboardInterrupt  # which ends a run as cleanly as the end would

    vars(playing).update(Display=Marked)
    try:
        command([run.name, *arguments])
    finally:
        print(json.dumps(moments))


if __name__ == "__main__":
    main(sys.argv[1:])
