"""Whole runs with latency: identical for any placement, order of answers and interruption."""

import json

import numpy as np
import pytest

from raydp_sim.actors.client import ClientActor
from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.run import prepare, reopen, run
from raydp_sim.scenario import bound_mechanism
from raydp_sim.scenario.accounting import sampling_counts
from raydp_sim.schedule.batch import Cohort
from raydp_sim.schedule.schedule import Schedule
from raydp_sim.tasks.base import Ask
from tests.actors.scrambled import Scrambled
from tests.conftest import assert_identical, scenario, with_placement

FOLLOWING = "tests.actors.following:Following"
POPULATION = {
    "clients": 150,
    "data": {"kind": "gaussian", "dimension": 6, "mean": 0.3, "clip": 1.0},
    "availability": {"kind": "bernoulli", "probability": 0.6, "period": 20.0},
    "latency": {"kind": "lognormal", "median": 8.0, "sigma": 1.0},
    "dropout": 0.1,
    "duplicates": 0.2,
}
POLICIES = {
    "asynchronous": {"kind": "asynchronous", "batch": 25, "every": 60.0, "deadline": 30.0},
    "waiting": {
        "kind": "asynchronous",
        "batch": 60,
        "every": 60.0,
        "deadline": 5.0,
        "on_short": "wait",
        "staleness_exponent": 0.5,
    },
    "over-selected": {"kind": "over-selected", "sampled": 20, "deadline": 30.0, "interval": 40.0},
    "everyone": {"kind": "all", "deadline": 12.0, "interval": 10.0},
    "self": {"kind": "self", "probability": 0.5, "deadline": 12.0},
    "uniform": {"kind": "uniform", "sampled": 40, "deadline": 20.0},
}


def late(policy, task="mean", trust="shuffle", **sections):
    return scenario(
        trust=trust,
        population=POPULATION,
        participation=POLICIES[policy],
        task={"kind": task, "rounds": 7},
        shuffle={"min_batch": 15},
        **sections,
    )


class _Holding:
    def __init__(self, backend):
        self.backend = backend

    def __enter__(self):
        return self.backend

    def __exit__(self, *error):
        return None


@pytest.mark.parametrize("policy", POLICIES)
def test_placement_and_the_order_of_answers_change_nothing(policy, tmp_path):
    base = late(policy)
    rows = run(base, out=tmp_path / "base").metrics.to_pylist()
    assert len(rows) >= 3 and sum(row["repeated"] for row in rows) > 0
    for per_actor, shufflers in ((1, 2), (40, 3)):
        out = tmp_path / f"{per_actor}"
        run(with_placement(base, shufflers, clients_per_actor=per_actor), out=out)
        assert_identical(tmp_path / "base", out)
    made = prepare(with_placement(base, 2, clients_per_actor=30), out=tmp_path / "scrambled")
    made._backend = lambda: _Holding(Scrambled(5))
    list(made.play())
    assert_identical(tmp_path / "base", tmp_path / "scrambled")


@pytest.mark.parametrize("task", ["mean", FOLLOWING])
@pytest.mark.parametrize("policy", ["asynchronous", "waiting", "over-selected"])
def test_an_interrupted_run_takes_its_calendar_up_again(policy, task, tmp_path):
    base = with_placement(late(policy, task), checkpoint_seconds=0)
    run(base, out=tmp_path / "whole")
    for stop in (0, 2, 4):
        made = prepare(base, out=tmp_path / f"cut{stop}")
        playing = made.play()
        for _ in range(stop + 1):
            next(playing)
        playing.close()
        for _ in reopen(tmp_path / f"cut{stop}").play():
            pass
        assert_identical(tmp_path / "whole", tmp_path / f"cut{stop}")


