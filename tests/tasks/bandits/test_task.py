"""Bandits on the actors: batches with slots, drop-outs, void batches, and what a run ends with."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest

from raydp_sim import engine
from raydp_sim.actors.aggregator import AggregatorActor
from raydp_sim.actors.conductor import Conductor
from raydp_sim.cli.shipped import shipped
from raydp_sim.cli.summary_table import print_summary
from raydp_sim.errors import RunError
from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import store
from raydp_sim.privacy.ledger.handed import Handed
from raydp_sim.run import run
from raydp_sim.scenario import load, setting_of
from raydp_sim.sweep.outcomes import measure_of
from raydp_sim.tasks.bandits.amplification import batch_epsilon
from raydp_sim.tasks.bandits.learner import State, next_batch
from raydp_sim.tasks.bandits.radii import confidence_radius
from raydp_sim.tasks.bandits.regression import regression
from raydp_sim.tasks.bandits.schedule import most_batches
from tests.actors.test_faults import check_resumed, killed
from tests.conftest import assert_identical, placed_everywhere, with_placement
from tests.tasks.bandits.playing import MECHANISMS, bandit, contextual, document

PLAYED = [name for name in shipped() if name.startswith("bandits/")]
DEADLINE = {"kind": "all", "deadline": 10.0}


def rows_of(folder, stream="bandit"):
    return streams.read(folder / "metrics", stream).to_pylist()


def served(folder):
    """Who was charged in each release."""
    return {row.release: set(row.participants) for row in store.charges(folder / "ledger")}


@pytest.mark.parametrize("trust", ["shuffle", "local", "central"])
def test_a_run_is_the_same_wherever_it_is_played(trust, tmp_path):
    """Clients drop out, so that batches are withheld or void; and it is stopped and resumed."""
    base = bandit(trust, 300, population={"dropout": 0.25}, participation=DEADLINE)
    result = placed_everywhere(base, tmp_path, stop=2)
    rows = rows_of(tmp_path / "base")
    assert len(rows) >= 2 and any(row["reports"] < row["slots"] for row in rows)
    assert result.summary["bandit"]["rounds"] == rows[-1]["rounds"] <= 300


@pytest.mark.parametrize("trust", ["shuffle", "local", "central"])
def test_no_client_serves_twice_and_the_run_costs_its_dearest_batch(trust, tmp_path):
    result = run(bandit(trust, 2000), out=tmp_path / "run")
    who = served(tmp_path / "run")
    assert len(who) == most_batches(2000) and sum(map(len, who.values())) == len(
        set().union(*who.values())
    )
    privacy, rows = result.summary["privacy"], rows_of(tmp_path / "run")
    # What was asked for, and not the sum over the batches.
    assert privacy["epsilon"] == privacy["planned"] == 3.0
    assert privacy["participation"]["max"] == 1
    assert "parallel composition over disjoint clients" in privacy["assumption"]
    assert max(row["batch_epsilon"] for row in rows) <= 3.0 * (1 + 1e-9)
    if trust == "shuffle":
        assert privacy["delta"] == 1e-6 and privacy["amplification"]["used"] != "none"
        # Reports of large batches lose more by themselves, and that is said.
        assert privacy["epsilon_local"] == rows[-1]["epsilon0"] > 3.0
        assert "without regard to what it was asked" in privacy["assumption"]
    else:
        assert privacy["delta"] == 0.0
        assert all(row["epsilon0"] == 3.0 for row in rows)


def test_batches_grow_and_the_rows_say_what_came_of_them(tmp_path):
    result = run(bandit(clients=5000), out=tmp_path / "run")
    rows, errors = rows_of(tmp_path / "run"), rows_of(tmp_path / "run", "errors")
    sizes = [row["slots"] for row in rows]
    assert [row["batch"] for row in rows] == list(range(1, len(rows) + 1))
    assert all(2.0 < b / a < 4.0 for a, b in pairwise(sizes))
    assert [row["rounds"] for row in rows] == np.cumsum(sizes).tolist()
    for row, truth in zip(rows, errors, strict=True):
        assert truth["regret_so_far"] <= row["certificate_so_far"]
        assert truth["regret"] <= row["certificate"] <= 2 * 5000
        assert row["active"] <= row["active_before"] and not row["void"]
    found = result.summary["bandit"]
    assert found["action"] == rows[-1]["recommended"] == 0
    assert found["estimate"] == result.estimate.values[0] and found["radius"] == rows[-1]["radius"]
    assert found["horizon"] == 5000 and found["confidence"] == 1.0 - 1.0 / 5000
    assert found["certificate"] == rows[-1]["certificate"]
    # The mean rewards of the actions are what the estimates are of.
    assert np.allclose(result.truth.values, [0.8, 0.24, -0.3, -0.72, -0.8], atol=1e-9)
    # The best action is found, so nothing is lost any more.
    assert errors[-1]["gap"] == 0.0 and errors[-1]["regret"] == errors[-1]["regret_so_far"]
    assert streams.visibility(streams.read(tmp_path / "run/metrics", "bandit").schema) == "released"


def test_epsilon_and_radius_of_a_batch_are_of_what_came(tmp_path, monkeypatch):
    """With 5 % of the slots empty a batch loses more than it would in full, and never too much."""
    seen, step = [], AggregatorActor.step

    def noting(self, release, reports, weight, slots, *rest):
        seen.append((State.of(self.task_state), slots))
        return step(self, release, reports, weight, slots, *rest)

    monkeypatch.setattr(AggregatorActor, "step", noting)
    base = bandit(clients=4000, population={"dropout": 0.05}, participation=DEADLINE)
    run(base, out=tmp_path / "run")
    last = rows_of(tmp_path / "run")[-1]
    assert math.ceil(0.8 * last["slots"]) <= last["reports"] < last["slots"]
    here, full = (batch_epsilon(last["epsilon0"], last[n], 1e-6) for n in ("reports", "slots"))
    assert full < last["batch_epsilon"] == here <= 3.0
    event = [row.shuffled for row in store.charges(tmp_path / "run" / "ledger")][-1]
    assert (event.epsilon0, event.n) == (last["epsilon0"], last["reports"])
    # The radius by hand: with the leverage of the counts that came, and not 2 d / q^i.
    problem, (before, came) = base.task.problem(setting_of(base)), seen[-1]
    batch, active = next_batch(problem, before), problem.actions[before.active]
    leverage = regression(problem.actions[batch.actions], np.array(came)).leverage(active)
    sizes = (len(active), 4000, len(came), sum(came))
    expected = confidence_radius("corrected", "reports", leverage, *sizes, last["scale"])
    planned = confidence_radius("corrected", "reports", batch.leverage, *sizes, last["scale"])
    assert last["radius"] == pytest.approx(expected, rel=1e-12) and last["radius"] != planned


def test_a_batch_that_lost_an_action_is_void_and_played_again_with_others(tmp_path):
    """Most reports are lost: of two actions with two clients each, one is often left out."""
    population, participation = {"dropout": 0.75}, {"kind": "all", "deadline": 5.0}
    base = bandit("local", 400, population=population, participation=participation)
    result = run(base, out=tmp_path / "run")
    rows = rows_of(tmp_path / "run")
    void = [i for i, row in enumerate(rows) if row["void"]]
    released = [i for i in void if rows[i]["reports"]]  # of the others nobody answered
    assert released and result.summary["bandit"]["void"] == len(released)
    for i in void:
        assert rows[i]["radius"] is None and rows[i]["active"] == rows[i]["active_before"]
        if i + 1 < len(rows):
            again = rows[i + 1]
            assert again["batch"] == rows[i]["batch"] and again["slots"] == rows[i]["slots"]
            # It is paid for, and its rounds are gone.
            assert again["rounds"] >= rows[i]["rounds"] + again["slots"]
    who = served(tmp_path / "run")
    assert sum(map(len, who.values())) == len(set().union(*who.values()))


def test_a_withheld_batch_spends_its_clients_and_counts_its_rounds(tmp_path):
    """All slots must be filled, and 3 % stay empty: small batches come, larger ones do not."""
    base = bandit(
        clients=1500,
        task={"least": 1.0, "rounds": 20},
        population={"dropout": 0.03},
        participation=DEADLINE,
    )
    result = run(base, out=tmp_path / "run")
    rows, kept = rows_of(tmp_path / "run"), rows_of(tmp_path / "run", "withheld")
    assert kept and all(row["asked"] > row["reports"] > 0 for row in kept)
    played = {row["release"]: row["slots"] for row in rows}
    played |= {row["release"]: row["asked"] for row in kept}
    so_far = np.cumsum([played[release] for release in sorted(played)])
    for row in rows:
        assert row["rounds"] == so_far[row["release"]]
        assert row["reports"] == (0 if row["void"] else row["slots"])
        assert (row["batch_epsilon"] == 0.0) == row["void"]
    # What was withheld costs nothing, and its clients are not asked again.
    made = [row["release"] for row in rows if not row["void"]]
    assert sorted(served(tmp_path / "run")) == made
    assert [row["release"] for row in rows if row["void"]] == [row["release"] for row in kept]
    assert sum(played.values()) <= 1500 and result.summary["privacy"]["epsilon"] == 3.0


def test_rounds_that_are_withheld_after_the_last_release_count_in_the_regret(tmp_path):
    """One report in a hundred is lost, and all slots must be filled: the sixth batch never comes.

    It is asked three times of 680 clients each, who have played what the core set has.
    """
    base = bandit(
        clients=3000, task={"least": 1.0}, population={"dropout": 0.01}, participation=DEADLINE
    )
    summary = run(base, out=tmp_path / "run").summary
    rows, kept = rows_of(tmp_path / "run"), rows_of(tmp_path / "run", "withheld")
    last = max(row["release"] for row in rows if not row["void"])
    after = sum(row["asked"] for row in kept if row["release"] > last)
    assert after == 3 * 680, "with this seed"
    found = summary["bandit"]
    assert found["rounds"] == 2624 == sum(row["slots"] for row in rows)
    assert found["void"] == 0 and summary["metrics"]["withheld"] == len(kept)
    errors = rows_of(tmp_path / "run", "errors")
    assert [row["release"] for row in errors] == [row["release"] for row in rows]
    assert summary["metrics"]["regret"] == errors[-1]["regret"]
    before = next(row["regret_so_far"] for row in errors if row["release"] == last)
    assert errors[-1]["regret_so_far"] > 3 * before
    assert found["certificate"] == rows[-1]["certificate"] >= summary["metrics"]["regret"]


def test_the_ask_says_how_small_a_batch_may_be_and_not_the_shuffler(tmp_path):
    base = bandit(clients=600, shuffle={"min_batch": 50})
    assert base.least_batch == 50
    run(base, out=tmp_path / "with")
    assert rows_of(tmp_path / "with")[0]["slots"] == 4
    run(bandit(clients=600), out=tmp_path / "without")
    assert_identical(tmp_path / "with", tmp_path / "without")


def test_a_run_that_may_ask_no_more_says_so(tmp_path):
    summary = run(bandit(clients=600, task={"rounds": 2}), out=tmp_path / "run").summary
    assert "task.rounds allows 2 batches" in summary["ended_early"]
    assert measure_of([summary]) == "regret"


def test_a_client_that_was_handed_a_slot_is_not_asked_again(tmp_path):
    base = bandit(clients=300, population={"dropout": 0.25}, participation=DEADLINE)
    run(base, out=tmp_path / "run")
    handed = Handed(tmp_path / "run" / "ledger", 300)
    handed.begin(0)
    lost = 0
    for release, clients in served(tmp_path / "run").items():
        asked = set(np.flatnonzero(handed.release == release).tolist())
        assert clients <= asked
        lost += len(asked - clients)
    assert lost > 0
    rows = rows_of(tmp_path / "run")
    assert np.count_nonzero(handed.release >= 0) >= rows[-1]["rounds"]


def test_the_ledger_stops_a_run_whose_shuffler_asks_a_client_again(tmp_path, monkeypatch):
    everyone = np.ones(600, np.bool_)
    monkeypatch.setattr(Handed, "able", lambda self, release: everyone)
    with pytest.raises(RunError, match="a client serves in one batch only"):
        run(bandit(clients=600), out=tmp_path / "run")
    who = served(tmp_path / "run")
    assert sum(map(len, who.values())) == len(set().union(*who.values()))


def test_clients_that_come_when_they_can_fill_batches_of_any_size(tmp_path):
    base = bandit(
        clients=700,
        population={
            "availability": {"kind": "outages", "regions": 3, "outage": 0.2, "period": 40.0},
            "latency": {"kind": "lognormal", "median": 5.0, "sigma": 1.0},
            "dropout": 0.1,
            "duplicates": 0.3,
        },
        participation={
            "kind": "asynchronous",
            "batch": 1,
            "every": 20.0,
            "deadline": 30.0,
            "patience": 400.0,
        },
        task={"least": 0.6},
    )
    result = placed_everywhere(base, tmp_path, stop=2)
    rows = result.metrics.to_pylist()
    assert len(rows) >= 4 and all(row["stalest"] == 0 for row in rows)
    assert any(row["late"] for row in rows) and any(row["repeated"] for row in rows)
    played = rows_of(tmp_path / "base")
    assert [row["reports"] for row in played] == [row["batch_size"] for row in rows]
    assert all(row["reports"] <= row["slots"] for row in played)
    who = served(tmp_path / "base")
    assert sum(map(len, who.values())) == len(set().union(*who.values()))


@pytest.mark.parametrize("trust", ["shuffle", "local", "central"])
def test_a_budget_that_is_not_below_the_run_s_epsilon_changes_nothing(trust, tmp_path):
    delta = 1e-6 if trust == "shuffle" else 0.0
    run(bandit(trust, 400), out=tmp_path / "without")
    budget = {"privacy": {"budget": {"epsilon": 3.0, "delta": delta}}}
    if trust == "shuffle":
        budget["privacy"]["delta"] = 1e-6
    result = run(bandit(trust, 400, **budget), out=tmp_path / "with")
    assert_identical(tmp_path / "without", tmp_path / "with")
    assert 0.0 < result.summary["privacy"]["budget"]["exhausted"] < 1.0


def test_colluding_clients_make_noise_for_fewer(tmp_path):
    honest = bandit(clients=3000)
    half = bandit(clients=3000, privacy={"honest_fraction": 0.5})
    sizes = []
    for number, base in enumerate((honest, half)):
        result = run(base, out=tmp_path / str(number))
        assert result.summary["privacy"]["epsilon"] == 3.0
        sizes.append(rows_of(tmp_path / str(number))[-1]["epsilon0"])
    assert sizes[1] < sizes[0]
    event = [row.shuffled for row in store.charges(tmp_path / "1" / "ledger")][-1]
    assert event.n == rows_of(tmp_path / "1")[-1]["reports"] // 2


def test_the_run_ends_when_one_action_is_left_and_nothing_is_left_to_ask(tmp_path):
    two = {"actions": [[1.0, 0.0], [-1.0, 0.0]]}
    mechanism = {**MECHANISMS["central"], "epsilon": 100.0}
    base = bandit("central", 20_000, task=two, mechanism=mechanism)
    result = run(base, out=tmp_path / "run")
    assert result.summary["bandit"]["active"] == 1
    assert result.summary["bandit"]["batches"] < most_batches(20_000)
    assert "ended_early" not in result.summary


def test_contextual_runs_are_the_same_wherever_they_are_played(tmp_path):
    base = contextual(clients=400, population={"dropout": 0.1}, participation=DEADLINE)
    result = placed_everywhere(base, tmp_path, stop=2)
    assert "joint DP" in result.summary["bandit"]["protects"]
    assert result.summary["bandit"]["actions"] == 12
    assert (tmp_path / "base" / "policy" / "recommended.npz").exists()


def test_both_regrets_of_a_contextual_run_are_reported(tmp_path, capsys):
    """They differ by the chance of the contexts: a sum of T bounded terms, within 8 sqrt(T)."""
    result = run(contextual(clients=20_000), out=tmp_path / "run")
    own, linear = (result.summary["metrics"][name] for name in ("regret", "linear_regret"))
    assert own != linear and abs(own - linear) < 8.0 * math.sqrt(20_000)
    assert linear <= result.summary["bandit"]["certificate"]
    print_summary(result.summary)
    assert ": the linear regret is no larger, with probability" in capsys.readouterr().out
    with np.load(tmp_path / "run" / "policy" / "recommended.npz") as found:
        assert found["plays"].tolist() == [2, 0, 2]
    assert result.summary["bandit"]["name"] == "2-0-2"
    assert result.summary["bandit"]["estimate"] == pytest.approx(0.5418, abs=0.1)


def test_with_a_sampled_table_the_certificate_is_withheld(tmp_path):
    generator = np.random.default_rng(1)
    features = generator.uniform(-0.5, 0.5, (2, 3, 3)).round(3).tolist()
    data = {"kind": "contextual-rewards", "theta": [0.5, 0.3, 0.1], "probabilities": [0.5, 0.5]}
    task = {"features": features, "probabilities": [0.5, 0.5], "policies": 50}
    base = contextual(clients=300, task=task, population={"data": data})
    found = run(base, out=tmp_path / "run").summary["bandit"]
    assert found["certificate"] is None and found["confidence"] is None


@pytest.mark.parametrize("name", PLAYED)
def test_a_shipped_bandit_runs(name, tmp_path):
    few = {"placement__backend": "inline", "population__clients": 3000}
    summary = run(shipped()[name], out=tmp_path / "run", **few).summary
    assert summary["bandit"]["batches"] >= 4 and "ended_early" not in summary
    certificate = summary["bandit"]["certificate"]
    assert (certificate is None) == (name == "bandits/five-features"), "its table is a sample"
    assert 0.0 <= summary["metrics"]["regret"] <= (certificate or math.inf)
    mechanism = load(shipped()[name]).mechanism
    stated = mechanism.target.epsilon if mechanism.target else mechanism.need_epsilon()
    assert summary["privacy"]["epsilon"] == stated


@pytest.mark.parametrize("seed", [5, pytest.param(7, marks=pytest.mark.long)])
def test_a_bandit_killed_at_any_command_resumes_to_the_same_result(seed, tmp_path, monkeypatch):
    """SIGKILL at three seeded points of a run in which batches are withheld."""
    base = bandit(clients=400, population={"dropout": 0.3}, participation=DEADLINE)
    commands, execute = [], Conductor.execute

    def counting(self, command):
        commands.append(command)
        execute(self, command)

    monkeypatch.setattr(Conductor, "execute", counting)
    run(base, out=tmp_path / "whole")
    assert any(isinstance(command, engine.Discard) for command in commands)
    points = random.Random(seed).sample(range(3, len(commands)), 3)
    deaths = {point: tmp_path / f"inline-{point}" for point in points}
    killed(base, "inline", deaths)
    for folder in deaths.values():
        check_resumed(tmp_path / "whole", folder)


@pytest.mark.cluster
def test_a_bandit_on_ray_is_the_one_of_a_single_process(tmp_path, ray_session):
    base = bandit(clients=600, population={"dropout": 0.1}, participation=DEADLINE)
    run(base, out=tmp_path / "inline")
    placed = {"backend": "ray", "clients_per_actor": 300, "checkpoint_seconds": 0}
    on_ray = document(clients=600, population={"dropout": 0.1}, participation=DEADLINE)
    run({**on_ray, "placement": placed, "shuffle": {"shufflers": 2}}, out=tmp_path / "ray")
    assert_identical(tmp_path / "inline", tmp_path / "ray")


def test_the_picture_of_a_bandit(tmp_path, drawn):
    base = with_placement(bandit(clients=400, repeat=2))
    assert run(base, out=tmp_path / "run").plot().stat().st_size > 20_000
