"""Plan, rows, summary and ledger of a run say one epsilon, by one bound."""

import math
from pathlib import Path

import numpy as np
import pytest

from raydp_sim.errors import RunError
from raydp_sim.metrics import streams
from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.events import LocalReport, Shuffle
from raydp_sim.privacy.ledger import store
from raydp_sim.privacy.ledger.histories import history, replayed, standing
from raydp_sim.privacy.ledger.ledger import HISTORIES, Ledger
from raydp_sim.privacy.spent import rounded_up, spent
from raydp_sim.run import run
from raydp_sim.run.play import prepare
from raydp_sim.scenario import bound_mechanism, load
from raydp_sim.scenario.accounting import opened, planned, rule
from tests.conftest import scenario

SHIPPED = Path(__file__).resolve().parents[1] / "scenarios"
FILES = sorted(SHIPPED.glob("*.yaml"))
STRESS = [SHIPPED / "stress" / f"{name}.yaml" for name in ("half-dropout", "spent-budgets")]
DELTA = 1e-6


@pytest.mark.parametrize("file", [*FILES, *STRESS], ids=lambda file: file.stem)
def test_no_two_places_of_a_run_say_different_epsilons(file, tmp_path):
    assignments = ["placement.backend=inline"]
    if "user" not in file.stem:  # whose two releases are the protocol
        assignments.append("task.rounds=2")
    base = load(file, assignments)
    made, plans = prepare(base, tmp_path / "run"), []
    made.watcher.planned = lambda found: plans.append(found.epsilon)
    rows = list(made.play())
    privacy = made.result.summary["privacy"]
    assert plans == [privacy["planned"]] == [planned(base, bound_mechanism(base))]
    last = {row["repetition"]: row for row in rows}
    worst = max(last.values(), key=lambda row: row["epsilon"])
    for name in ("epsilon", "delta", "bound"):
        assert privacy[name] == worst[name]
    assert privacy["per_client"]["median"] == worst["epsilon_median"]
    assert privacy["epsilon"] <= privacy["planned"] * (1 + 1e-12)
    for row in rows:
        charges = store.charges(tmp_path / "run" / "ledger", row["repetition"])
        ledger = replayed(charges, opened(base, bound_mechanism(base)), row["release"])
        found = standing(ledger)
        assert (found.guarantee.epsilon, found.guarantee.median, found.guarantee.bound) == (
            row["epsilon"],
            row["epsilon_median"],
            row["bound"],
        )
        assert ledger.epsilons().max() == row["epsilon"]


def test_the_quickstart_says_what_the_calculator_says_of_its_releases():
    base = load(SHIPPED / "quickstart.yaml", ["placement.backend=inline"])
    ledger = opened(base, bound_mechanism(base))
    ((_, release, times),) = ledger.plan
    found = spent([(release, times)], base.privacy.delta)
    assert planned(base, bound_mechanism(base)) == found.epsilon
    assert found.epsilon == account([(release, times)], base.privacy.delta).epsilon < 0.094


def test_a_target_gives_what_the_calculator_calibrates():
    krr = {"kind": "krr", "categories": 50, "target": {"epsilon": 1.0, "delta": 1e-8}}
    base = scenario(
        8000,
        24,
        population={"clients": 8000, "data": {"kind": "categorical", "categories": 50}},
        participation={"kind": "asynchronous", "batch": 4000, "every": 60.0},
        privacy={"delta": 1e-8},
        mechanism=krr,
    )
    found = bound_mechanism(base)
    # `raydp-sim account calibrate --epsilon 1 --clients 4000 --rounds 24 --delta 1e-8
    # --mechanism krr --alphabet 50` prints 2.72869.
    assert found.epsilon_local == pytest.approx(2.72869, abs=1e-5)
    assert planned(base, found) <= 1.0


# How clients' histories are put together.


def charged(sizes, seed=1, clients=12, rule="laws", share=0.5):
    """A ledger, and each client's true history."""
    draw, ledger = np.random.default_rng(seed), Ledger(clients, DELTA, rule=rule)
    own = [[] for _ in range(clients)]
    for size in sizes:
        members = np.flatnonzero(draw.random(clients) < share).astype(np.uint32)
        ledger.charge(LocalReport(1.0), members, Shuffle(1.0, size, "2rr"))
        for client in members:
            own[client].append(Shuffle(1.0, size, "2rr"))
    return ledger, own


@pytest.mark.parametrize("sizes", [[500] * 8, [500, 900, 700, 650, 1200], [300, 2000] * 3])
def test_no_client_is_charged_less_than_its_own_history(sizes):
    ledger, own = charged(sizes)
    guarantee, each = ledger.guarantee(), ledger.epsilons()
    assert guarantee.bound == "pld-variation"
    for client, events in enumerate(own):
        exact = spent([(event, 1) for event in events], DELTA).epsilon
        assert each[client] >= exact * (1 - 1e-6)
    assert guarantee.epsilon == each.max() and guarantee.median == np.sort(each)[5]
    assert guarantee.epsilon <= charged(sizes, rule="divergences")[0].guarantee().epsilon