def test_a_late_client_answers_the_ask_that_it_was_given():
    base = late("asynchronous", FOLLOWING)
    actor = ClientActor(base.document(), 0, 0, 0, 150)
    actor.load(0)
    asked = []
    task = type(base.task)
    original = task.client

    def watching(self, setting, ask, data, memory, slots, randomizer, stream):
        asked.append((float(ask.broadcast["factor"]), stream.ids.tolist()))
        return original(self, setting, ask, data, memory, slots, randomizer, stream)

    ids, stale = np.array([3, 9, 40, 41], np.uint32), np.array([0, 2, 0, 1])
    heads = [Ask(actor.setting.mechanism)] * 3
    broadcasts = [{"factor": np.asarray(factor)} for factor in (0.5, 0.25, 0.125)]
    actor.scenario.task.__class__.client = watching
    try:
        actor.report(6, 0.0, Cohort(ids, stale), 1, (4, 5, 6), *heads, *broadcasts)
    finally:
        task.client = original
    assert sorted(asked) == [(0.125, [3, 40]), (0.25, [41]), (0.5, [9])]


def test_weighting_changes_nothing_where_nobody_is_late(tmp_path):
    quick = {**POPULATION, "latency": {"kind": "constant", "seconds": 0.0}}
    plain = {**POLICIES["asynchronous"]}
    runs = {}
    for exponent in (0.0, 1.0):
        base = scenario(
            population=quick,
            participation={**plain, "staleness_exponent": exponent},
            shuffle={"min_batch": 15},
        )
        runs[exponent] = run(base, out=tmp_path / str(exponent)).metrics
    assert runs[0.0].equals(runs[1.0])


def test_a_weighted_estimate_is_unbiased_for_the_weighted_mean(tmp_path):
    """Values all equal: any weighting estimates that value. 7 coordinates' errors over releases are
    within 6 standard errors (two-sided normal: 2e-9 each)."""
    same = {"kind": "gaussian", "dimension": 6, "mean": 0.4, "sd": 0.0, "clip": 1.0}
    base = scenario(
        population={**POPULATION, "clients": 4000, "data": same},
        participation={**POLICIES["waiting"], "batch": 900, "every": 30.0},
        task={"kind": "mean", "rounds": 12},
        shuffle={"min_batch": 500},
    )
    result = run(base, out=tmp_path / "run")
    rows = result.metrics.to_pylist()
    assert max(row["staleness"] for row in rows) > 0.5
    mechanism = bound_mechanism(base)
    worst = max(mechanism.worst_mse() / row["batch_size"] for row in rows)
    # The weights shrink the signal, not the noise: (1 + s)^-1/2 at the largest mean staleness.
    shrunk = min((1.0 + row["stalest"]) ** -0.5 for row in rows)
    running = rows[-1]["running_squared_error"]
    assert running < 36 * worst / shrunk**2 / len(rows)


def test_copies_are_sent_and_counted_once(tmp_path):
    result = run(late("asynchronous"), out=tmp_path / "run")
    rows = result.metrics.to_pylist()
    timing = streams.read(tmp_path / "run" / "metrics", "timing").to_pylist()
    released = {row["release"]: row for row in rows}
    messages = bound_mechanism(late("asynchronous")).messages_per_report
    for entry in timing:
        if entry["release"] in released:
            row = released[entry["release"]]
            assert entry["duplicates"] == row["repeated"] * messages
            assert row["batch_size"] == row["participants"]
    assert sum(row["repeated"] for row in rows) > 0


def test_clients_that_never_come_end_the_run_with_what_there_is(tmp_path):
    trace = tmp_path / "trace.csv"
    lines = [f"{client},0,{80 + client % 7}" for client in range(150)]
    trace.write_text("client,on,off\n" + "\n".join(lines) + "\n")
    gone = {**POPULATION, "availability": {"kind": "trace", "path": str(trace)}}
    base = scenario(
        population=gone,
        participation={**POLICIES["asynchronous"], "deadline": None, "patience": 500.0},
        task={"kind": "mean", "rounds": 50},
    )
    result = run(base, out=tmp_path / "run")
    assert 0 < result.summary["metrics"]["releases"] < 50
    assert "participation.patience" in result.summary["ended_early"]
    assert json.loads((tmp_path / "run" / "summary.json").read_text()) == result.summary
    again = reopen(tmp_path / "run")
    assert again.result is not None


