"""The ledger charges what happened, to whom it happened, and survives on disk."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.events import (
    CentralRelease,
    GaussianRelease,
    LocalReport,
    MultiMessageShuffle,
    Shuffle,
    SubsampledShuffle,
)
from raydp_sim.privacy.floors.floors import least_epsilon
from raydp_sim.privacy.ledger import store
from raydp_sim.privacy.ledger.divergences import Divergences
from raydp_sim.privacy.ledger.filter import Filter
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.privacy.ledger.sizes import rounded
from raydp_sim.privacy.spent import spent
from tests.privacy.oracle import Oracle


def ids(*numbers):
    return np.array(numbers, dtype=np.uint32)


@given(
    clients=st.integers(1, 30),
    rounds=st.lists(st.sets(st.integers(0, 29)), max_size=12),
    epsilon=st.floats(0.01, 8),
)
def test_epsilon_is_the_local_one_times_the_participations(clients, rounds, epsilon):
    ledger = Ledger(clients)
    counts = np.zeros(clients)
    for members in rounds:
        members = sorted(m for m in members if m < clients)
        ledger.charge(LocalReport(epsilon), ids(*members))
        counts[members] += 1
    guarantee = ledger.guarantee()
    assert guarantee.epsilon == counts.max() * epsilon
    assert guarantee.median == pytest.approx(np.median(counts) * epsilon, rel=1e-12)
    assert guarantee.delta == 0 and guarantee.bound == "local-composition"


def test_deltas_add_up_too():
    ledger = Ledger(3)
    for _ in range(4):
        ledger.charge(LocalReport(1.0, 1e-7), ids(0, 2))
    assert ledger.guarantee().delta == pytest.approx(4e-7, rel=1e-12)


def test_different_events_of_one_client_add_up():
    ledger = Ledger(2)
    ledger.charge(LocalReport(1.0, 1e-7), ids(0))
    ledger.charge(LocalReport(0.5), ids(0, 1))
    guarantee = ledger.guarantee()
    assert guarantee.epsilon == 1.5 and guarantee.delta == 1e-7


def test_views_are_not_mixed():
    ledger = Ledger(2)
    ledger.charge(LocalReport(1.0), ids(0))
    ledger.charge(CentralRelease(1.0), ids(0))
    with pytest.raises(ValueError, match="no common view"):
        ledger.guarantee()


def test_a_refused_charge_leaves_the_ledger_as_it_was():
    ledger = Ledger(2)
    with pytest.raises(ValueError, match="client 7"):
        ledger.charge(LocalReport(1.0), ids(0, 7))
    assert not ledger.charged


def test_an_empty_ledger_proves_zero():
    assert Ledger(3).guarantee().epsilon == 0


@given(members=st.sets(st.integers(0, 199)), clients=st.integers(200, 100_000))
def test_a_row_comes_back_as_it_was_written(members, clients):
    for participants in (ids(*sorted(members)), range(3, 3 + len(members))):
        charge = store.Charge(1, 5, 2.5, LocalReport(0.5, 1e-9), participants)
        again = store.Charge.of_row(charge.row(clients))
        assert again.same_as(charge) and type(again.participants) is type(participants)


def test_consecutive_clients_are_written_as_a_range_however_they_came():
    assert store.canonical(ids(4, 5, 6)) == range(4, 7)
    assert store.canonical(range(4, 7)) == range(4, 7)
    assert store.canonical(ids(4, 6)).tolist() == [4, 6]
    assert len(store.canonical(ids())) == 0


def test_ranges_and_lists_charge_the_same():
    one, other = Ledger(5), Ledger(5)
    for first, last in ((0, 5), (0, 3), (2, 5)):
        one.charge(LocalReport(1.0), range(first, last))
        other.charge(LocalReport(1.0), np.arange(first, last, dtype=np.uint32))
    assert one.guarantee() == other.guarantee()
    assert one.guarantee().epsilon == 3.0 and one.guarantee().median == 2.0


def test_same_as_notices_every_difference():
    charge = store.Charge(0, 1, 1.0, LocalReport(0.5), ids(1, 2))
    others = [
        store.Charge(1, 1, 1.0, LocalReport(0.5), ids(1, 2)),
        store.Charge(0, 2, 1.0, LocalReport(0.5), ids(1, 2)),
        store.Charge(0, 1, 1.0, LocalReport(0.6), ids(1, 2)),
        store.Charge(0, 1, 1.0, LocalReport(0.5), ids(1, 3)),
    ]
    assert charge.same_as(charge) and not any(charge.same_as(other) for other in others)


DELTA = 1e-6


def test_sampled_releases_are_charged_to_everyone():
    ledger, fixed = Ledger(5000, DELTA), Ledger(5000, DELTA, rule="laws")
    event = SubsampledShuffle(1.0, 5000, 500, "2rr")
    for release in range(10):
        cohort = np.arange(release, 5000, 10, dtype=np.uint32)
        ledger.charge(LocalReport(1.0), cohort, event)
        fixed.charge(LocalReport(1.0), cohort, event)
    quick, exact = ledger.guarantee(), fixed.guarantee()
    best = account([(event, 10)], DELTA)
    assert exact.epsilon == best.epsilon and exact.bound == best.best
    assert best.epsilon <= quick.epsilon == quick.median < 1.0
    assert quick.delta == DELTA and "every eligible client" in quick.assumption


def test_shuffled_releases_are_charged_to_participants_with_the_batch_that_formed():
    ledger = Ledger(2000, DELTA)
    small, large = Shuffle(1.0, 300), Shuffle(1.0, 1500)
    ledger.charge(LocalReport(1.0), range(300), small)
    ledger.charge(LocalReport(1.0), range(500, 2000), large)
    ledger.charge(LocalReport(1.0), range(500, 2000), large)
    guarantee = ledger.guarantee()
    # Divergences of few different sizes are added as they are.
    one, two = (account([(e, n)], DELTA) for e, n in ((small, 1), (large, 2)))
    assert guarantee.epsilon >= max(one["rdp-best"].capped, two["rdp-best"].capped) * (1 - 1e-9)
    assert guarantee.epsilon <= 1.03 * max(one["rdp-best"].capped, two["rdp-best"].capped)
    assert guarantee.median < guarantee.epsilon and "took part" in guarantee.assumption


def test_the_two_kinds_of_charge_are_never_mixed():
    ledger = Ledger(100, DELTA)
    ledger.charge(LocalReport(1.0), range(100), Shuffle(1.0, 100))
    with pytest.raises(ValueError, match="never both"):
        ledger.charge(LocalReport(1.0), range(50), SubsampledShuffle(1.0, 100, 50))
    assert len(ledger.shuffled) == 1 and ledger.guarantee().epsilon <= 1.0


def test_the_sum_of_local_losses_is_reported_where_it_is_smaller():
    ledger = Ledger(3, DELTA)
    ledger.charge(LocalReport(0.01), range(2), Shuffle(0.01, 2))
    guarantee = ledger.guarantee()
    assert guarantee.epsilon == 0.01 and guarantee.delta == 0
    assert guarantee.bound == "local-composition"


@given(n=st.integers(1, 10**7))
def test_rounding_a_batch_down_never_counts_more_clients(n):
    for event in (Shuffle(1.0, n), MultiMessageShuffle((0.5, 0.5), n)):
        size = rounded(event).n
        assert 0.83 * n - 1 <= size <= n


def test_a_shuffled_row_comes_back_as_it_was_written():
    release = MultiMessageShuffle((0.5, 0.25), 40, "rbin")
    charge = store.Charge(0, 1, 1.0, LocalReport(0.75), range(40), release)
    again = store.Charge.of_row(charge.row(100))
    assert again.same_as(charge) and again.shuffled == release


# Few events, so that their vectors are computed once.
SIZES = (20, 300, 1500)
LOSSES = (0.25, 1.0)


@st.composite
def charges(draw):
    """A population and what is charged to whom: all, a stretch, or scattered clients."""
    clients = draw(st.integers(1, 40))
    steps = []
    for _ in range(draw(st.integers(0, 12))):
        size, loss = draw(st.sampled_from(SIZES)), draw(st.sampled_from(LOSSES))
        first = draw(st.integers(0, clients))
        kind = draw(st.sampled_from(["all", "range", "ids"]))
        if kind == "all":
            members = range(clients)
        elif kind == "range":
            members = range(first, draw(st.integers(first, clients)))
        else:
            members = ids(*sorted(draw(st.sets(st.integers(0, clients - 1)))))
        steps.append((LocalReport(loss), members, Shuffle(loss, size), draw(st.integers(1, 3))))
    return clients, steps


@settings(deadline=None)  # the first use of an event computes its vector
@given(charges())
def test_adding_up_gives_what_counting_everything_anew_gives(given_charges):
    clients, steps = given_charges
    ledger, oracle = Ledger(clients, DELTA), Oracle(clients, DELTA)
    for step in steps:
        ledger.charge(*step)
        oracle.charge(*step)
        local = ledger._composed()
        assert (local.epsilon, local.delta, local.median) == pytest.approx(oracle.composed())
        amplified = ledger._amplified()
        assert (amplified.epsilon, amplified.median) == pytest.approx(oracle.amplified(), rel=1e-9)
        reported = ledger.guarantee()
        assert reported.epsilon == min(local.epsilon, amplified.epsilon)
        each = ledger.epsilons()
        assert len(each) == clients and each.max() == reported.epsilon
    totals = ledger.participations()
    expected = np.zeros(clients, int)
    for _, members, _, times in steps:
        expected[members] += times
    assert np.array_equal(totals, expected)


@settings(deadline=None)  # the first use of an event computes its vector
@given(charges())
def test_the_same_charges_in_the_same_order_give_the_same_bits(given_charges):
    clients, steps = given_charges
    budget, worst = Filter(1.0, DELTA), Shuffle(1.0, SIZES[0])
    first, again = Ledger(clients, DELTA), Ledger(clients, DELTA)
    for event, members, release, times in steps:
        first.charge(event, members, release, times)
        first.able(event, worst, budget)  # asked for in between or not
    for event, members, release, times in steps:
        listed = np.arange(clients, dtype=np.uint32)[members]
        again.charge(event, listed, release, times)
    assert np.array_equal(first.epsilons(), again.epsilons())
    assert first.guarantee() == again.guarantee()
    report = LocalReport(1.0)
    assert np.array_equal(first.able(report, worst, budget), again.able(report, worst, budget))


def test_a_charge_touches_participants_only(monkeypatch):
    touched = []
    settle = Divergences._settle

    def counting(self, part, spent):
        touched.append(len(spent))
        settle(self, part, spent)

    monkeypatch.setattr(Divergences, "_settle", counting)
    ledger = Ledger(10_000, DELTA)
    for release in range(5):
        members = np.arange(release, 10_000, 100, dtype=np.uint32)
        ledger.charge(LocalReport(1.0), members, Shuffle(1.0, 300))
        ledger.guarantee()
    assert sum(touched) == 5 * 100


def test_releases_with_everyone_need_no_row_per_client():
    ledger = Ledger(10_000, DELTA)
    for _ in range(3):
        ledger.charge(LocalReport(1.0), range(10_000), Shuffle(1.0, 1500))
    assert ledger._spent.rows is None
    alone = Ledger(1, DELTA)
    alone.charge(LocalReport(1.0), range(1), Shuffle(1.0, 1500), times=3)
    assert ledger.guarantee().epsilon == pytest.approx(alone.guarantee().epsilon, rel=1e-12)
    assert ledger.guarantee().median == ledger.guarantee().epsilon


def test_a_report_without_any_guarantee_of_its_own_costs_only_those_who_sent_it():
    ledger = Ledger(3, DELTA)
    ledger.charge(LocalReport(math.inf), ids(1), Shuffle(1.0, 300))
    ledger.charge(LocalReport(0.5), ids(2), Shuffle(0.25, 300))
    assert ledger.guarantee().bound == "rdp-best" and ledger.guarantee().epsilon < 1.0
    assert ledger.epsilons()[0] == 0.0
    alone = Ledger(3, DELTA)
    alone.charge(LocalReport(math.inf), ids(1))
    assert alone.epsilons().tolist() == [0.0, math.inf, 0.0] and alone.guarantee().median == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("releases", [100, pytest.param(1000, marks=pytest.mark.long)])
def test_a_million_clients_and_their_releases_fit_in_two_gib(releases, tmp_path):
    """Charged, written, compacted and read back in a process of its own, which says its peak."""
    script = str(Path(__file__).with_name("ledger_load.py"))
    command = [sys.executable, script, str(tmp_path), str(releases)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    measured = json.loads(done.stdout)
    assert measured["rows"] == releases and measured["peak_bytes"] < 2 << 30
    assert measured["charged"] == measured["replayed"]


def test_releases_known_as_a_whole_and_others_do_not_share_an_account():
    """The divergences of the first would say nothing of the second."""
    ledger = Ledger(clients=3)
    ledger.charge(LocalReport(1.0), range(3), Shuffle(1.0, 100))
    with pytest.raises(ValueError, match="never some"):
        ledger.charge(LocalReport(5.0), range(3))
    other = Ledger(clients=3)
    other.charge(LocalReport(5.0), range(3))
    with pytest.raises(ValueError, match="never some"):
        other.charge(LocalReport(1.0), range(3), Shuffle(1.0, 100))


def test_a_whole_plan_is_never_charged_by_losses_at_another_delta():
    """Reports with deltas of their own add up to more than the ledger's delta."""
    report, release = LocalReport(0.01, 1e-3), Shuffle(4.0, 50)
    ledger = Ledger(3, 1e-6, rule="plan", plan=((report, release, 2),))
    ledger.charge(report, range(3), release)
    assert ledger._amplified().epsilon >= least_epsilon(release, 2, 1e-6) > 0.02


def test_participants_of_equal_releases_are_composed_by_their_losses():
    """Noise of a trusted aggregator: who took part twice pays for two, who did once for one."""
    event, release = CentralRelease(1.5, 1e-8), GaussianRelease(5.0)
    ledger = Ledger(4, 1e-6, rule="laws")
    for who in (ids(0, 1), ids(1, 2)):
        ledger.charge(event, who, release)
    once, twice = (spent([(release, times)], 1e-6).epsilon for times in (1, 2))
    assert ledger.epsilons().tolist() == [once, twice, once, 0.0] and 0.0 < once < twice
    assert ledger.guarantee().epsilon == twice
