"""Run a scenario on a cluster of two Ray nodes in this process: two_nodes.py SCENARIO.json OUT."""

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
from ray.cluster_utils import Cluster

from raydp_sim.actors.crew import Crew
from raydp_sim.run import prepare
from raydp_sim.scenario import parse


def beside_the_driver(actors: list) -> list[bool]:
    """Say of each whether it is on the driver's node."""
    asked = [actor.__ray_call__.remote(node) for actor in actors]
    return [found == node(None) for found in ray.get(asked)]


def node(_: object) -> str:
    return ray.get_runtime_context().get_node_id()


def main() -> None:
    file, out = sys.argv[1:]
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    crews = []
    begin = Crew.begin
    Crew.begin = lambda self, *args: (crews.append(self), begin(self, *args))[1]
    run = prepare(parse(json.loads(Path(file).read_text())), out, cluster.address)
    where: dict[str, list[bool]] = {}
    for _ in run.play():
        if not where:
            crew = crews[0]
            others = [*crew.readers, crew.ledger, crew.metrics]
            kinds = {"clients": crew.clients, "shufflers": crew.collectors, "others": others}
            where = {kind: beside_the_driver(actors) for kind, actors in kinds.items()}
    print(json.dumps(where))
    cluster.shutdown()


if __name__ == "__main__":
    main()
