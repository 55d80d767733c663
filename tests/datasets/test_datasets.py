"""Data sets give each client its rows, whoever asks and however many at a time."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from raydp_sim.datasets import DATASETS
from raydp_sim.datasets.categorical import Categorical
from raydp_sim.datasets.file import File
from raydp_sim.datasets.gaussian import Gaussian
from raydp_sim.errors import InputError
from raydp_sim.random import Stream

IDS = np.arange(400, dtype=np.uint32)


@pytest.mark.parametrize(
    "section",
    [
        {"kind": "gaussian", "dimension": 5, "clip": 1.0},
        {"kind": "gaussian", "dimension": 130, "clip": 2.0, "norm": "l2", "mean": 0.5},
        {"kind": "gaussian", "dimension": 2, "mean": [0.5, -0.5], "sd": 0.1},
        {"kind": "bernoulli", "probability": 0.2, "dimension": 3},
        {"kind": "categorical", "categories": 50},
        {"kind": "categorical", "frequencies": [0.5, 0.2, 0.3]},
        {"kind": "samples", "samples": 7, "dimension": 3, "mean": [0.0, 1.0, 2.0]},
        {"kind": "samples", "samples": 700, "clip": 2.0},
        {"kind": "samples", "samples": 9, "dimension": 3, "mean": [0.0, 1.0, 2.0], "clip": 1.0},
    ],
)
def test_a_clients_data_do_not_depend_on_who_shares_the_call(section):
    data, stream = DATASETS.parse(section), Stream(4).at("data")
    whole = data.values(IDS, stream)
    assert whole.shape == (400, data.width())
    for block in (slice(0, 1), slice(3, 10), slice(390, 400), np.array([7, 300, 20])):
        assert np.array_equal(data.values(IDS[block], stream), whole[block])


def test_gaussian_clips_into_the_ball_asked_for():
    stream = Stream(4)
    cube = Gaussian(dimension=8, clip=0.5).values(IDS, stream)
    ball = Gaussian(dimension=8, clip=0.5, norm="l2").values(IDS, stream)
    assert np.abs(cube).max() == 0.5
    assert np.linalg.norm(ball, axis=1).max() <= 0.5 + 1e-12


@pytest.mark.parametrize(
    ("data", "shares"),
    [
        (Categorical(categories=4), np.array([12, 6, 4, 3]) / 25),
        (Categorical(categories=5, exponent=0.0), np.full(5, 0.2)),
        (Categorical(categories=3, exponent=2.0), np.array([36, 9, 4]) / 49),
        (Categorical(frequencies=[0, 3, 0, 1, 0]), np.array([0, 3, 0, 1, 0]) / 4),
    ],
)
def test_categories_have_their_shares(data, shares):
    """Chi-square over 100,000 clients: a false alarm has probability 1e-8."""
    drawn = data.values(np.arange(100_000, dtype=np.uint32), Stream(5).at("data"))
    assert drawn.shape == (100_000, data.width()) and data.width() == 1
    assert data.shares == pytest.approx(shares)
    seen = np.bincount(drawn[:, 0].astype(int), minlength=len(shares))
    assert len(seen) == len(shares) and not seen[shares == 0].any()
    expected = 100_000 * shares[shares > 0]
    statistic = ((seen[shares > 0] - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, len(expected) - 1) > 1e-8


def test_rounding_draws_no_category_of_share_0():
    data = Categorical(frequencies=[0.1] * 10 + [0.0])
    assert data.ends()[8] < 1.0 and (data.ends()[9:] == 1.0).all()
    assert np.cumsum(data.shares)[9] < 1.0, "the sum rounds down, so the end had to be set"
    assert data == Categorical(frequencies=[0.1] * 10 + [0.0])


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({}, "give categories, or frequencies"),
        ({"categories": 1}, "greater than or equal to 2"),
        ({"categories": 3, "frequencies": [0.5, 0.5]}, "frequencies has 2 numbers for 3 categ"),
        ({"frequencies": [1.0]}, "frequencies has 1 numbers for at least 2"),
        ({"frequencies": [0.0, 0.0]}, "add up to 0"),
        ({"frequencies": [1e308, 1e308]}, "overflow"),
        ({"frequencies": [0.5, -0.5]}, "greater than or equal to 0"),
        ({"frequencies": [0.5, float("nan")]}, "frequencies"),
        ({"frequencies": [0.5, 0.5], "exponent": 1.0}, "exponent is 1; leave it out"),
        ({"categories": 5, "exponent": -1.0}, "greater than or equal to 0"),
    ],
)
def test_categories_that_make_no_sense_are_refused(section, says):
    with pytest.raises(ValueError, match=says):
        Categorical.model_validate(section)


@pytest.mark.parametrize("ending", ["npy", "csv", "parquet"])
def test_a_file_gives_its_rows(ending, tmp_path):
    table = np.random.default_rng(1).normal(size=(10, 3)).round(6)
    path = tmp_path / f"data.{ending}"
    if ending == "npy":
        np.save(path, table)
    elif ending == "csv":
        np.savetxt(path, table, delimiter=",", header="a,b,c", comments="", fmt="%.6f")
    else:
        pq.write_table(pa.table({name: table[:, i] for i, name in enumerate("abc")}), path)
    data = File(path=f"data.{ending}").located(tmp_path)
    assert (data.width(), data.rows()) == (3, 10)
    assert np.allclose(data.values(np.array([4, 2], np.uint32), Stream(0)), table[[4, 2]])


@pytest.mark.parametrize(
    "name,content,says",
    [
        ("gone.npy", None, "no such file"),
        ("bad.npy", b"not an array", "cannot be read"),
        ("text.csv", b"a,b\nx,y\n", "every column must be a number"),
        ("empty.csv", b"a,b\n", r"shape is \(0, 2\)"),
        ("data.txt", b"1,2\n", "not known"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(name, content, says, tmp_path, monkeypatch):
    # A long path would be shortened in the message.
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"population.data.path is .*{name}.*{says}"):
        File(path=name).located(Path()).width()


def test_a_one_dimensional_array_is_refused(tmp_path):
    np.save(tmp_path / "flat.npy", np.arange(5.0))
    with pytest.raises(InputError, match="must be \\(clients, dimension\\)"):
        File(path="flat.npy").located(tmp_path).rows()
