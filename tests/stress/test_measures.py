"""Measures of a run, against tables made by hand and against whole runs counted otherwise."""

import math

import numpy as np
import pyarrow as pa
import pytest

from raydp_sim.metrics import streams
from raydp_sim.privacy.events import LocalReport
from raydp_sim.privacy.ledger import store
from raydp_sim.privacy.ledger.participations import gini
from raydp_sim.privacy.ledger.store import Charge
from raydp_sim.run import run
from raydp_sim.scenario import bound_mechanism
from raydp_sim.scenario.accounting import planned
from raydp_sim.stress.measures import effective, measure, participations, wasted
from raydp_sim.stress.row import Waste
from tests.conftest import scenario

SUMMARY = {
    "privacy": {"epsilon": 1.5, "planned": 4.0, "participation": {"gini": 0.2}},
    "metrics": {"running_squared_error": 0.03},
}
POLICY = {"kind": "asynchronous", "batch": 40, "every": 60.0, "deadline": 30.0}


def releases(**columns):
    """Joined rows that say nothing special, save what is given."""
    number = len(next(iter(columns.values())))
    zeros = {name: [0] * number for name in streams.SCHEMAS["releases"].names if name != "bound"}
    scores = dict.fromkeys(("squared_error_cohort", "squared_error_population"), [0.1] * number)
    return pa.table(zeros | {"bound": [""] * number} | scores | columns)


def withheld(**columns):
    if not columns:
        return streams.table("withheld", [])
    number = len(next(iter(columns.values())))
    rows = {name: [0] * number for name in streams.SCHEMAS["withheld"].names} | columns
    return streams.table("withheld", pa.table(rows).to_pylist())


def charge(release, ids, repetition=0):
    return Charge(repetition, release, 0.0, LocalReport(1.0), np.array(ids, np.uint32))


def small(**sections):
    data = {"kind": "gaussian", "dimension": 6, "mean": 0.2, "clip": 1.0}
    population = {"clients": 200, "data": data}
    usual = {"participation": POLICY, "shuffle": {"min_batch": 20}, "population": population}
    return scenario(**{**usual, **sections})


def test_each_measure_of_a_table_made_by_hand():
    made = releases(
        release=[0, 2, 3],
        opened=[0.0, 60.0, 90.0],
        time=[30.0, 90.0, 120.0],
        batch_size=[40, 30, 20],
        asked=[50, 40, 30],
        dropped=[4, 2, 0],
        staleness=[0.0, 1.0, 2.0],
        stalest=[0, 3, 4],
        participation_bias=[0.3, 0.2, 0.1],
        squared_error_cohort=[0.3, 0.6, 0.9],
        squared_error_population=[0.2, 0.4, 0.6],
    )
    held = withheld(release=[1], opened=[30.0], time=[60.0], reports=[10], asked=[20], dropped=[4])
    charges = [charge(0, range(40)), charge(2, range(30)), charge(3, range(20))]
    row = measure(small(), SUMMARY, made, held, charges)
    assert (row.made, row.withheld_count, row.batches) == (3, 1, 4)
    assert (row.batch_p5, row.batch_median, row.wanted) == (20, 30, 40)
    assert row.squared_error == pytest.approx(0.4) and row.running_error == 0.03
    assert row.noise == pytest.approx((0.3 + 0.6 + 0.9) / 9)
    assert row.bias == pytest.approx(0.1)
    assert row.expected_error == pytest.approx(0.2 + 0.01)
    assert (row.staleness, row.stalest) == (1.0, 4)
    assert row.started == 140
    assert row.waste == Waste(10 / 140, 0.0, 10 / 140, 30 / 140)
    assert row.waste.total == pytest.approx(1 - 90 / 140)
    assert row.never == pytest.approx(0.8) and row.most_turns == 3
    assert row.effective == pytest.approx(90**2 / (20 * 9 + 10 * 4 + 10))
    assert row.seconds_per_batch == pytest.approx(30.0)
    assert row.withheld is not None
    assert (row.withheld.least, row.withheld.most, row.withheld.half) == (10, 10, 10)
    assert (row.withheld.first, row.withheld.last) == (30.0, 60.0)
    # A smaller batch hides less.
    lowered = small(shuffle={"min_batch": 10})
    assert row.withheld.epsilon == planned(lowered, bound_mechanism(lowered))
    assert row.withheld.epsilon > planned(small(), bound_mechanism(small()))
    document = row.document()
    assert "settings" not in document
    assert document["waste"]["total"] == row.waste.total and document["withheld"]["half"] == 10


