"""Three nodes with addresses of their own give what one process gives."""

import pytest
import yaml

from raydp_sim.run import run
from tests.cluster.spaces import spaces
from tests.conftest import assert_identical, scenario, with_placement

pytestmark = [pytest.mark.long, pytest.mark.cluster, pytest.mark.timeout(1200)]
NOISE = {"kind": "gaussian", "radius": 3.0, "epsilon_local": 1.0, "delta_local": 1e-8}
MODELS = {
    "shuffle": {},
    "local": {"mechanism": NOISE},
    "central": {"mechanism": {"kind": "central-laplace", "radius": 6.0, "epsilon": 2.0}},
}


@pytest.fixture(scope="module")
def three():
    with spaces(3, memory=1 << 30) as made:
        yield made


@pytest.mark.parametrize("trust", MODELS)
def test_three_nodes_give_what_one_process_gives(trust, three, tmp_path):
    base = scenario(300, rounds=4, trust=trust, **MODELS[trust])
    shufflers = 2 if trust == "shuffle" else 1
    placed = with_placement(base, shufflers, backend="ray", clients_per_actor=50)
    file = tmp_path / "own.yaml"
    file.write_text(yaml.safe_dump(placed.document()))
    run(base, out=tmp_path / "inline")
    process = three.play(file, tmp_path / "made")
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said[-3000:]
    assert_identical(tmp_path / "inline", tmp_path / "made")


def test_the_preflight_counts_the_clusters_cpus(three, tmp_path):
    """Each node has one CPU, whatever this machine has: three actors of clients, and four more."""
    file = tmp_path / "own.yaml"
    file.write_text(yaml.safe_dump(with_placement(scenario(300), backend="ray").document()))
    process = three.play(file, tmp_path / "made")
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0 and "plan: 7 actors" in said, said[-3000:]


def test_the_preflight_counts_the_clusters_memory(three, tmp_path):
    """Three nodes say that they have a GiB each; this machine may have more."""
    placed = with_placement(scenario(300), backend="ray", clients_per_actor=5)
    file = tmp_path / "own.yaml"
    file.write_text(yaml.safe_dump(placed.document()))
    process = three.play(file, tmp_path / "made")
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 2 and "6.6 GiB of 3.0 GiB" in " ".join(said.split()), said[-3000:]
    assert not (tmp_path / "made").exists()
