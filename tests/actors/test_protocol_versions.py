"""Reports that answer an older ask: mixed where the mechanism is the same, discarded where not."""

import numpy as np
import pytest

from raydp_sim.errors import InputError, RunError
from raydp_sim.metrics import streams
from raydp_sim.run import run
from raydp_sim.scenario import bound_mechanism, setting_of
from raydp_sim.scenario.accounting import planned, planned_batch
from raydp_sim.schedule.schedule import Schedule
from tests.conftest import placed_everywhere, scenario

BATCH, ROUNDS = 20, 12


def switching(period=2, exponent=0.0, **sections):
    """Clients whose work takes about as long as a batch takes to fill."""
    population = {
        "clients": 100,
        "data": {"kind": "gaussian", "dimension": 6, "clip": 0.5},
        "latency": {"kind": "lognormal", "median": 20.0, "sigma": 1.0},
    }
    fields = {"period": period, "planned": sections.pop("planned", True)}
    every = {"kind": "asynchronous", "batch": BATCH, "every": 60.0, "staleness_exponent": exponent}
    task = {"kind": "tests.tasks.examples:Switching", "rounds": ROUNDS, **fields}
    return scenario(population=population, task=task, participation=every, **sections)


def foreseen(base):
    """Which reports each release keeps, from the schedule and the task alone.

    Returns:
        For each release the staleness of what it keeps and how many it discards.
    """
    setting, schedule, found = setting_of(base), Schedule(base, base.stream(0)), []
    for release in range(ROUNDS):
        cohort, _ = schedule.plan(release, 0.0)
        versions = release - cohort.staleness
        own = base.task.mechanism_of(setting, release)
        kept = np.array([base.task.mechanism_of(setting, int(v)) == own for v in versions])
        found.append((cohort.staleness[kept], int((~kept).sum())))
    return found


@pytest.mark.parametrize("exponent", [0.0, 0.5])
def test_versions_mix_where_their_mechanisms_are_equal_and_nowhere_else(exponent, tmp_path):
    base = switching(exponent=exponent)
    result = placed_everywhere(base, tmp_path, stop=5)
    rows, expected = result.metrics.to_pylist(), foreseen(base)
    weights = streams.read(tmp_path / "base" / "metrics", "weights")["weight"].to_pylist()
    mixed = 0
    for row, weight, (stale, discarded) in zip(rows, weights, expected, strict=True):
        assert row["discarded"] == discarded and row["batch_size"] == BATCH - discarded
        assert row["staleness"] == pytest.approx(stale.mean()) and row["stalest"] == stale.max()
        assert weight == pytest.approx(((1.0 + stale) ** -exponent).mean())
        mixed += int((stale > 0).sum())
    # Both happen: some that are late are used, and some are not.
    assert mixed > 10 and sum(row["discarded"] for row in rows) > 10


def test_one_mechanism_for_all_asks_discards_nothing(tmp_path):
    result = run(switching(period=ROUNDS), out=tmp_path / "run")
    rows = result.metrics.to_pylist()
    assert {row["discarded"] for row in rows} == {0} and {row["batch_size"] for row in rows} == {20}
    assert max(row["stalest"] for row in rows) > 0


def test_a_plan_with_several_mechanisms_counts_on_the_least_batch_only(tmp_path):
    base = switching(shuffle={"min_batch": 3})
    mechanism = bound_mechanism(base)
    first = base.task.plan(setting_of(base))[0].ask
    assert planned_batch(base, mechanism, first) == 3
    steady = scenario(participation={"kind": "asynchronous", "batch": BATCH, "every": 60.0})
    ask = steady.task.plan(setting_of(steady))[0].ask
    assert planned_batch(steady, bound_mechanism(steady), ask) == BATCH
    privacy = run(base, out=tmp_path / "run").summary["privacy"]
    assert privacy["epsilon"] <= planned(base, mechanism) * (1 + 1e-9)


def test_a_server_that_sees_the_wrong_reports_is_refused_them():
    with pytest.raises(InputError, match=r"participation.kind is 'asynchronous'; this task has"):
        switching(trust="local")


def test_a_task_that_breaks_its_plan_is_stopped_before_anything_is_discarded(tmp_path):
    with pytest.raises(RunError, match="the plan of task 'switching' has one mechanism"):
        run(switching(planned=False), out=tmp_path / "run")
    assert streams.read(tmp_path / "run" / "metrics", "releases").num_rows <= 2
