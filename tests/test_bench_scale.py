"""What a client costs and what many need: the arithmetic, a small run, and the stored table."""

import json
from pathlib import Path

import pytest

from raydp_sim.bench import scale
from raydp_sim.bench.scale import CASES, Cost, Node, Played, fitted, needs, play
from raydp_sim.cli.bench_scale import lines

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "docs" / "scale.json"


def test_costs_are_differences_so_that_what_is_always_paid_is_not_counted():
    """Runs that cost exactly what a line says: 2 us, 24 bytes and 3 bytes a client."""

    def run(clients, rounds):
        return Played(7.0 + rounds * (0.5 + 2e-6 * clients), 10**8 + 24 * clients, 3 * clients)

    found = fitted(*((n, run(n, 1), run(n, 5)) for n in (10**5, 10**6)))
    assert found.cpu_s == pytest.approx(2e-6)
    assert (found.memory, found.wire) == (24.0, 3.0)


@pytest.mark.parametrize(
    "cost,clients,nodes,seconds",
    [
        (Cost(1e-6, 0.0, 0.0), 10**6, 1, 0.1),  # 1 CPU-second on 10 CPUs
        (Cost(1e-6, 0.0, 0.0), 10**9, 10, 10.0),  # 1000 CPU-seconds, 10 s on 100 CPUs
        (Cost(1e-9, 90.0, 0.0), 10**8, 10, 0.001),  # 9 GB, of which a node holds 0.9
        (Cost(1e-6, 0.0, 1.0), 10**9, 10, 10.0),  # 1 GB at 0.1 GB a second
        (Cost(1e-6, 0.0, 4.0), 10**9, 10, 40.0),  # the aggregator's network is what takes longest
    ],
)
def test_as_many_nodes_as_time_and_memory_ask_for(cost, clients, nodes, seconds):
    found = needs(cost, clients, Node(cpus=10, memory=10**9, network=1e8), seconds=10.0)
    assert (found.nodes, found.seconds) == (nodes, pytest.approx(seconds))
    assert found.senders == 10 * nodes and found.reports == clients / nodes


@pytest.mark.parametrize("case", CASES)
def test_a_case_is_played_and_measured(case):
    one, three = (play(case, 300, rounds) for rounds in (1, 3))
    assert three.wire_bytes == 3 * one.wire_bytes > 0
    assert one.cpu_s > 0 and one.memory > 1 << 20


def test_every_size_is_played_short_and_long(monkeypatch):
    seen = []

    def child(case, clients, rounds):
        seen.append((clients, rounds))
        return Played(float(clients * rounds), clients, clients)

    monkeypatch.setattr(scale, "_child", child)
    assert scale.measured("one bit") == Cost(1.0, 1.0, 1.0)
    assert seen == [(n, rounds) for n in CASES["one bit"][1] for rounds in (1, 5)]


def test_the_page_shows_the_stored_table():
    page = (ROOT / "docs" / "scale.md").read_text()
    document = json.loads(STORED.read_text())
    assert "\n".join(lines(document)) in page
    node = Node(**document["node"])
    for each in document["cases"].values():
        cost = Cost(**each["cost"])
        for row in each["needs"]:
            assert scale.asdict(needs(cost, row["clients"], node, document["seconds"])) == row


@pytest.mark.slow
def test_ten_million_clients_play_in_bounded_memory():
    assert scale._child("one bit", 10_000_000, 2).memory < 1 << 30
