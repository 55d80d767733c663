"""What a client costs, measured; and what 10^6 to 10^9 of them therefore need.

Costs are differences between runs of two sizes and two lengths, each in a process of its own, so
that what a run costs anyway is not counted for clients. `python -m raydp_sim.bench.scale CASE
CLIENTS ROUNDS` is such a run.
"""

import json
import math
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from raydp_sim.run import prepare
from raydp_sim.scenario import parse

_ROUNDS = (1, 5)
CASES: dict[str, tuple[dict[str, Any], tuple[int, int]]] = {
    "one bit": (
        {
            "population": {"data": {"kind": "bernoulli", "probability": 0.3}},
            "mechanism": {"kind": "2rr", "epsilon_local": 1.0},
        },
        (1_000_000, 4_000_000),
    ),
    "vectors of 32": (
        {
            "population": {"data": {"kind": "gaussian", "dimension": 32, "clip": 1.0}},
            "mechanism": {"kind": "linf", "radius": 1.0, "epsilon_local": 2.0, "coordinates": 2},
        },
        (250_000, 1_000_000),
    ),
}
"""By name: a scenario without its clients, and the two sizes that are measured."""


@dataclass(frozen=True)
class Played:
    """A run that was measured: CPU-seconds, the most memory, and bytes that reports had."""

    cpu_s: float
    memory: int
    wire_bytes: int


@dataclass(frozen=True)
class Cost:
    """What one client costs.

    Attributes:
        cpu_s: processor time of one release.
        memory: bytes that are held.
        wire: bytes of one report.
    """

    cpu_s: float
    memory: float
    wire: float


@dataclass(frozen=True)
class Node:
    """A machine of a cluster: processors, bytes of memory, bytes per second of its network."""

    cpus: int = 16
    memory: int = 64 << 30
    network: float = 1.25e9


@dataclass(frozen=True)
class Needs:
    """What a number of clients needs.

    Attributes:
        clients: how many.
        cpu_s: processor time of a release.
        memory: bytes, of all nodes together.
        network: bytes that reach shufflers in a release, and leave them again.
        nodes: as many as time and memory ask for.
        seconds: of a release then.
        senders: client actors that send to each shuffler, of which every node has one.
        reports: that a shuffler holds in a release.
    """

    clients: int
    cpu_s: float
    memory: float
    network: float
    nodes: int
    seconds: float
    senders: int
    reports: int


def fitted(small: tuple[int, Played, Played], large: tuple[int, Played, Played]) -> Cost:
    """Return what one client costs, from a short and a long run of two sizes each.

    Example:
        >>> runs = [(n, Played(1 + n, 50 + 8 * n, n), Played(1 + 5 * n, 50 + 8 * n, 5 * n))
        ...         for n in (10, 40)]
        >>> fitted(*runs)
        Cost(cpu_s=1.0, memory=8.0, wire=1.0)
    """
    rounds = _ROUNDS[1] - _ROUNDS[0]
    (n, *first), (m, *second) = small, large
    releases = [(long.cpu_s - short.cpu_s) / rounds for short, long in (first, second)]
    return Cost(
        cpu_s=max(0.0, releases[1] - releases[0]) / (m - n),
        memory=max(0, second[1].memory - first[1].memory) / (m - n),
        wire=second[0].wire_bytes / m,
    )


def needs(cost: Cost, clients: int, node: Node, seconds: float) -> Needs:
    """Say what a number of clients needs for a release to take no longer than so many seconds.

    Processors are shared evenly, a tenth of each memory is left free, and every report crosses the
    network twice: to a shuffler, and from there to the aggregator, which is on one node and may
    well be what takes longest.

    Example:
        >>> found = needs(Cost(1e-6, 100.0, 1.0), 10**8, Node(10, 10**9, 1e9), seconds=2.0)
        >>> found.nodes, found.seconds, found.senders, found.reports
        (12, 0.8333333333333334, 120, 8333334)
    """
    cpu, memory, network = clients * cost.cpu_s, clients * cost.memory, clients * cost.wire
    nodes = max(math.ceil(cpu / (node.cpus * seconds)), math.ceil(memory / (0.9 * node.memory)), 1)
    # One node, the aggregator's, takes in all that the shufflers of the others send.
    longest = max(cpu / (node.cpus * nodes), network / node.network if nodes > 1 else 0.0)
    senders = node.cpus * nodes
    return Needs(clients, cpu, memory, network, nodes, longest, senders, math.ceil(clients / nodes))


def measured(case: str, say: Callable[[str], None] = lambda text: None) -> Cost:
    """Measure what one client of a case costs."""
    _, sizes = CASES[case]
    found = []
    for clients in sizes:
        say(f"{case}, {clients:,} clients")
        short, long = (_child(case, clients, rounds) for rounds in _ROUNDS)
        found.append((clients, short, long))
    return fitted(*found)


def _child(case: str, clients: int, rounds: int) -> Played:
    words = [sys.executable, "-m", "raydp_sim.bench.scale", case, str(clients), str(rounds)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return Played(**json.loads(done.stdout.splitlines()[-1]))


def play(case: str, clients: int, rounds: int) -> Played:
    """Play a case in this process."""
    document, _ = CASES[case]
    population = {**document["population"], "clients": clients}
    scenario = parse(
        {
            **document,
            "name": "scale",
            "population": population,
            "task": {"kind": "mean", "rounds": rounds},
            "placement": {"backend": "inline"},
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        run = prepare(scenario, Path(folder) / "run")
        began = time.process_time()
        wire = sum(int(row["wire_bytes"]) for row in run.releases())
        used = time.process_time() - began
    return Played(used, peak(), wire)


def peak() -> int:
    """Return the most bytes that this process held.

    Linux counts what whoever started it held among `ru_maxrss`, so its own file is asked first.
    """
    status = Path("/proc/self/status")
    if status.exists():
        held = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if held is not None:
            return int(held[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    print(json.dumps(asdict(play(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))))
