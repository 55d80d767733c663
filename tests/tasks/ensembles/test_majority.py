"""Majorities on the pipeline: what is released, charged and scored, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from raydp_sim.cli.main import main
from raydp_sim.cli.shipped import shipped
from raydp_sim.errors import InputError
from raydp_sim.mechanisms.ensembles.error import says_one
from raydp_sim.metrics import streams
from raydp_sim.privacy.events import EnsembleRelease
from raydp_sim.privacy.spent import spent
from raydp_sim.run import run
from raydp_sim.scenario import bound_mechanism, load
from tests.conftest import assert_identical, scenario, with_placement

BALLOTS = {"kind": "ballots", "questions": 30, "accuracy": 0.7, "agreement": 5.0}
COINS = {"kind": "bernoulli", "probability": 0.5}
DARRM = {"kind": "darrm", "vote_epsilon": 0.2, "epsilon": 0.6}


def voting(rounds=30, voters=11, data=BALLOTS, mechanism=DARRM, **sections):
    usual = {
        "trust": "central",
        "population": {"clients": voters, "data": data},
        "task": {"kind": "majority", "rounds": rounds},
        "mechanism": mechanism,
        "privacy": {"delta": 1e-3},
    }
    return scenario(**{**usual, **sections})


def read(folder: Path, stream: str):
    return streams.read(folder / "metrics", stream)


def test_labels_are_released_scored_and_charged(tmp_path) -> None:
    base = voting()
    result = run(base, out=tmp_path / "run")
    folder, summary = tmp_path / "run", result.summary
    labels = read(folder, "labels")["label"].to_numpy()
    votes = read(folder, "votes")
    tally = votes["tally"].to_numpy()
    assert set(labels) <= {0, 1} and len(labels) == 30
    assert streams.visibility(votes.schema) == "simulation-only"
    assert streams.visibility(read(folder, "labels").schema) == "released"
    held = base.population.hold(np.arange(11, dtype=np.uint32), base.stream(0))
    right, majority = held[0, 1, :30], tally > 5
    metrics = summary["metrics"]
    assert metrics["accuracy"] == pytest.approx((labels == right).mean())
    assert metrics["majority_accuracy"] == pytest.approx((majority == right).mean())
    assert metrics["disagreement"] == pytest.approx((labels != majority).mean())
    law = says_one(bound_mechanism(base).function)
    flips = np.where(majority, 1.0 - law[tally], law[tally])
    assert metrics["expected_disagreement"] == pytest.approx(flips.mean())
    assert summary["estimate"]["values"] == labels.tolist()
    assert summary["truth"]["population"] == right.tolist()
    privacy = summary["privacy"]
    assert privacy["epsilon"] == pytest.approx(spent([(EnsembleRelease(0.6), 30)], 1e-3).epsilon)
    assert privacy["epsilon"] < 30 * 0.6 and privacy["bound"] == "general-composition"
    assert "which may change every vote" in privacy["assumption"]


def test_noise_on_the_label_is_the_only_difference_between_ways(tmp_path) -> None:
    """The same votes are cast whatever is done with them."""
    tallies = []
    for noise in ("full", "subsampling", "double-subsampling", "constant"):
        base = voting(rounds=6, mechanism={**DARRM, "noise": noise})
        run(base, out=tmp_path / noise)
        tallies.append(read(tmp_path / noise, "votes")["tally"].to_pylist())
    assert all(each == tallies[0] for each in tallies)


@pytest.mark.parametrize(
    ("given", "epsilon"),
    [
        ({"votes": "fixed"}, 11 * 0.2),
        ({"votes": "fixed", "records": "disjoint"}, 0.2),
        ({"records": "disjoint"}, None),
    ],
)
def test_what_is_charged_in_all(tmp_path, given, epsilon) -> None:
    base = voting(rounds=8, mechanism={**DARRM, **given})
    found = run(base, out=tmp_path / "run").summary["privacy"]
    whole = spent([(EnsembleRelease(0.2), 8)], 1e-3).epsilon if epsilon is None else epsilon
    assert found["epsilon"] == pytest.approx(whole, rel=0.01)
    assert found["planned"] == pytest.approx(found["epsilon"])


def test_gnmax_is_charged_as_normal_noise_and_looks_at_votes_in_simulation_only(tmp_path) -> None:
    mechanism = {"kind": "gnmax", "epsilon": 0.6, "delta": 1e-5}
    result = run(voting(rounds=10, mechanism=mechanism), out=tmp_path / "run")
    assert result.summary["privacy"]["bound"] == "pld-noise"
    assert "one client's data" in result.summary["privacy"]["assumption"]
    errors = read(tmp_path / "run", "errors")
    assert streams.visibility(errors.schema) == "simulation-only"
    seen, usual = (errors[f"{kind}divergence"].to_numpy() for kind in ("data_dependent_", ""))
    assert (seen == usual).all()  # eleven voters are too few for it to apply


def test_absent_voters_are_coins_and_the_guarantee_stays(tmp_path) -> None:
    sure = {"kind": "ballots", "questions": 60, "accuracy": 0.999999}
    mechanism = {**DARRM, "epsilon": 2.2}  # the majority itself
    some = {"clients": 11, "data": sure, "dropout": 0.3}
    late = {"kind": "all", "deadline": 60.0}
    base = voting(rounds=60, mechanism=mechanism, population=some, participation=late)
    result = run(base, out=tmp_path / "run")
    votes = read(tmp_path / "run", "votes")["votes"].to_numpy()
    assert votes.min() < 11
    # Whoever was there: a record is behind every vote, so all labels are charged.
    whole = spent([(EnsembleRelease(2.2), 60)], 1e-3).epsilon
    assert result.summary["privacy"]["epsilon"] == pytest.approx(whole)
    # All who vote are right; half of the others are, by coins.
    assert result.summary["metrics"]["accuracy"] > 0.9


@pytest.mark.cluster
def test_ray_gives_what_one_process_gives(tmp_path) -> None:
    base = voting(rounds=4)
    run(base, out=tmp_path / "inline")
    run(with_placement(base, backend="ray", clients_per_actor=4), out=tmp_path / "ray")
    assert_identical(tmp_path / "inline", tmp_path / "ray")


def test_the_story_ships_and_plays(tmp_path) -> None:
    story = load(shipped()["majority/clinics"], ["placement.backend=inline"])
    found = run(story, out=tmp_path / "run").summary
    assert found["metrics"]["accuracy"] > 0.85
    assert found["privacy"]["epsilon"] < 50 * 0.15


def test_votes_of_a_file_with_and_without_the_truth(tmp_path) -> None:
    lines = ["1,0,0.5", "1,1,0.5", "1,0,0.5"]
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(lines))
    mechanism = {**DARRM, "epsilon": 0.6}
    data = {"kind": "ballots", "path": str(path)}
    base = voting(rounds=3, voters=3, data=data, mechanism=mechanism)
    metrics = run(base, out=tmp_path / "unknown").summary["metrics"]
    assert "accuracy" not in metrics and metrics["disagreement"] >= 0.0
    path.write_text("\n".join([*lines, "1,0,1"]))
    base = voting(rounds=3, voters=3, data={**data, "truth": True}, mechanism=mechanism)
    run(base, out=tmp_path / "known")
    # Three times 0.2 is all votes: the majority is told as it is.
    assert read(tmp_path / "known", "labels")["label"].to_pylist()[:2] == [1, 0]
    assert read(tmp_path / "known", "votes")["tally"].to_pylist()[:2] == [3, 1]


# Eleven votes of 0.2 cost more than that; five releases of 0.3 do not.
TARGET = {"kind": "darrm", "vote_epsilon": 0.2, "target": {"epsilon": 1.5, "delta": 1e-6}}


def document(**changes):
    made = {
        "name": "bad",
        "trust": "central",
        "population": {"clients": 11, "data": BALLOTS},
        "task": {"kind": "majority", "rounds": 5},
        "mechanism": DARRM,
    }
    return {**made, **changes}


def ballots(tmp_path, text: str):
    (tmp_path / "votes.csv").write_text(text)
    return {"clients": 3, "data": {"kind": "ballots", "path": str(tmp_path / "votes.csv")}}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"population": {"clients": 10, "data": BALLOTS}}, "clients is 10; it must be odd"),
        ({"mechanism": {**DARRM, "epsilon": 0.1}}, "epsilon / vote_epsilon is 0.5"),
        ({"mechanism": {**DARRM, "epsilon": 3.0}}, "epsilon / vote_epsilon is 15"),
        ({"mechanism": {**DARRM, "epsilon": 0.5, "noise": "subsampling"}}, "whole number of votes"),
        ({"mechanism": {**DARRM, "vote_delta": 1e-3, "delta": 1e-4}}, "delta is 0.0001"),
        ({"mechanism": {**DARRM, "vote_epsilon": 0}}, "mechanism.vote_epsilon is 0"),
        ({"mechanism": {**DARRM, "noise": "given", "gamma": [0.5] * 11}}, "gamma has 11 numbers"),
        (
            {"mechanism": {**DARRM, "noise": "given", "gamma": [*[0.1] * 6, *[0.2] * 6]}},
            "gamma is not symmetric",
        ),
        ({"mechanism": {**DARRM, "noise": "given", "gamma": [1.5] * 12}}, "in [0, 1]"),
        (
            {
                "mechanism": {
                    **DARRM,
                    "noise": "double-subsampling",
                    "vote_delta": 1e-9,
                    "delta": 3e-9,
                }
            },
            "proved for votes of pure privacy only",
        ),
        ({"mechanism": {"kind": "central-laplace", "radius": 1.0, "epsilon": 1.0}}, "darrm"),
        ({"task": {"kind": "majority", "rounds": 31}}, "task.rounds is 31"),
        ({"trust": "local"}, "trust is 'local'"),
        (
            {"mechanism": {**TARGET, "votes": "fixed"}},
            "mechanism.target.epsilon is 1.5; fixed votes cost (2.2, 0)",
        ),
        ({"participation": {"kind": "asynchronous", "batch": 5, "every": 10.0}}, "a late vote"),
        ({"population": {"clients": 11, "data": COINS}}, "needs votes"),
    ],
)
def test_bad_input_ends_with_exit_code_2_and_names_the_field(tmp_path, changes, says) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(yaml.safe_dump(document(**changes)))
    found = CliRunner().invoke(main, ["validate", str(path)])
    assert found.exit_code == 2, found.output
    assert says in " ".join(found.output.split())


def test_votes_outside_of_0_and_1_are_refused(tmp_path) -> None:
    path = tmp_path / "bad.yaml"
    population = ballots(tmp_path, "1,0\n0,2\n1,1\n")
    changes = {"population": population, "task": {"kind": "majority", "rounds": 2}}
    path.write_text(yaml.safe_dump(document(**changes)))
    found = CliRunner().invoke(main, ["validate", str(path)])
    assert found.exit_code == 2
    assert "voter 1 holds 2 at question 1" in " ".join(found.output.split())


def test_a_summary_is_plain_json(tmp_path) -> None:
    run(voting(rounds=3), out=tmp_path / "run")
    json.loads((tmp_path / "run" / "summary.json").read_text())


def test_ballots_err_together_where_questions_differ() -> None:
    """The spread of tallies is that of a Beta-binomial law; 2,000 questions, five deviations."""
    data = {**BALLOTS, "questions": 2000, "agreement": 3.0}
    base = voting(rounds=2000, data=data)
    held = base.population.hold(np.arange(11, dtype=np.uint32), base.stream(0))
    hit = np.where(held[0, 1] == 1.0, held[0, 0], 1.0 - held[0, 0])
    assert hit.mean() == pytest.approx(0.7, abs=5 * hit.std() / np.sqrt(2000))
    assert hit.var() == pytest.approx(0.7 * 0.3 / 4.0, rel=0.15)
    with pytest.raises(InputError, match="questions and accuracy"):
        voting(data={"kind": "ballots"})
