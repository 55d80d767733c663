"""Numbers of releases as Ray's own metrics."""

from pathlib import Path

import pytest

from raydp_sim.metrics import streams
from raydp_sim.run import run
from tests.conftest import scenario


@pytest.mark.cluster
def test_a_run_sets_gauges_of_its_last_release(tmp_path: Path, ray_session: None) -> None:
    from raydp_sim.actors.ray_metrics import RayMetrics

    made = scenario(rounds=2, metrics={"ray_metrics": True}, placement={"backend": "ray"})
    folder = run(made, out=tmp_path / "run").run_dir
    assert streams.read(folder / "metrics", "releases").num_rows == 2
    shown = RayMetrics("mine")
    shown.row({"epsilon": 0.5, "batch_size": 70, "bound": "some", "epsilon_seed": None})
    assert set(shown.gauges) == {"epsilon", "batch_size"}
    assert shown.gauges["epsilon"].info["name"] == "raydp_sim_epsilon"
    assert shown.gauges["epsilon"].info["tag_keys"] == ("run",)
