"""Means of points: what is protected is one item, and a release is a round of CLDP-SGD."""

import numpy as np
import pytest

from raydp_sim.datasets.points import Points
from raydp_sim.errors import InputError
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.metrics import streams
from raydp_sim.privacy import events as ev
from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.ledger import store
from raydp_sim.random import Stream
from raydp_sim.run import run
from raydp_sim.scenario import bound_mechanism, setting_of
from raydp_sim.scenario.accounting import planned, sampled
from raydp_sim.tasks.base import Ask
from raydp_sim.tasks.item_mean import ItemMean
from tests.conftest import placed_everywhere, scenario

ONE = {"kind": "privunit", "radius": 1.0, "epsilon_local": 2.0}
SEVERAL = {"kind": "linf", "radius": 1.0, "epsilon_local": 2.0, "coordinates": 3}
SHARES = {"kind": "split-and-mix", "radius": 1.0, "epsilon": 1.0, "delta": 1e-8}
UNIFORM = {"kind": "uniform", "sampled": 50}


def items(clients=200, points=6, sampled_points=2, rounds=3, **sections):
    data = {"kind": "points", "points": points, "dimension": 3, "mean": 0.2, "sd": 0.2}
    usual = {
        "population": {"clients": clients, "data": {**data, "clip": 1.0, "norm": "l2"}},
        "task": {"kind": "item-mean", "sampled_points": sampled_points, "rounds": rounds},
        "mechanism": ONE,
        "participation": UNIFORM,
    }
    return scenario(**{**usual, **sections})


def held(base):
    ids = np.arange(base.population.clients, dtype=np.uint32)
    return base.population.data.hold(ids, base.stream(0).at("data"))


def charges(folder):
    return list(store.charges(folder / "ledger"))


# The data.


def test_points_are_a_client_s_own_in_any_company():
    data = Points(points=4, dimension=3, mean=[1.0, 0.0, -1.0], clip=1.5, norm="l2")
    everyone = np.arange(50, dtype=np.uint32)
    whole = data.hold(everyone, Stream(1))
    assert whole.shape == (50, *data.shape()) == (50, 4, 3)
    assert np.array_equal(data.hold(everyone[7:9], Stream(1)), whole[7:9])
    assert np.linalg.norm(whole, axis=2).max() <= 1.5 * (1 + 1e-12)
    box = Points(points=4, dimension=3, mean=1.0, clip=0.5).hold(everyone, Stream(1))
    assert np.abs(box).max() == 0.5
    plain = Points(points=4, dimension=3, mean=[5.0, 0.0, -5.0], sd=0.1).hold(everyone, Stream(1))
    assert np.allclose(plain.mean(axis=(0, 1)), [5.0, 0.0, -5.0], atol=0.05)


@pytest.mark.parametrize(
    "fields,words",
    [
        ({"points": 2, "dimension": 3, "mean": [1.0]}, "mean has 1 numbers for dimension 3"),
        ({"points": 10**6, "dimension": 100}, "numbers per client; lower points or dimension"),
    ],
)
def test_points_that_cannot_be_are_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        Points(**fields)


# The task.


def test_each_client_draws_points_of_its_own_uniformly_without_replacement():
    """Every point of 6 is drawn in a third of 6000 draws of 2.

    Six counts, each within 5.5 standard deviations of a binomial: false alarm below 6 * 3.8e-8.
    """
    base = items(6000, participation={"kind": "all"})
    setting, data, task = setting_of(base), held(base), base.task
    own = base.stream(0).at("task", 0).clients(np.arange(6000, dtype=np.uint32))
    ask = Ask(setting.mechanism)
    answer = task.client(setting, ask, data, {}, None, Randomizer(setting.mechanism), own)
    assert answer.values.shape == (12_000, 3)
    assert np.array_equal(answer.owner, np.repeat(np.arange(6000), 2))
    pairs = answer.values.reshape(6000, 2, 3)
    places = (pairs[:, :, None] == data[:, None]).all(axis=3).argmax(axis=2)
    assert np.array_equal(np.take_along_axis(data, places[:, :, None], axis=1), pairs)
    assert (places[:, 0] != places[:, 1]).all()
    counts = np.bincount(places.ravel(), minlength=6)
    assert (np.abs(counts - 2000) < 5.5 * np.sqrt(6000 * (1 / 3) * (2 / 3))).all()


