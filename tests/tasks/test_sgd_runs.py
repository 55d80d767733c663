"""CLDP-SGD and DSS-SGD: what a run leaves behind, however it ends."""

import subprocess
import sys
import time

import numpy as np
import pytest
import yaml

from raydp_sim.errors import RunError
from raydp_sim.metrics import streams
from raydp_sim.models.linear import Linear
from raydp_sim.run.play import prepare, reopen, run
from raydp_sim.scenario import parse
from raydp_sim.tasks.learning.evaluation import score
from raydp_sim.tasks.learning.samples import gradients
from tests.tasks.sgd_scenarios import BASE, changed, dealt, tiny


def test_models_are_named_tensors_and_the_best_is_the_one_of_the_validation_split(tmp_path):
    population = {
        **BASE["population"],
        "data": {**BASE["population"]["data"], "n": 200, "validation": 80},
    }
    scenario = changed(population=population, task={"rounds": 8, "evaluate_every": 1})
    result = run(scenario, out=tmp_path / "run")
    with np.load(tmp_path / "run" / "model" / "last.npz") as last:
        assert {name: last[name].shape for name in last.files} == {
            "weight": (10, 16),
            "bias": (10,),
        }
    rows = streams.read(tmp_path / "run" / "metrics", "learning").to_pylist()
    best = max(rows, key=lambda row: (row["validation_accuracy"], -row["round"]))
    with np.load(tmp_path / "run" / "model" / "best.npz") as kept:
        theta = np.concatenate([kept["weight"].ravel(), kept["bias"]])
    held_out = scenario.population.data.held_out()
    network = Linear().network((4, 4), 10)
    assert score(network, theta, held_out.validation()).accuracy == best["validation_accuracy"]
    assert "public" in result.summary["learning"]["validation"]


def test_a_run_that_is_stopped_in_mid_training_and_resumed_ends_with_the_same_bits(tmp_path):
    scenario = changed(task={"rounds": 5, "optimizer": {"kind": "fedadam"}})
    run(scenario, out=tmp_path / "whole")
    rows = prepare(scenario, out=tmp_path / "cut").play()
    next(rows), next(rows)
    rows.close()
    for _ in reopen(tmp_path / "cut").play():
        pass
    for name in ("model/last.npz",):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes()
    for stream in ("learning", "training", "releases"):
        one, two = (streams.read(tmp_path / f / "metrics", stream) for f in ("whole", "cut"))
        assert one.equals(two)


def test_a_run_that_is_killed_in_mid_training_ends_with_the_same_bits(tmp_path):
    scenario = changed(task={"rounds": 40, "evaluate_every": 7})
    (tmp_path / "sgd.yaml").write_text(yaml.safe_dump(scenario.document()))
    run(scenario, out=tmp_path / "whole")
    command = [sys.executable, "-m", "raydp_sim", "run", "sgd.yaml", "--out", "cut"]
    playing = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    place = tmp_path / "cut" / "checkpoints"
    while playing.poll() is None and not any(int(p.stem[7:]) >= 5 for p in place.glob("*.npz")):
        time.sleep(0.01)
    playing.kill()
    playing.wait()
    assert not (tmp_path / "cut" / "summary.json").exists()
    for _ in reopen(tmp_path / "cut").play():
        pass
    one, two = ((tmp_path / name / "model" / "last.npz").read_bytes() for name in ("whole", "cut"))
    assert one == two
    rows = [streams.read(tmp_path / name / "metrics", "learning") for name in ("whole", "cut")]
    assert rows[0].equals(rows[1])


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.usefixtures("ray_session")
def test_a_run_on_ray_ends_with_the_same_bits(tmp_path):
    scenario = changed(population=dealt(3), task={"sampled_points": 2})
    run(scenario, out=tmp_path / "one")
    document = scenario.document()
    document["placement"] |= {"backend": "ray", "clients_per_actor": 50}
    run(parse(document), out=tmp_path / "two")
    one, two = ((tmp_path / name / "model" / "last.npz").read_bytes() for name in ("one", "two"))
    assert one == two


def test_a_run_stops_early_when_nothing_gets_better_and_all_of_its_plan_is_charged(tmp_path):
    population = {
        **BASE["population"],
        "data": {**BASE["population"]["data"], "n": 200, "validation": 80},
    }
    task = {"rounds": 60, "evaluate_every": 1, "patience": 2, "step_size": 1e-6}
    result = run(changed(population=population, task=task), out=tmp_path / "run")
    assert result.summary["metrics"]["releases"] == 3
    assert result.summary["privacy"]["epsilon"] == result.summary["privacy"]["planned"]
    assert "ended_early" not in result.summary


def counted(network, theta, samples):
    return {"samples": float(len(samples.labels)), "size": float(network.size)}


def failing(network, theta, samples):
    raise KeyError("no")


def test_a_callback_adds_columns(tmp_path):
    run(changed(task={"callback": "tests.tasks.test_sgd_runs:counted"}), out=tmp_path / "run")
    rows = streams.read(tmp_path / "run" / "metrics", "learning").to_pylist()
    assert [(row["samples"], row["size"]) for row in rows] == [(50.0, 170.0)] * 2
    with pytest.raises(RunError, match="failing failed"):
        run(changed(task={"callback": "tests.tasks.test_sgd_runs:failing"}), out=tmp_path / "other")


def test_training_that_runs_away_stops_with_its_round_and_keeps_the_last_good_model(tmp_path):
    wild = changed(
        task={"rounds": 20, "step_size": {"kind": "piecewise", "values": [0.1, 1e7], "until": [2]}}
    )
    with pytest.raises(
        RunError, match=r"after round 3 a parameter is .*step size 1e\+07"
    ) as caught:
        run(wild, out=tmp_path / "run")
    assert not caught.value.resumable
    assert streams.read(tmp_path / "run" / "metrics", "releases").num_rows == 2
    with np.load(tmp_path / "run" / "model" / "last.npz") as last:
        assert np.abs(last["weight"]).max() < 100.0


def test_gradients_that_are_no_numbers_never_reach_a_randomizer():
    held, theta, network = tiny()
    for bad in (np.float32("nan"), np.float32(3e38)):
        broken = theta.copy()
        broken[0] = bad
        with np.errstate(all="ignore"), pytest.raises(RunError, match="in round 8"):
            gradients(network, broken, held, np.zeros((3, 1), np.int64), 7)
