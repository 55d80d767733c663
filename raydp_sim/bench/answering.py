"""A case of `bench training` in a process of its own, which plays rounds when it is asked to.

It speaks as the scripts of other simulators do, see peer_scripts/README.md.
"""

import json
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from raydp_sim.actors.cluster import connected
from raydp_sim.actors.together import Together
from raydp_sim.bench.contenders import Pipeline
from raydp_sim.bench.training import CASES
from raydp_sim.version import __version__

_START_SECONDS = 120.0


def main(case: str) -> None:
    """Play as many rounds of a case as asked for, until nobody asks any more."""
    versions = {"raydp-sim": __version__, "ray": version("ray"), "numpy": version("numpy")}
    with (
        tempfile.TemporaryDirectory(prefix="raydp-bench-") as folder,
        connected(None, _START_SECONDS),
    ):
        pipeline = Pipeline(CASES[case].scenario(), Together(), Path(folder) / "run", lambda: 0.0)
        print(json.dumps(versions), flush=True)
        try:
            for line in sys.stdin:
                pipeline.play(int(line))
                print(json.dumps({"rounds": int(line)}), flush=True)
        finally:
            pipeline.stop()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(sys.argv[1])