@pytest.mark.parametrize(
    "trust,mechanism", [("shuffle", ONE), ("shuffle", SEVERAL), ("local", ONE)]
)
def test_results_do_not_depend_on_placement(trust, mechanism, tmp_path):
    result = placed_everywhere(items(trust=trust, mechanism=mechanism), tmp_path, stop=2)
    for row in result.metrics.to_pylist():
        assert row["batch_size"] == 50 and row["bits"] == 100 * row["bits"] // 100
        made = bound_mechanism(items(trust=trust, mechanism=mechanism))
        assert row["messages"] == 100 * made.messages_per_report
        assert row["bits"] == 100 * made.bits


def test_the_estimate_is_unbiased_and_errs_as_the_mechanism_says(tmp_path):
    """400 releases of everyone's points, all of them drawn: only noise is left.

    The mean of the estimates is off by at most 5.6 of its standard errors in each of 3
    coordinates: a false alarm has probability below 3 * 2.2e-8. The mean squared error has a
    coefficient of variation of about 0.8 / sqrt(400) = 0.04, 5.5 of which are allowed.
    """
    base = items(40, 5, 5, rounds=400, participation={"kind": "all"})
    rows = run(base, out=tmp_path / "run").metrics
    points = held(base).reshape(-1, 3)
    variance = bound_mechanism(base).mse(points).sum() / len(points) ** 2
    errors = rows["squared_error_cohort"].to_numpy()
    assert abs(errors.mean() / variance - 1) < 5.5 * 0.05
    # In l2: three coordinates with a third of the variance each.
    running = np.sqrt(rows["running_squared_error"].to_numpy()[-1])
    assert running < 5.6 * np.sqrt(variance / 400)
    assert set(rows["sampling_error"].to_pylist()) == {0.0}


def test_the_truth_is_of_all_points_and_sampling_them_is_an_error_of_its_own(tmp_path):
    base = items(rounds=1, participation={"kind": "all"})
    (row,) = run(base, out=tmp_path / "run").metrics.to_pylist()
    data, own = held(base), base.stream(0).at("task", 0)
    keys = own.clients(np.arange(200, dtype=np.uint32)).uniform("point", 6)
    drawn = np.argsort(keys, axis=1)[:, :2]
    chosen = np.take_along_axis(data, drawn[:, :, None], axis=1).reshape(-1, 3).mean(axis=0)
    whole = data.reshape(-1, 3).mean(axis=0)
    assert row["sampling_error"] == pytest.approx(np.linalg.norm(chosen - whole), rel=1e-6)
    assert row["sampling_error"] > 0.0 and row["participation_bias"] == row["clipping_bias"] == 0.0
    assert row["squared_error_cohort"] == row["squared_error_population"]


def test_points_that_are_clipped_show_as_clipping_bias(tmp_path):
    wide = {"kind": "points", "points": 6, "dimension": 3, "mean": 0.5, "sd": 0.2}
    population = {"clients": 200, "data": wide}
    with pytest.raises(InputError, match=r"client \d+ is outside the l2 ball of radius 0.3"):
        items(population=population, mechanism={**ONE, "radius": 0.3})
    clip = {**ONE, "radius": 0.3, "on_out_of_range": "clip"}
    base = items(
        1, 6, 6, rounds=1, population=population, mechanism=clip, participation={"kind": "all"}
    )
    (row,) = run(base, out=tmp_path / "run").metrics.to_pylist()
    points = held(base).reshape(-1, 3)
    kept = points * np.minimum(1.0, 0.3 / np.linalg.norm(points, axis=1))[:, None]
    bias = np.linalg.norm(kept.mean(axis=0) - points.mean(axis=0))
    assert row["clipping_bias"] == pytest.approx(bias, rel=1e-6)
    assert row["outside"] == (np.linalg.norm(points, axis=1) > 0.3).sum()


# What it costs.


def test_a_uniform_cohort_and_one_message_make_a_round_of_cldp(tmp_path):
    base = items()
    privacy = run(base, out=tmp_path / "run").summary["privacy"]
    mechanism = bound_mechanism(base)
    event = ev.CldpRound(mechanism.losses()[0], 200, 6, 50, 2, mechanism.randomizer())
    assert [charge.shuffled for charge in charges(tmp_path / "run")] == [event] * 3
    assert {charge.event.unit for charge in charges(tmp_path / "run")} == {"item"}
    assert "one item of one client's data" in privacy["assumption"]
    assert "every eligible client is charged" in privacy["assumption"]
    assert privacy["sampling"] == "counted"
    assert privacy["per_client"]["min"] == privacy["per_client"]["max"] == privacy["epsilon"]
    # As the accountant has it, which knows nothing of the run.
    assert privacy["epsilon"] == pytest.approx(account([(event, 3)], 1e-6).epsilon, rel=1e-3)
    assert privacy["epsilon"] <= planned(base, bound_mechanism(base)) * (1 + 1e-9)


