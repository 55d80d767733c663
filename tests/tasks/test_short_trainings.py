"""Shipped trainings that take minutes or hours, in a short version: they play, and go that way.

How good they become is in docs/results.md; the tests of that page read what full runs left.
"""

from pathlib import Path

import numpy as np
import pytest

from raydp_sim.cli.shipped import shipped
from raydp_sim.metrics import streams
from raydp_sim.run.play import run
from raydp_sim.scenario import load, parse

SHARED = Path(__file__).parents[3] / "shared" / "data"
real = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is not there")
FRONTIER = sorted(name for name in shipped() if name.startswith("learning/frontier/"))
AWAY = sorted(name for name in shipped() if name.startswith("learning/availability-"))


@pytest.fixture(autouse=True)
def data(monkeypatch):
    monkeypatch.setenv("RAYDP_SIM_DATA", str(SHARED))


def short(name, folder, **fewer):
    """Play a shipped training with some fields changed, and return its summary."""
    out = folder / name
    return run(shipped()[f"learning/{name}"], out=out, placement__backend="inline", **fewer).summary


def rows(folder, name, stream="training"):
    return streams.read(folder / name / "metrics", stream).to_pylist()


def accuracy(summary, of="test"):
    return summary["metrics"][f"{of}_accuracy"]


@real
def test_without_privacy_the_network_learns_at_once(tmp_path):
    """More than two seconds: 9,000 gradients of the CNN."""
    found = short("vanilla", tmp_path, task__rounds=15)
    assert accuracy(found) > 0.6 and np.isinf(found["privacy"]["epsilon"])
    assert {row["fraction_clipped"] for row in rows(tmp_path, "vanilla")} == {0.0}
    # What is sent is the gradient to sixteen digits, so that only the cohort makes it random.
    assert load(shipped()["learning/vanilla"]).mechanism.kind == "bare-records"


def test_the_stand_in_of_table_4_2_goes_as_printed_and_alone_is_as_good(tmp_path):
    own = short("e4-standin", tmp_path, task__rounds=5)
    common = short("e4-fedavg-standin", tmp_path, task__rounds=5)
    assert accuracy(own, "personal") > 0.85 > 0.5 > accuracy(common, "starting")
    # Always beside it; here learning from each other gains nothing to speak of.
    assert abs(accuracy(own, "alone") - accuracy(own, "personal")) < 0.05
    (*_, beside) = rows(tmp_path, "e4-standin", "accountants")
    assert beside["epsilon_aggregate_not_proved"] == pytest.approx(3.35)
    assert own["privacy"]["epsilon"] == common["privacy"]["epsilon"] > 30.0
    proved = short("e4-proved-standin", tmp_path, task__rounds=10)
    assert 3.34 < proved["privacy"]["epsilon"] <= 3.35
    assert accuracy(proved, "starting") > 0.2


@real
def test_table_4_2_on_mnist_goes_as_printed(tmp_path):
    """Ten of the fifty clients, three of the sixty rounds. Some seconds: LeNet-5."""
    fewer = {"population__clients": 10, "task__rounds": 3}
    names = ("e4", "e4-fedavg", "e4-proved", "e4-local")
    own, common, proved, alone = (short(name, tmp_path, **fewer) for name in names)
    assert accuracy(own, "personal") > 0.6 > 0.3 > accuracy(common, "starting")
    # Who trains alone in the same way ends with the same models.
    assert accuracy(alone, "alone") == accuracy(own, "alone") > 0.5
    assert proved["privacy"]["epsilon"] <= 3.35 < own["privacy"]["epsilon"]
    assert own["privacy"]["epsilon"] == common["privacy"]["epsilon"]


def test_the_stand_in_of_femnist_has_personal_models_above_the_common_one(tmp_path):
    """Some seconds: 5,160 characters of 198 writers are looked at in each test."""
    own = short("e5-standin", tmp_path, task__rounds=12, task__evaluate_every=12)
    common = short("e5-fedavg-standin", tmp_path, task__rounds=12, task__evaluate_every=12)
    assert accuracy(own, "personal") > 0.12 > 0.08 > accuracy(common, "starting")
    assert own["privacy"]["participation"]["mean"] == pytest.approx(12 / 3)


def test_many_messages_learn_at_the_epsilon_that_was_asked_for(tmp_path):
    found = short("mms", tmp_path, task__rounds=6)
    assert accuracy(found) > 0.25 and 3.99 < found["privacy"]["epsilon"] <= 4.0
    assert "replace one client" in found["privacy"]["assumption"]


@real
@pytest.mark.parametrize("name", FRONTIER)
def test_a_mechanism_of_the_frontier_plays(name, tmp_path):
    """A budget in the place of its target, whose noise takes seconds to find."""
    document = load(shipped()[name]).document()
    mechanism = {key: value for key, value in document["mechanism"].items() if key != "target"}
    known = {"epsilon": 1.0, "delta": 1e-7} if name.endswith("central") else {"epsilon_local": 5.0}
    document["mechanism"] = mechanism | known
    document["participation"]["sampled"], document["task"]["rounds"] = 32, 2
    document["shuffle"]["min_batch"] = 1
    document["placement"]["backend"] = "inline"
    found = run(parse(document), out=tmp_path / "run").summary
    assert found["communication"]["reports"] == 64 and 0.0 <= accuracy(found) <= 1.0
    trained = streams.read(tmp_path / "run" / "metrics", "training").to_pylist()
    assert len(trained) == 2 and trained[0]["training_loss"] == pytest.approx(np.log(10), abs=0.2)


@real
@pytest.mark.parametrize("name", AWAY)
def test_who_comes_decides_what_forms(name, tmp_path):
    """A fiftieth of the clients and of each batch."""
    sized = "sampled" if name.endswith("dropout") else "batch"
    fewer = {f"participation__{sized}": 100, "shuffle__min_batch": 40, "task__rounds": 4}
    one_each = {"population__clients": 1200, "population__data__points": 1}
    found = short(name.partition("/")[2], tmp_path, **one_each, **fewer)
    released = rows(tmp_path, name.partition("/")[2], "releases")
    assert len(released) + found["metrics"]["withheld"] == 4 and len(released) >= 2
    stale = max(row["stalest"] for row in released)
    if name.endswith("stragglers"):
        assert stale >= 1
    if name.endswith("dropout"):
        assert max(row["participants"] for row in released) < 80
    if name.endswith("absence"):
        (*_, last) = rows(tmp_path, name.partition("/")[2])
        assert last["label_skew"] > 0.08


# What a fifth or less of a paper's experiment comes to; one or two CPU-minutes each.


@real
@pytest.mark.long
@pytest.mark.parametrize(("name", "rounds"), [("e1", 60), ("e3", 300), ("dss", 60)])
def test_a_papers_experiment_has_begun_to_learn(name, rounds, tmp_path):
    """A model that guesses has 10 %."""
    assert accuracy(short(name, tmp_path, task__rounds=rounds)) > 0.3


@real
@pytest.mark.long
def test_scaling_gradients_down_learns_less_than_clamping_them(tmp_path):
    radial, clamped = (short(name, tmp_path, task__rounds=60) for name in ("e2-radial", "e2"))
    assert accuracy(radial) < accuracy(clamped) - 0.15
    assert radial["privacy"]["epsilon"] == clamped["privacy"]["epsilon"]
