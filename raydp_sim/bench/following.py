"""A follower for measurements, in a process of its own: following.py URL STREAM.

It prints a line when it has its first row, or waits for it, and one when the run is over: how many
rows it got and, of those that say when they were sent, how long each took.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from typing import IO, Any

from raydp_sim.metrics.live.access import VARIABLE
from raydp_sim.metrics.live.client import connect


def main() -> None:
    """Follow a stream to its end."""
    url, stream = sys.argv[1:]
    following = connect(url).follow(stream)
    print("connected", flush=True)
    rows, took = 0, []
    for batch in following:
        now = time.monotonic()
        rows += batch.num_rows
        if "sent" in batch.schema.names:
            took += [now - sent for sent in batch["sent"].to_pylist()]
    print(json.dumps({"rows": rows, "latency": statistics.median(took) if took else None}))


class Follower:
    """Such a process."""

    def __init__(self, url: str, token: str, stream: str) -> None:
        environment = {**os.environ, VARIABLE: token}
        command = [sys.executable, "-m", "raydp_sim.bench.following", url, stream]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self._said: IO[bytes] = self.process.stdout
        self._said.readline()

    def result(self) -> dict[str, Any]:
        """Return what it found; the run has to be over."""
        found: dict[str, Any] = json.loads(self._said.readline() or "{}")
        return found

    def stop(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()
        self._said.close()


if __name__ == "__main__":
    main()
