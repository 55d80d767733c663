"""Sketched means and what is made of them: exact where nothing is left out, better together."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from raydp_sim.datasets.synthetic_fingerprints import SyntheticFingerprints
from raydp_sim.errors import InputError
from raydp_sim.mechanisms.sketching import spatial
from raydp_sim.mechanisms.sketching.normaliser import normaliser
from raydp_sim.mechanisms.sketching.similarity import slope
from raydp_sim.random import Stream
from raydp_sim.run import run
from raydp_sim.scenario import setting_of
from raydp_sim.tasks.sketching.samples import interpolation, vectors
from tests.conftest import scenario

NONE = {"guarantee": "none"}


def sketched(task, mechanism, data, clients, **sections):
    usual = {
        "trust": "local",
        "privacy": NONE,
        "population": {"clients": clients, "data": data},
        "task": task,
        "mechanism": {"radius": 100.0, **mechanism},
    }
    return scenario(**{**usual, **sections})


def errors(folder, column):
    parts = sorted((folder / "metrics" / "errors").glob("*.parquet"))
    return np.concatenate([pq.read_table(part)[column].to_numpy() for part in parts])


ALIKE = {"kind": "gaussian", "dimension": 64, "mean": 1.0, "sd": 0.3}


@pytest.mark.parametrize("kind", ["rand-k", "rand-proj"])
def test_alike_clients_are_better_decoded_together(tmp_path, kind):
    found = {}
    for similarity in ("one", "avg"):
        task = {"kind": "sketched-mean", "rounds": 60, "similarity": similarity}
        base = sketched(task, {"kind": kind, "kept": 6}, ALIKE, clients=8)
        run(base, out=tmp_path / similarity)
        found[similarity] = errors(tmp_path / similarity, "squared_error_cohort")
        held = base.population.hold(np.arange(8, dtype=np.uint32), base.stream(0))
        if kind == "rand-k":  # the closed form; 60 draws within five standard errors
            exact = spatial.error(held, 6, slope(similarity, 8))
            room = 5.0 * found[similarity].std() / np.sqrt(60)
            assert abs(found[similarity].mean() - exact) < room
        total = held.sum(axis=0)
        alike = total @ total / np.square(held).sum() - 1.0
        assert errors(tmp_path / similarity, "correlation") == pytest.approx(alike)
    gap = found["one"] - found["avg"]
    assert gap.mean() > 5.0 * gap.std() / np.sqrt(60)


def test_whoever_comes_is_what_is_decoded_with(tmp_path):
    task = {"kind": "sketched-mean", "rounds": 5}
    some = {"kind": "self", "probability": 0.6}
    base = sketched(
        task,
        {"kind": "rand-k", "kept": 64},
        ALIKE,
        clients=9,
        participation=some,
    )
    run(base, out=tmp_path / "run")
    # Everything is sent, so that the mean of those who came is exact, however many they were.
    assert (errors(tmp_path / "run", "squared_error_cohort") < 1e-10).all()
    (part,) = (tmp_path / "run" / "metrics" / "releases").glob("*.parquet")
    came = pq.read_table(part)["participants"].to_numpy()
    assert came.min() < 9


def test_the_normaliser_is_that_of_those_who_came(tmp_path):
    some = {"kind": "self", "probability": 0.6}
    wide = {**ALIKE, "dimension": 256}
    task = {"kind": "sketched-mean", "rounds": 3}
    base = sketched(task, {"kind": "rand-proj", "kept": 4}, wide, clients=6, participation=some)
    run(base, out=tmp_path / "run")
    (part,) = (tmp_path / "run" / "metrics" / "releases").glob("*.parquet")
    came = pq.read_table(part)["participants"].to_pylist()
    (part,) = (tmp_path / "run" / "metrics" / "decoding").glob("*.parquet")
    rows = pq.read_table(part).to_pylist()
    assert len(rows) == len(came) == 3 and min(came) < 6
    for number, row in zip(came, rows, strict=True):
        found = normaliser(number, 4, 256, slope("avg", number))
        assert row["similarity_slope"] == slope("avg", number)
        assert (row["normaliser"], row["normaliser_error"]) == found


def test_a_sketch_claims_no_privacy(tmp_path):
    task = {"kind": "sketched-mean", "rounds": 1}
    base = sketched(task, {"kind": "rand-k", "kept": 4}, ALIKE, clients=4)
    found = run(base, out=tmp_path / "run").summary["privacy"]
    assert found["epsilon"] == np.inf and found["guarantee"] == "none"
    with pytest.raises(InputError, match=r"privacy\.guarantee"):
        run(sketched(task, {"kind": "rand-k", "kept": 4}, ALIKE, clients=4, privacy={}))


def test_power_iteration_finds_the_direction_of_most_variance(tmp_path):
    data = {"kind": "synthetic-digits", "n": 500, "side": 8, "points": 50, "test": 200}
    task = {"kind": "power-iteration", "rounds": 40, "similarity": "one"}
    base = sketched(task, {"kind": "rand-k", "kept": 64}, data, clients=10)
    run(base, out=tmp_path / "run")
    with np.load(tmp_path / "run" / "model" / "last.npz") as model:
        found = model["point"][0]
    setting = setting_of(base)
    held = base.population.hold(np.arange(10, dtype=np.uint32), base.stream(0))
    samples, _ = base.task.samples(setting, held)
    rows = (samples - base.task.middle(setting)).reshape(-1, 64)
    top = np.linalg.eigh(rows.T @ rows)[1][:, -1]
    assert abs(found @ top) == pytest.approx(1.0, abs=1e-3)
    loss = errors(tmp_path / "run", "loss")
    share = np.square(rows @ top).sum() / np.square(rows).sum()
    assert loss[-1] == pytest.approx(1.0 - share, abs=0.01)
    assert loss[-1] < loss[0]


def test_k_means_of_private_sketches_is_refused_before_anything_is_sent():
    """Each client sends as many reports as there are clusters, and no account adds them up."""
    data = {"kind": "synthetic-digits", "n": 60, "side": 4, "test": 20, "points": 10}
    mechanism = {"kind": "private-sketch", "kept": 4, "epsilon_local": 1.0}
    task = {"kind": "k-means", "clusters": 3, "rounds": 2}
    with pytest.raises(InputError, match=r"mechanism\.kind is 'private-sketch'; task 'k-means'"):
        sketched(task, mechanism, data, 6, privacy={"delta": 1e-6})


def test_k_means_is_lloyds_when_everything_is_sent(tmp_path):
    data = {"kind": "synthetic-digits", "n": 400, "side": 4, "points": 100, "test": 200}
    points = {}
    for sends in ("changes", "centroids"):
        task = {"kind": "k-means", "clusters": 4, "rounds": 6, "similarity": "one", "sends": sends}
        base = sketched(task, {"kind": "rand-k", "kept": 16}, data, clients=4)
        run(base, out=tmp_path / sends)
        loss = errors(tmp_path / sends, "loss")
        assert (np.diff(loss) < 1e-9).all() and loss[-1] < loss[0]
        with np.load(tmp_path / sends / "model" / "last.npz") as model:
            points[sends] = model["point"]
    np.testing.assert_allclose(points["changes"], points["centroids"], atol=1e-5)


def test_regression_descends_to_the_least_squares(tmp_path):
    data = {"kind": "synthetic-fingerprints", "points": 200, "n": 1000, "features": 16}
    task = {"kind": "linear-regression", "rounds": 300, "similarity": "one", "step_size": 8.0}
    base = sketched(task, {"kind": "rand-k", "kept": 16}, data, clients=5)
    run(base, out=tmp_path / "run")
    rows = SyntheticFingerprints(points=200, n=1000, features=16)
    held = rows.hold(np.arange(5, dtype=np.uint32), Stream(1)).reshape(-1, 17)
    best, *_ = np.linalg.lstsq(held[:, :-1], held[:, -1], rcond=None)
    with np.load(tmp_path / "run" / "model" / "last.npz") as model:
        np.testing.assert_allclose(model["point"][0], best, atol=0.02)


def test_fingerprints_may_be_dealt_by_target():
    rows = SyntheticFingerprints(points=10, n=100, features=5, by_target=True)
    held = rows.hold(np.arange(10, dtype=np.uint32), Stream(1))
    assert (np.diff(held[..., -1].reshape(-1)) >= 0.0).all()
    with pytest.raises(InputError, match="points is 10"):
        rows.hold(np.array([10], np.uint32), Stream(1))


def test_images_are_stretched_between_their_pixels():
    ramp = np.arange(28.0)[None, None, :, None] + np.zeros((1, 1, 28, 28))
    stretched = vectors(ramp, 32).reshape(32, 32)
    inner = stretched[2:-2]
    np.testing.assert_allclose(np.diff(inner, axis=0), 28 / 32, atol=1e-12)
    np.testing.assert_allclose(interpolation(7, 7), np.eye(7))
    with pytest.raises(InputError, match=r"task\.side"):
        vectors(np.zeros((1, 2, 3)), 8)


@pytest.mark.parametrize(
    ("task", "mechanism", "says"),
    [
        (
            {"similarity": "opt"},
            {"kind": "rand-k", "kept": 2},
            "task has similarity opt; correlation is None",
        ),
        ({}, {"kind": "rand-k", "kept": 65}, "kept"),
        ({}, {"kind": "rand-proj", "kept": 0}, "kept"),
        ({}, {"kind": "rand-proj", "kept": 2, "epsilon_local": 1.0}, "epsilon_local"),
        ({"similarity": "half"}, {"kind": "rand-k", "kept": 2}, "similarity"),
        (
            {},
            {"kind": "l2", "coordinates": 4, "epsilon_local": 4.0, "rotated_radius": 3.0},
            "4 mes",
        ),
        (
            {"kind": "power-iteration", "similarity": "opt"},
            {"kind": "rand-k", "kept": 1},
            "task has similarity opt; correlation is None",
        ),
    ],
)
def test_bad_input_is_refused_by_name(tmp_path, task, mechanism, says):
    none = {} if mechanism["kind"] == "l2" else NONE
    with pytest.raises(InputError, match=says):
        base = sketched({"kind": "sketched-mean", **task}, mechanism, ALIKE, 8, privacy=none)
        run(base, out=tmp_path / "run")


def test_vectors_are_filled_up_only_if_they_may_be(tmp_path):
    odd = {**ALIKE, "dimension": 60}
    with pytest.raises(InputError, match=r"mechanism\.pad is False; 60 is no power of two"):
        sketch = {"kind": "rand-proj", "kept": 2, "pad": False}
        run(sketched({"kind": "sketched-mean"}, sketch, odd, clients=8), out=tmp_path / "run")
