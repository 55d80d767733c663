"""Several Ray nodes on this machine, some of which may be lost."""

import contextlib
from collections.abc import Iterator
from typing import Any

from ray.cluster_utils import Cluster

from raydp_sim.actors.cluster import QUIET, setting
from raydp_sim.actors.leftovers import private_folder


class Nodes:
    """A head, where drivers run, and workers; each with processes of its own."""

    def __init__(self, folder: str, workers: int) -> None:
        head = {"num_cpus": 1, "temp_dir": folder, "include_dashboard": False}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self._workers: list[Any] = [self._cluster.add_node(num_cpus=1) for _ in range(workers)]
        self._cluster.wait_for_nodes()
        self.address = str(self._cluster.address)

    def lose(self, number: int) -> None:
        """End the processes of a worker at once, and let a new one join in its place."""
        self._cluster.remove_node(self._workers.pop(number), allow_graceful=False)
        self._workers.append(self._cluster.add_node(num_cpus=1, wait=False))

    @property
    def workers(self) -> int:
        """How many may be lost."""
        return len(self._workers)

    def end(self) -> None:
        """End all."""
        self._cluster.shutdown()


@contextlib.contextmanager
def nodes(workers: int) -> Iterator[Nodes]:
    """Hold a cluster of this process's own; nothing of it is left behind."""
    setting(QUIET)
    with private_folder() as folder:
        made = Nodes(folder, workers)
        try:
            yield made
        finally:
            made.end()
