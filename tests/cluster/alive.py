"""Say in JSON where Ray has nodes: python -m tests.cluster.alive HOST:PORT [ADDRESS...].

With addresses, wait until there is one node at each of them and none elsewhere, as Ray sees it: one
that was killed is there for some seconds yet, one that answers nobody may have been given up.
"""

import json
import sys
import time

import ray

from raydp_sim.actors.cluster import connected

SECONDS = 180.0


def alive() -> list[str]:
    return sorted(node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"])


def main() -> None:
    head, *wanted = sys.argv[1:]
    deadline = time.monotonic() + SECONDS
    with connected(head, SECONDS):
        while wanted and alive() != sorted(wanted):
            if time.monotonic() > deadline:
                sys.exit(f"Ray has nodes at {alive()}, not at {sorted(wanted)}")
            time.sleep(0.2)
        print(json.dumps(alive()))


if __name__ == "__main__":
    main()