def test_one_size_is_charged_exactly_and_a_history_shows_it():
    ledger, own = charged([500] * 6)
    for client in (0, 1):
        exact = spent([(Shuffle(1.0, 500, "2rr"), len(own[client]))], DELTA).epsilon
        assert ledger.epsilons()[client] == exact
    rows = [
        store.Charge(0, r, 1.0 * r, LocalReport(1.0), range(9), Shuffle(1.0, 9)) for r in (0, 1)
    ]
    ends = history(rows, 3, Ledger(20, DELTA, rule="laws"))
    assert [entry.epsilon for entry in ends] == [
        spent([(Shuffle(1.0, 9), times)], DELTA).epsilon for times in (1, 2)
    ]


def test_beyond_so_many_histories_divergences_are_added_and_the_row_says_so():
    clients = HISTORIES + 6
    ledger = Ledger(clients, DELTA, rule="laws")
    for release in range(clients - 1):
        ledger.charge(LocalReport(0.1), range(release + 1), Shuffle(0.1, 5000, "2rr"))
    # Counts 0 to clients - 1, of which those beyond 32 share every second, then fourth, number.
    different = {rounded_up(count) for count in range(clients)}
    assert len(different) <= HISTORIES and ledger.guarantee().bound == "pld-variation"
    many = Ledger(400, DELTA, rule="laws")
    for release in range(399):
        many.charge(LocalReport(0.1), range(release + 1), Shuffle(0.1, 5000, "2rr"))
    assert many.guarantee().bound == "rdp-best"


def test_kinds_that_have_no_order_are_added_by_divergences():
    ledger = Ledger(10, DELTA, rule="laws")
    ledger.charge(LocalReport(1.0), range(5), Shuffle(1.0, 900, "2rr"))
    ledger.charge(LocalReport(2.0), range(5, 10), Shuffle(2.0, 900, "2rr"))
    assert ledger.guarantee().bound == "rdp-best"


def test_rounds_are_rounded_up_and_exact_where_the_plan_ends():
    for times in range(1, 3000):
        up = rounded_up(times)
        assert times <= up <= times * (1 + 1 / 16) and rounded_up(up) == up
        assert rounded_up(times, planned=times) == times


# What was released may end a run.


def test_a_task_that_may_end_the_run_is_charged_all_of_its_plan_from_the_start(tmp_path):
    mine = {"kind": "tests.tasks.examples:Impatient", "rounds": 5}
    base = scenario(400, 5, task=mine)
    assert rule(base) == "plan"
    made = run(base, out=tmp_path / "run")
    rows = streams.read(tmp_path / "run" / "metrics", "releases")["epsilon"].to_pylist()
    privacy = made.summary["privacy"]
    assert len(rows) < 5 and set(rows) == {privacy["epsilon"]} == {privacy["planned"]}
    assert "may end the run" in privacy["assumption"]


def test_a_task_that_ends_a_run_though_it_says_it_never_does_is_refused(tmp_path):
    base = scenario(400, 5, task={"kind": "tests.tasks.examples:Pretending", "rounds": 5})
    assert rule(base) == "laws"
    with pytest.raises(RunError, match="open_ended"):
        run(base, out=tmp_path / "run")


def test_budgets_are_kept_and_reported_by_divergences():
    base = scenario(400, 5, privacy={"budget": {"epsilon": 2.0, "delta": DELTA}})
    assert rule(base) == "divergences"
    assert math.isfinite(planned(base, bound_mechanism(base)))


def test_who_is_absent_by_its_data_breaks_the_condition_and_every_place_says_so(tmp_path):
    stress = SHIPPED / "stress" / "adversarial-absence.yaml"
    found = run(load(stress, ["task.rounds=2"]), out=tmp_path / "run").summary["privacy"]
    assert "chosen by the clients' data" in found["assumption"]
    assert "by which those who stay away are chosen" in found["presence"]
    base = load(stress, ["task.rounds=2"])
    ledger = opened(base, bound_mechanism(base))
    assert "no guarantee of this run" in ledger.guarantee().assumption
    steady = load(SHIPPED / "stress" / "half-dropout.yaml")
    assert "chosen" not in opened(steady, bound_mechanism(steady)).guarantee().assumption


LAPLACE = {"kind": "laplace", "radius": 4.0}
VECTORS = {"kind": "gaussian", "dimension": 4, "clip": 1.0}


@pytest.mark.parametrize("rounds,sampled", [(1, None), (6, None), (6, 300)])
def test_targets_are_met_within_half_a_percent(rounds, sampled):
    """Also of a randomizer without a known law, where divergences say less than clones."""
    policy = {"kind": "all"} if sampled is None else {"kind": "uniform", "sampled": sampled}
    base = scenario(
        900,
        rounds,
        population={"clients": 900, "data": VECTORS},
        participation=policy,
        mechanism={**LAPLACE, "target": {"epsilon": 2.0, "delta": DELTA}},
        privacy={"delta": DELTA},
    )
    assert 0.995 * 2.0 <= planned(base, bound_mechanism(base)) <= 2.0
