"""Wait until all nodes have joined: python -m raydp_sim.actors.gathered HOST:PORT NODES."""

import sys
import time

import ray

from raydp_sim.actors.cluster import connected
from raydp_sim.errors import InputError

_SECONDS = 180.0


def gather(address: str, nodes: int) -> None:
    """Return when so many nodes are alive.

    Raises:
        InputError: they are not, after some minutes; or nobody answers at the address.
    """
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            with connected(address, _SECONDS):
                while (alive := sum(node["Alive"] for node in ray.nodes())) < nodes:
                    if time.monotonic() > deadline:
                        raise InputError(f"{alive} of {nodes} nodes have joined {address}")
                    time.sleep(0.5)
                return
        except InputError:
            # The head may take a while to listen.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


if __name__ == "__main__":
    try:
        gather(sys.argv[1], int(sys.argv[2]))
    except InputError as error:
        sys.exit(str(error))
