"""What is predicted before a run, held against what the run then measures."""

import functools
import json
import math
import time

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from raydp_sim import run
from raydp_sim.cli.main import main
from raydp_sim.cli.shipped import shipped
from raydp_sim.cli.waiting import waiting
from raydp_sim.run.advice import warning
from raydp_sim.run.prediction import predict
from raydp_sim.scenario import load, parse
from raydp_sim.scenario.accounting import planned_releases
from raydp_sim.scenario.batches import expected_batch, rarely_below
from raydp_sim.scenario.bound import bound_mechanism

# Smaller populations, so that each plays in a moment.
QUICK = {
    "central-gaussian": {"population__clients": 200, "repeat": 1, "task__rounds": 40},
    "frequencies": {"population__clients": 2000, "repeat": 1, "task__rounds": 10},
    "items": {"task__rounds": 40},
    "local-laplace": {"population__clients": 500, "task__rounds": 100},
    "one-bit": {"population__clients": 1000, "task__rounds": 60},
    "quickstart": {"task__rounds": 20},
    "split-and-mix": {
        "population__clients": 1000,
        "shuffle__min_batch": 800,
        "task__rounds": 60,
    },
    "vectors-l2": {
        "population__clients": 5000,
        "shuffle__min_batch": 250,
        "task__rounds": 10,
        "repeat": 1,
    },
    "week": {"population__clients": 5000, "task__rounds": 20},
    "stress/steady": {"task__rounds": 40},
}


def within(measured: float, expected: float, squares: int) -> bool:
    """Say whether a mean of squares of normals may have this expectation.

    A weighted sum of squared normals is spread no wider than one of T squares of one weight,
    chi-square with T degrees, if no weight is above 1/T of all of them. Each side is missed with
    probability 1e-7; 3% are for the batch and the sample of clients, which vary.
    """
    low, high = stats.chi2.ppf([1e-7, 1.0 - 1e-7], squares) / squares
    return expected * low * 0.97 <= measured <= expected * high * 1.03