def test_a_run_without_releases_has_no_errors_and_no_waste():
    empty = releases(release=[])
    summary = {**SUMMARY, "metrics": {}}
    row = measure(small(), summary, empty, withheld(), [])
    assert row.squared_error is row.noise is row.bias is row.expected_error is row.withheld is None
    assert row.waste == Waste() and row.seconds_per_batch == 0.0 and row.never == 1.0


def test_empty_batches_suggest_no_smaller_ones():
    held = withheld(release=[0, 1], reports=[0, 0], time=[1.0, 2.0])
    row = measure(small(), SUMMARY, releases(release=[]), held, [])
    assert row.withheld is not None and row.withheld.epsilon is None


def test_rounds_lose_what_comes_late_and_batches_do_not():
    made = releases(asked=[10], batch_size=[7], dropped=[1])
    assert wasted(made, withheld(), rounds=True) == Waste(0.1, 0.2, 0.0, 0.0)
    assert wasted(made, withheld(), rounds=False) == Waste(0.1, 0.0, 0.0, 0.2)


def test_participations_are_counted_by_repetition():
    charges = [
        charge(0, [0, 2]),
        Charge(0, 1, 0.0, LocalReport(1.0), range(0, 2)),
        charge(0, [3], 1),
    ]
    assert participations(charges, 4, 2).tolist() == [[2, 1, 1, 0], [0, 0, 0, 1]]


def test_equal_turns_are_worth_all_clients():
    turns = np.array([[5] * 8, [5] * 4 + [0] * 4])
    assert effective(turns).tolist() == [8.0, 4.0]


def test_repetitions_are_pooled_and_paces_added():
    made = releases(
        repetition=[0, 0, 1, 1],
        release=[0, 1, 0, 1],
        opened=[0.0, 10.0, 0.0, 20.0],
        time=[10.0, 20.0, 20.0, 40.0],
        participation_bias=[0.9, 0.3, 0.9, 0.4],
        squared_error_cohort=[0.2] * 4,
    )
    charges = [charge(r, [r], k) for k in range(2) for r in range(2)]
    row = measure(small(repeat=2), SUMMARY, made, withheld(), charges)
    assert row.seconds_per_batch == pytest.approx((20 + 40) / 4)
    assert row.bias == pytest.approx(math.sqrt((0.09 + 0.16) / 2))
    assert row.noise == pytest.approx(0.1)


def played(tmp_path, **sections):
    base = small(**sections)
    result = run(base, out=tmp_path / "run")
    folder = tmp_path / "run"
    held = streams.read(folder / "metrics", "withheld")
    row = measure(base, result.summary, result.metrics, held, store.charges(folder / "ledger"))
    return row, result


def test_a_whole_run_agrees_with_its_ledger_and_summary(tmp_path):
    row, result = played(tmp_path, task={"kind": "mean", "rounds": 12})
    turns = participations(store.charges(tmp_path / "run" / "ledger"), 200)
    assert gini(turns[0]) == pytest.approx(row.gini)
    assert int(turns.sum()) == sum(result.metrics["batch_size"].to_pylist())
    assert row.never == result.summary["privacy"]["per_client"]["never"]
    assert row.waste.total == pytest.approx(1 - turns.sum() / row.started)
    assert row.epsilon <= row.planned


@pytest.mark.slow
def test_noise_and_bias_predict_the_final_error(tmp_path):
    """Mean over 30 repetitions; its relative sd is about sqrt(2 / (6 * 30)) = 0.11: 5 sd."""
    row, _ = played(tmp_path, repeat=30, task={"kind": "mean", "rounds": 5})
    assert row.expected_error == pytest.approx(row.running_error, rel=0.55)


def test_chance_explains_the_bias_of_turns_that_do_not_look_at_data(tmp_path):
    """Of 20 repetitions, 6 dimensions each: 120 squares, relative sd 0.13 of the square; 5 sd."""
    row, _ = played(tmp_path, repeat=20, task={"kind": "mean", "rounds": 3})
    assert row.bias is not None and row.chance_bias is not None
    assert row.bias**2 == pytest.approx(row.chance_bias**2, rel=0.65)


def test_categories_have_a_chance_bias_of_their_own(tmp_path):
    base = scenario(
        population={"clients": 300, "data": {"kind": "categorical", "categories": 4}},
        mechanism={"kind": "krr", "categories": 4, "epsilon_local": 2.0},
        participation={"kind": "uniform", "sampled": 100},
    )
    result = run(base, out=tmp_path / "run")
    row = measure(
        base, result.summary, result.metrics, withheld(), store.charges(tmp_path / "run" / "ledger")
    )
    assert row.chance_bias is not None and 0 < row.bias < 5 * row.chance_bias
