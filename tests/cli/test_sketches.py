"""`raydp-sim sketches`: schemes side by side, from runs and from what was stored of them."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from raydp_sim.cli.main import main
from raydp_sim.metrics.sketches import Compared, Setting
from raydp_sim.run import run
from raydp_sim.scenario import setting_of
from tests.conftest import scenario

IMAGES = {"kind": "synthetic-digits", "n": 200, "side": 4, "points": 50, "test": 40}


def made(task, kind, similarity, data, **more):
    return scenario(
        trust="local",
        privacy={"guarantee": "none"},
        population={"clients": 4, "data": data},
        task={"kind": task, "rounds": 6, "similarity": similarity},
        mechanism={"kind": kind, "kept": 8, "radius": 100.0},
        repeat=2,
        **more,
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sketches")
    shards = IMAGES | {"partition": {"kind": "shards"}}
    for name, one in {
        "a": made("power-iteration", "rand-k", "one", IMAGES),
        "b": made("power-iteration", "rand-proj", "avg", IMAGES),
        "c": made("power-iteration", "wangni", "avg", shards),
    }.items():
        run(one, out=folder / name)
    return folder


def call(*words):
    return CliRunner().invoke(main, ["sketches", *map(str, words)])


def test_schemes_of_one_setting_are_shown_side_by_side(runs, tmp_path):
    stored = tmp_path / "s.csv"
    found = call(
        *(runs / x for x in "abc"), "--csv", stored, "--plot", tmp_path / "s.png", "--json"
    )
    assert found.exit_code == 0, found.stderr
    (one,) = json.loads(found.stdout)  # of shards there is a single scheme
    assert (one["task"], one["split"], one["clients"], one["kept"]) == (
        "power-iteration", "iid", 4, 8,
    )  # fmt: skip
    assert one["runs"] == 2 and one["iterations"] == 6
    parts = sorted((runs / "b" / "metrics" / "errors").glob("*.parquet"))
    rows = [row for part in parts for row in pq.read_table(part).to_pylist()]
    last = [row["loss"] for row in rows if row["release"] == 5]
    assert one["values"]["Rand-Proj-Spatial"]["mean"] == pytest.approx(np.mean(last))
    assert one["values"]["Rand-Proj-Spatial"]["spread"] == pytest.approx(np.std(last, ddof=1))
    assert one["correlation"] == pytest.approx(
        np.mean([row["correlation"] for row in rows if row["release"] == 5])
    )
    assert (tmp_path / "s.png").stat().st_size > 10_000
    for measure in ("loss", "error", "distance"):
        shown = call(*(runs / x for x in "ab"), "--of", measure)
        assert shown.exit_code == 0 and f"least {measure} in" in shown.stdout
        assert call(stored, "--of", measure).stdout == shown.stdout


def test_the_distance_is_that_from_the_first_principal_component(runs):
    (one,) = json.loads(call(runs / "a", runs / "b", "--of", "distance", "--json").stdout)
    base = made("power-iteration", "rand-k", "one", IMAGES)
    off = []
    for repetition in range(2):
        held = base.population.hold(np.arange(4, dtype=np.uint32), base.stream(repetition))
        pixels = held.pool[held.index].reshape(-1, 16) / (255.0 if held.pool.dtype == "u1" else 1.0)
        middle = setting_of(base).held_out.test().features.reshape(-1, 16).mean(axis=0)
        top = np.linalg.svd(pixels - middle)[2][0]
        with np.load(runs / "a" / "model" / f"repetition-{repetition}" / "last.npz") as model:
            last = model["point"][0]
        off.append(min(np.linalg.norm(last - top), np.linalg.norm(last + top)))
    assert one["values"]["Rand-k"]["mean"] == pytest.approx(np.mean(off), rel=1e-4)


def test_what_cannot_be_compared_is_refused(runs, tmp_path):
    assert "no two schemes" in call(runs / "a").stderr
    twice = call(runs / "a", runs / "a")
    assert twice.exit_code == 2 and "two runs are of Rand-k" in twice.stderr
    plain = tmp_path / "plain"
    run("scenarios/quickstart.yaml", out=plain, placement__backend="inline", task__rounds=2)
    assert "is no run of power-iteration" in call(plain).stderr
    (plain / "summary.json").unlink()
    assert "resume" in call(plain).stderr
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    assert "was not written by" in call(tmp_path / "other.csv").stderr
    assert call(tmp_path / "none.csv").exit_code == 2


@pytest.mark.parametrize(
    ("ours", "other", "said"),
    [
        ((1.0, 0.1), (2.0, 0.1), "yes"),
        ((2.0, 0.1), (1.0, 0.1), "no"),
        ((1.0, 0.1), (1.05, 0.1), "close"),
        ((1.0, None), (1.05, None), "yes"),
    ],
)
def test_best_is_told_from_chance(ours, other, said):
    values = {"Rand-Proj-Spatial": ours, "Rand-k": other}
    one = Compared(Setting("k-means", "iid", 2, 1), 5, 10, 0.0, values)
    assert one.holds == said
    assert one.best == ("Rand-k" if said == "no" else "Rand-Proj-Spatial")