@pytest.mark.parametrize("name", QUICK)
def test_the_error_of_a_release_is_as_predicted(name, tmp_path):
    overrides = {"placement__backend": "inline", **QUICK[name]}
    result = run(shipped()[name], out=tmp_path / "run", **overrides)
    found = result.summary["prediction"]
    assert found["is"] == "exact"
    # In no direction is the noise above 4 times that of the average coordinate.
    width = bound_mechanism(result.scenario).domain.dimension
    squares = len(result.metrics) * max(1, width // 4)
    assert squares >= 40
    assert within(found["release"]["measured"], found["release"]["expected"], squares)
    batch = np.mean(result.metrics["batch_size"].to_numpy())
    assert batch == pytest.approx(found["batch"], rel=0.05)


def test_a_bound_is_one(tmp_path):
    overrides = {"placement__backend": "inline", "repeat": 20}
    found = run(shipped()["user-level-mean"], out=tmp_path / "run", **overrides).summary
    release = found["prediction"]["release"]
    assert found["prediction"]["is"] == "bound"
    assert release["measured"] <= release["expected"] * stats.chi2.isf(1e-7, 20) / 20


def test_the_error_of_the_run_is_as_predicted(tmp_path):
    """Where a tenth is drawn in each of 4 releases: noise, and who takes part, both count."""
    document = {
        "name": "few",
        "repeat": 10,
        "trust": "local",
        "population": {
            "clients": 400,
            "data": {"kind": "gaussian", "dimension": 40, "sd": 0.02},
        },
        "participation": {"kind": "uniform", "sampled": 40},
        "task": {"kind": "mean", "rounds": 4},
        "mechanism": {
            "kind": "laplace",
            "radius": 1.0,
            "epsilon_local": 140.0,
            "on_out_of_range": "clip",
        },
        "placement": {"backend": "inline"},
    }
    found = run(document, out=tmp_path / "run").summary["prediction"]
    measured = found["run"]["measured"]
    # 40 coordinates that are independent and alike, 10 times.
    assert within(measured, found["run"]["expected"], 400)
    # Neither the noise alone nor that of one release would do.
    assert not within(measured, found["release"]["expected"] / 4, 400)
    assert not within(measured, found["release"]["expected"], 400)


def test_clipping_is_predicted(tmp_path):
    document = {
        "name": "far",
        "population": {"clients": 300, "data": {"kind": "gaussian", "dimension": 2, "mean": 2.0}},
        "task": {"kind": "mean", "rounds": 20},
        "mechanism": {
            "kind": "laplace",
            "radius": 1.0,
            "epsilon_local": 20.0,
            "on_out_of_range": "clip",
        },
        "placement": {"backend": "inline"},
    }
    found = run(document, out=tmp_path / "run").summary["prediction"]
    # Almost all of it is the bias, of which everyone's data are known beforehand.
    assert found["release"]["measured"] == pytest.approx(found["release"]["expected"], rel=0.05)
    assert found["release"]["expected"] > 1.0


@pytest.mark.parametrize(
    "participation,population,low",
    [
        ({"kind": "self", "probability": 0.3}, {}, 0.9),
        ({"kind": "uniform", "sampled": 300, "deadline": 3.0}, {"dropout": 0.3}, 0.9),
        ({"kind": "over-selected", "sampled": 300, "deadline": 1.0}, {"dropout": 0.1}, 0.9),
        ({"kind": "asynchronous", "batch": 300, "every": 100.0}, {}, 1.0),
    ],
)
def test_the_batch_expected_is_that_which_forms(participation, population, low, tmp_path):
    document = {
        "name": "late",
        "population": {
            "clients": 2000,
            "data": {"kind": "bernoulli", "probability": 0.3},
            "availability": {"kind": "bernoulli", "probability": 0.5, "period": 10.0},
            "latency": {"kind": "lognormal", "median": 1.0, "sigma": 1.0},
            **population,
        },
        "participation": participation,
        "task": {"kind": "mean", "rounds": 10},
        "mechanism": {"kind": "2rr", "epsilon_local": 1.0},
        "placement": {"backend": "inline"},
    }
    result = run(document, out=tmp_path / "run")
    ask = planned_releases(result.scenario, bound_mechanism(result.scenario))[0].ask
    expected = expected_batch(result.scenario, ask)
    # Ten batches of coins: 10% are more than 5 standard deviations.
    batch = np.mean(result.metrics["batch_size"].to_numpy())
    assert low * expected <= batch <= expected / low


@pytest.mark.parametrize("expected", [1, 30, 40, 100, 144, 150, 1000, 10**6])
def test_a_batch_of_coins_is_hardly_ever_below_the_least(expected):
    least = rarely_below(expected)
    assert 1 <= least <= expected
    assert least == 1 or stats.poisson.cdf(least - 1, expected) <= math.exp(-18.0)


@functools.cache
def calibrated(text):
    return parse(json.loads(text))


def phones(**sections):
    """A scenario; each is calibrated once for all tests here."""
    document = {
        "name": "phones",
        "population": {
            "clients": 1000,
            "data": {"kind": "bernoulli", "probability": 0.3},
            "availability": {"kind": "bernoulli", "probability": 0.5},
        },
        "mechanism": {"kind": "2rr", "target": {"epsilon": 0.2, "delta": 1e-6}},
    }
    return calibrated(json.dumps({**document, **sections}))


def test_a_target_counts_on_half_of_the_batch_expected():
    found = phones()
    assert found.shuffle.min_batch == 250
    assert found.document()["shuffle"]["min_batch"] == 250
    silent = predict(phones(shuffle={"min_batch": 1}))
    assert silent.useless and predict(found).expected.run < 0.2 * silent.expected.run


@pytest.mark.parametrize(
    "sections",
    [
        {"shuffle": {"shufflers": 2, "min_batch": 1}},
        {"trust": "local"},
        {"mechanism": {"kind": "2rr", "epsilon_local": 1.0}},
        {"mechanism": {"kind": "2rr", "target": {"epsilon": 1.0}}},
    ],
)
def test_nothing_is_derived_where_it_is_given_or_of_no_use(sections):
    assert phones(**sections).shuffle.min_batch == 1


def test_a_useless_run_is_warned_of_with_a_setting_that_helps():
    silent = phones(shuffle={"min_batch": 1})
    said = warning(silent, predict(silent))
    assert said is not None and "set shuffle.min_batch to 250 (then " in said
    assert warning(phones(), predict(phones())) is None


@pytest.mark.parametrize(
    "mechanism,fields",
    [
        ({"epsilon_local": 0.02}, ["population.clients", "mechanism.epsilon_local"]),
        ({"target": {"epsilon": 0.01, "delta": 1e-6}}, ["mechanism.target.epsilon"]),
    ],
)
def test_every_setting_that_is_named_helps_by_itself(mechanism, fields):
    useless = phones(mechanism={"kind": "2rr", **mechanism})
    said = warning(useless, predict(useless)) or ""
    for field in fields:
        value = said.partition(f"{field} to ")[2].split()[0].replace(",", "")
        changed = parse(useless.document(), [f"{field}={value}"])
        assert not predict(changed).useless, said


def test_a_target_that_wastes_the_shuffler_is_warned_of():
    found, mended, local = (
        phones(mechanism={"kind": "2rr", "target": {"epsilon": 1.0, **delta}}, trust=trust)
        for delta, trust in (({}, "shuffle"), ({"delta": 1e-6}, "shuffle"), ({}, "local"))
    )
    assert "set mechanism.target.delta to 1e-06" in (warning(found, predict(found)) or "")
    assert predict(mended).expected.run < 0.5 * predict(found).expected.run
    assert warning(mended, predict(mended)) is None
    assert warning(local, predict(local)) is None


def test_shipped_scenarios_learn_something():
    for name in QUICK:
        found = predict(load(shipped()[name]))
        assert found is not None and not found.useless, name


def test_data_that_depend_on_the_group_are_said_to_be_left_out():
    found = predict(load(shipped()["stress/unheard-devices"]))
    assert found.expected.note == "if every class took part alike"
    assert predict(load(shipped()["stress/mixed-devices"])).expected.note == ""


def test_a_task_without_a_formula_has_no_prediction():
    own = {"kind": "tests.run.silent:Silent"}
    found = phones(task=own, mechanism={"kind": "2rr", "epsilon_local": 1.0})
    assert predict(found) is None
    assert warning(found, None) is None


def test_commands_say_what_to_expect(tmp_path):
    silent = phones(shuffle={"min_batch": 1}, placement={"backend": "inline"})
    path = tmp_path / "phones.yaml"
    path.write_text(json.dumps(silent.document()))
    checked = CliRunner().invoke(main, ["validate", str(path), "--json"])
    (finding,) = json.loads(checked.stdout)
    assert finding["planned"]["prediction"]["useless"]
    assert finding["warning"] in checked.stderr
    played = CliRunner().invoke(main, ["run", str(path), "--out", str(tmp_path / "run")])
    assert finding["warning"] in played.stderr
    assert "expected squared error" in played.stderr
    assert "(measured " in played.stdout
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["timing"]["loading_s"] > 0.0


def test_who_waits_for_a_calibration_is_told(capsys):
    target = {"mechanism": {"target": {"epsilon": 1.0}}}
    with waiting(target, first=0.02, then=0.05) as took:
        time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2 and lines[0].startswith("calibrating the mechanism for epsilon 1.0")
    assert took[0] >= 0.2


def test_rows_that_nobody_holds_are_said(tmp_path):
    (tmp_path / "own.csv").write_text("0\n1\n0\n1\n1\n")
    data = {"kind": "file", "path": "own.csv"}
    document = {
        "name": "own",
        "population": {"clients": 3, "data": data},
        "mechanism": {"kind": "2rr", "epsilon_local": 1.0},
    }
    (tmp_path / "own.yaml").write_text(json.dumps(document))
    shown = CliRunner().invoke(main, ["validate", str(tmp_path / "own.yaml")]).stderr
    assert "own.csv, 5 rows; no header: line 1 (0) is client 0 (detected)" in shown
    assert "population.clients is 3, so 2 of 5 rows are unused" in shown
