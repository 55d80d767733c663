"""Several Ray nodes on this machine, some of which may be lost."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from ray.cluster_utils import Cluster

from raydp_sim.actors.cluster import QUIET, setting
from raydp_sim.actors.leftovers import private_folder

# A dead node is noticed after a second, not after half a minute; one that is slow to answer is
# given Ray's usual time.
_LOOKING = {
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 2,
}


class Nodes:
    """A head, where drivers run, and workers; each with processes of its own."""

    def __init__(self, folder: str, workers: int) -> None:
        # As many processes as it has CPUs start at once, and a driver's are on the head.
        cpus = os.cpu_count() or 1
        head = {"num_cpus": cpus, "temp_dir": folder, "include_dashboard": False}
        head["_system_config"] = _LOOKING
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
