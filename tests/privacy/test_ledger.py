"""The ledger charges what happened, to whom it happened, and survives on disk."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raydp_sim.privacy import store
from raydp_sim.privacy.events import CentralRelease, LocalReport
from raydp_sim.privacy.ledger import Ledger


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


def test_rows_survive_and_a_crash_while_compacting_loses_nothing(tmp_path):
    charges = [store.Charge(0, r, float(r), LocalReport(0.5), ids(r, r + 1)) for r in range(5)]
    for charge in charges:
        store.append(tmp_path, charge, 100)
    before = store.read(tmp_path)
    singles = {path.name: path.read_bytes() for path in tmp_path.glob("*.parquet")}
    store.compact(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.parquet"]
    assert store.read(tmp_path).equals(before)
    (tmp_path / "r000000-00000003.parquet").write_bytes(singles["r000000-00000003.parquet"])
    assert store.read(tmp_path).equals(before)


def test_same_as_notices_every_difference():
    charge = store.Charge(0, 1, 1.0, LocalReport(0.5), ids(1, 2))
    others = [
        store.Charge(1, 1, 1.0, LocalReport(0.5), ids(1, 2)),
        store.Charge(0, 2, 1.0, LocalReport(0.5), ids(1, 2)),
        store.Charge(0, 1, 1.0, LocalReport(0.6), ids(1, 2)),
        store.Charge(0, 1, 1.0, LocalReport(0.5), ids(1, 3)),
    ]
    assert charge.same_as(charge) and not any(charge.same_as(other) for other in others)