@pytest.mark.parametrize(
    "sections,kind,n",
    [
        ({"participation": {"kind": "all"}}, ev.Shuffle, 400),
        ({"mechanism": SEVERAL}, ev.MultiMessageShuffle, 100),
        ({"privacy": {"honest_fraction": 0.5}}, ev.Shuffle, 50),
        ({"participation": {"kind": "self", "probability": 0.5}}, ev.Shuffle, None),
    ],
)
def test_anything_else_is_a_shuffle_of_the_points_that_came(sections, kind, n, tmp_path):
    base = items(**sections)
    privacy = run(base, out=tmp_path / "run").summary["privacy"]
    for charge in charges(tmp_path / "run"):
        most = 2 * len(charge.participants) if n is None else n
        assert type(charge.shuffled) is kind and charge.shuffled.unit == "item"
        # Rounded down to one of few sizes, a quarter of an octave apart.
        assert 0.84 * most - 1 < charge.shuffled.n <= most
    assert "one item of one client's data" in privacy["assumption"]
    assert privacy["sampling"].startswith("not counted: ")
    assert 0 < privacy["epsilon"] <= planned(base, bound_mechanism(base)) * (1 + 1e-9)


def test_without_a_shuffler_each_report_is_charged_to_its_item(tmp_path):
    privacy = run(items(trust="local"), out=tmp_path / "run").summary["privacy"]
    assert [charge.shuffled for charge in charges(tmp_path / "run")] == [None] * 3
    assert {charge.event for charge in charges(tmp_path / "run")} == {
        ev.LocalReport(2.0, unit="item")
    }
    assert privacy["bound"] == "local-composition"
    assert privacy["assumption"].endswith("neighbours replace one item of one client's data")
    noise = {"kind": "central-gaussian", "radius": 1.0, "epsilon": 1.0, "delta": 1e-8}
    base = items(trust="central", mechanism=noise)
    found = run(base, out=tmp_path / "central").summary["privacy"]
    assert {c.shuffled.unit for c in charges(tmp_path / "central")} == {"item"}
    assert "neighbours replace one item of one client's data" in found["assumption"]


def test_a_target_is_met_by_both_samplings(tmp_path):
    target = {"kind": "privunit", "radius": 1.0, "target": {"epsilon": 0.5, "delta": 1e-6}}
    base = items(mechanism=target)
    assert sampled(base, bound_mechanism(base))[0] == "uniform"
    privacy = run(base, out=tmp_path / "run").summary["privacy"]
    assert 0.4 < privacy["epsilon"] <= 0.5 and bound_mechanism(base).epsilon_local > 0.5


@pytest.mark.parametrize(
    "sections,words",
    [
        (
            {"population": {"clients": 90, "data": {"kind": "gaussian", "dimension": 3}}},
            "population.data: each client holds one vector; task 'item-mean'",
        ),
        ({"sampled_points": 7}, "task.sampled_points is 7; a client holds 6 points"),
        (
            {"task": {"kind": "mean"}},
            r"population.data: values have shape \(\d+, 6, 3\)",
        ),
        (
            {
                "mechanism": {
                    "kind": "split-and-mix",
                    "radius": 1.0,
                    "epsilon": 1.0,
                    "delta": 1e-8,
                },
                "population": {"clients": 90, "data": {"kind": "points", "points": 6, "clip": 1.0}},
                "shuffle": {"min_batch": 50},
            },
            "mechanism.kind is 'split-and-mix'; task 'item-mean' charges report by report",
        ),
    ],
)
def test_what_does_not_fit_is_named(sections, words):
    with pytest.raises(InputError, match=words):
        items(**sections)


def test_the_shipped_scenario_plays_and_is_of_items(tmp_path):
    from raydp_sim.cli.shipped import shipped

    result = run(shipped()["items"], out=tmp_path / "run", placement__backend="inline")
    assert "one item of one client's data" in result.summary["privacy"]["assumption"]
    kinds = {type(charge.shuffled) for charge in charges(tmp_path / "run")}
    assert kinds == {ev.CldpRound} and result.metrics.num_rows == 20
    rows = streams.read(tmp_path / "run" / "metrics", "errors")
    assert streams.visibility(rows.schema) == "simulation-only"
    assert isinstance(result.scenario.task, ItemMean)