def test_nobody_at_all_is_a_clean_end_too(tmp_path):
    trace = tmp_path / "trace.csv"
    lines = [f"{client},0.0001,0.0011" for client in range(150)]
    trace.write_text("client,on,off\n" + "\n".join(lines) + "\n")
    gone = {**POPULATION, "availability": {"kind": "trace", "path": str(trace)}}
    policy = {"kind": "asynchronous", "batch": 25, "every": 60.0, "patience": 100.0}
    result = run(scenario(population=gone, participation=policy), out=tmp_path / "run")
    assert result.summary["metrics"]["releases"] == 0 and "ended_early" in result.summary
    assert result.summary["privacy"]["epsilon"] == 0.0


@pytest.mark.parametrize("kind", ["over-selected", "everyone", "asynchronous"])
def test_an_untrusted_server_is_paid_for_reports_it_does_not_use(kind, tmp_path):
    """Late or one too many, it has seen them: every report that arrives is charged."""
    sent = np.zeros(150, np.int64)
    policy = {**POLICIES[kind]}
    if kind == "asynchronous":
        policy |= {"patience": 200.0, "deadline": None}
    else:
        policy["deadline"] = 6.0
    slow = {**POPULATION, "duplicates": 0.0}
    base = scenario(
        trust="local", population=slow, participation=policy, task={"kind": "mean", "rounds": 9}
    )
    schedule = Schedule(base, base.stream(0))
    time = 0.0
    for release in range(9):
        planned = schedule.plan(release, time)
        if planned is None:
            break
        cohort, timing = planned
        sent[cohort.ids] += 1
        sent[cohort.unused] += 1
        time = timing.due
    run(base, out=tmp_path / "run")
    paid = np.zeros(150, np.int64)
    for charge in store.charges(tmp_path / "run" / "ledger", 0):
        paid[charge.participants] += 1
    assert paid.tolist() == sent.tolist() and paid.sum() > 0
    if kind != "asynchronous":
        used = sum(
            row["batch_size"]
            for row in streams.read(tmp_path / "run" / "metrics", "releases").to_pylist()
        )
        assert used < paid.sum()


def test_all_reports_late_are_charged_though_nothing_is_released(tmp_path):
    slow = {**POPULATION, "latency": {"kind": "pareto", "minimum": 5.9, "shape": 0.5}}
    base = scenario(
        trust="local",
        population=slow,
        participation={"kind": "uniform", "sampled": 3, "deadline": 6.0},
        task={"kind": "mean", "rounds": 12},
    )
    result = run(base, out=tmp_path / "run")
    rows = list(store.charges(tmp_path / "run" / "ledger", 0))
    assert result.summary["metrics"]["withheld"] > 0
    withheld = streams.read(tmp_path / "run" / "metrics", "withheld").to_pylist()
    empty = {row["release"] for row in withheld if row["late"]}
    assert empty and empty <= {charge.release for charge in rows}
    assert result.summary["privacy"]["epsilon"] > 0.0
    again = tmp_path / "again"
    run(with_placement(base, clients_per_actor=20), out=again)
    assert_identical(tmp_path / "run", again)


def test_round_lengths_that_tell_devices_apart_void_the_sampling():
    classes = [
        {"name": "fast", "share": 0.9, "latency": {"kind": "constant", "seconds": 1.0}},
        {"name": "slow", "share": 0.1, "latency": {"kind": "constant", "seconds": 10.0}},
    ]
    data = POPULATION["data"]
    cohort = {"kind": "uniform", "sampled": 20}
    mixed = scenario(
        population={"clients": 150, "data": data, "classes": classes}, participation=cohort
    )
    assert "tells which devices" in sampling_counts(mixed)
    steady = {"clients": 150, "data": data, "latency": {"kind": "lognormal", "median": 5.0}}
    assert sampling_counts(scenario(population=steady, participation=cohort)) is None


@pytest.mark.cluster
def test_ray_gives_what_inline_gives(tmp_path, ray_session):
    """Stale reports, answers to older asks, batches that wait, and budgets."""
    base = late("waiting", FOLLOWING, privacy={"budget": {"epsilon": 6.0, "delta": 1e-6}})
    run(base, out=tmp_path / "inline")
    run(with_placement(base, 2, backend="ray", clients_per_actor=75), out=tmp_path / "ray")
    assert_identical(tmp_path / "inline", tmp_path / "ray")
