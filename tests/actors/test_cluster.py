"""How a run finds Ray: a private one, or exactly the one it is told to join."""

import json
import os
import subprocess
import sys

import pytest
import ray

from raydp_sim.actors import cluster
from raydp_sim.errors import InputError, RunError
from tests.conftest import assert_identical, scenario, with_placement


@pytest.mark.parametrize(
    "address,says",
    [
        ("127.0.0.1:1", "no Ray cluster answers there.*ray start --head"),
        ("127.0.0.1:99999", "no Ray cluster answers there"),
        ("ray://127.0.0.1:10001", "write host:port"),
        ("nonsense", "write host:port"),
    ],
)
def test_a_bad_address_is_named(address, says, monkeypatch):
    monkeypatch.setattr(cluster.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(cluster.ray, "shutdown", lambda: None)
    with pytest.raises(InputError, match=f"--address is '{address}'.*{says}"):
        with cluster.connected(address, 30):
            pass


def test_a_ray_that_fails_to_start_is_no_input_error(monkeypatch):
    def broken(**settings):
        raise RuntimeError("no room\nfor details")

    monkeypatch.setattr(cluster.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(cluster.ray, "shutdown", lambda: None)
    monkeypatch.setattr(cluster.ray, "init", broken)
    with pytest.raises(RunError, match=r"Ray could not be started: no room$"):
        with cluster.connected(None, 30):
            pass


def test_settings_of_a_private_ray_are_gone_with_it(monkeypatch):
    """A Ray that the same process starts later would tell its user nothing of its tasks."""
    for name in cluster._PRIVATE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RAY_event_stats", "1")  # the user's own
    seen = []
    monkeypatch.setattr(cluster.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(cluster.ray, "shutdown", lambda: None)
    monkeypatch.setattr(cluster.ray, "init", lambda **settings: seen.append(dict(os.environ)))
    with cluster.connected(None, 30):
        pass
    assert {**cluster._PRIVATE, "RAY_event_stats": "1"}.items() <= seen[0].items()
    left = {name: os.environ[name] for name in cluster._PRIVATE if name in os.environ}
    assert left == {"RAY_event_stats": "1"}


class Starting:
    """A Ray whose node is there when it is asked for the third time."""

    def __init__(self, address):
        self.asked = 0

    def get_all_node_info(self, timeout):
        self.asked += 1
        return {bytes.fromhex("0a0b"): None} if self.asked > 2 else {}


@pytest.mark.parametrize("client", [Starting, lambda address: None])
def test_ray_looks_for_its_node_itself_when_it_is_there_or_nobody_can_tell(client, monkeypatch):
    made = []

    def connect(address):
        made.append(client(address))
        return made[0]

    def own(address, node):
        return address, node

    monkeypatch.setattr(cluster.services, "GcsClient", connect)
    monkeypatch.setattr(cluster.services, "get_node", own)
    with cluster._impatient():
        assert cluster.services.get_node("here:1", "0a0b") == ("here:1", "0a0b")
    assert cluster.services.get_node is own
    assert made[0] is None or made[0].asked == 3


def test_a_ray_that_looks_in_another_way_is_left_alone(monkeypatch):
    monkeypatch.setattr(cluster.services, "get_node", lambda address, *, node: (address, node))
    with cluster._impatient():
        assert cluster.services.get_node("here:1", node="0a0b") == ("here:1", "0a0b")
    monkeypatch.setattr(cluster, "services", None)
    with cluster._impatient():
        pass


def test_what_ray_says_is_a_line_of_standard_error(monkeypatch, capsys):
    """Ray's own function prints to standard output, where the summary goes."""
    monkeypatch.setattr(ray._private.worker, "print_to_stdstream", None)
    cluster._hush()
    said = ["\x1b[33mThe node has been marked dead\x1b[0m. It may be late.\n\tthe end of its log"]
    said.append("WARNING: 9 worker processes have been started on node a")
    ray._private.worker.print_to_stdstream({"lines": said, "pid": "raylet"}, ignore_prefix=False)
    assert capsys.readouterr() == ("", "Ray: The node has been marked dead\n")


@pytest.mark.cluster
def test_a_running_cluster_is_never_joined_unasked(tmp_path, ray_session):
    """RAY_ADDRESS points at this session's Ray, and still the run starts one of its own."""
    address = ray.get_runtime_context().gcs_address
    before = {row["NodeID"] for row in ray.nodes()}
    base = with_placement(scenario(40), backend="ray")
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps(base.document()))
    command = [sys.executable, "-m", "raydp_sim", "run", str(file), "--json", "--out"]
    for name, extra, joins in (("own", (), False), ("joined", ("--address", address), True)):
        jobs = len(ray._private.state.jobs())
        done = subprocess.run(
            [*command, str(tmp_path / name), *extra],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "RAY_ADDRESS": address},
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert json.loads(done.stdout)["scenario"] == "small"
        assert (len(ray._private.state.jobs()) > jobs) == joins
    assert {row["NodeID"] for row in ray.nodes()} == before
    assert_identical(tmp_path / "own", tmp_path / "joined")


@pytest.mark.cluster
def test_a_process_that_has_a_ray_does_not_pretend_to_join_another(ray_session):
    with pytest.raises(InputError, match="already uses the Ray at"):
        with cluster.connected("127.0.0.1:1", 30):
            pass
