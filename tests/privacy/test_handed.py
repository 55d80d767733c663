"""Clients that serve once: the ledger writes down who was handed a slot, and refuses a second."""

import numpy as np
import pytest

from raydp_sim.actors.ledger import LedgerActor
from raydp_sim.errors import RunError
from raydp_sim.privacy.events import LocalReport, Shuffle
from raydp_sim.privacy.ledger.handed import LOG, Handed
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.schedule.batch import Cohort
from raydp_sim.tasks.base import Ask
from tests.tasks.bandits.playing import bandit


def ids(*clients):
    return np.array(clients, dtype=np.uint32)


def test_a_client_is_spent_once_it_was_handed_a_slot(tmp_path):
    handed = Handed(tmp_path, 6)
    handed.begin(0)
    handed.hand(0, ids(1, 4))
    assert handed.able(1).tolist() == [True, False, True, True, False, True]
    with pytest.raises(RunError, match="client 4 was handed a slot in release 0 and would get"):
        handed.hand(1, ids(0, 4))
    # A refusal leaves everything as it was.
    assert handed.able(1).tolist() == [True, False, True, True, False, True]
    handed.hand(1, ids(0))
    assert handed.able(2).sum() == 3


def test_who_was_handed_a_slot_is_known_after_a_restart(tmp_path):
    first = Handed(tmp_path, 6)
    first.begin(0)
    first.hand(0, ids(1, 4))
    first.hand(1, ids(0, 2))
    first.begin(1)
    first.hand(0, ids(1, 2, 3))
    again = Handed(tmp_path, 6)
    again.begin(0)
    again.begin(0)  # as a ledger does: when it is made, and when the run goes on
    # Release 1 is played again: those of before are able, and so are its own.
    assert again.able(1).tolist() == [True, False, True, True, False, True]
    size = (tmp_path / LOG).stat().st_size
    again.hand(1, ids(0, 2))
    assert (tmp_path / LOG).stat().st_size == size
    with pytest.raises(RunError, match="release 1 was handed out to other clients before"):
        again.hand(1, ids(0, 3))
    again.begin(1)
    assert again.able(1).tolist() == [True, False, False, False, True, True]


def test_a_record_that_a_crash_cut_short_was_never_handed_out(tmp_path):
    first = Handed(tmp_path, 6)
    first.begin(0)
    first.hand(0, ids(1, 4))
    first.hand(1, ids(0, 2))
    whole = (tmp_path / LOG).read_bytes()
    (tmp_path / LOG).write_bytes(whole[:-3])
    again = Handed(tmp_path, 6)
    again.begin(0)
    assert again.able(5).tolist() == [True, False, True, True, False, True]


def ledger_of(tmp_path, trust="shuffle"):
    base = bandit(trust, 600)
    return base, LedgerActor(base.document(), str(tmp_path))


def charged(actor, base, release, clients):
    ask = Ask(base.task.ask(actor.setting, base.task.init(actor.setting)).mechanism, slots=(1, 1))
    known = {"values": len(clients), "fewest": 1, "most": 1, "slots": (1, len(clients) - 1)}
    actor.charge(release, 0.0, ask, known, ids(*clients))
    return actor.ledger


def test_the_ledger_charges_nobody_who_was_not_handed_a_slot_of_the_release(tmp_path):
    base, actor = ledger_of(tmp_path)
    actor.hand(0, Cohort(ids(3, 5), np.zeros(2, np.int64), lost=ids(4)))
    ledger = charged(actor, base, 0, (3, 5))
    assert ledger.participations().sum() == 2 and ledger.guarantee().epsilon == 3.0
    actor.hand(1, Cohort(ids(1, 2), np.zeros(2, np.int64)))
    for clients, words in (((1, 5), "client 5"), ((1, 4), "client 4"), ((1, 6), "client 6")):
        with pytest.raises(RunError, match=f"{words} would be charged for release 1"):
            charged(actor, base, 1, clients)
    with pytest.raises(RunError, match="client 4 was handed a slot in release 0"):
        actor.hand(2, Cohort(ids(4), np.zeros(1, np.int64)))
    assert charged(actor, base, 1, (1, 2)).guarantee().epsilon == 3.0


def test_a_ledger_of_clients_that_serve_once_refuses_a_second_charge():
    plan = ((LocalReport(1.0), Shuffle(1.0, 1), 1),)
    ledger = Ledger(10, rule="once", plan=plan)
    ledger.charge(LocalReport(1.0), ids(0, 3), Shuffle(1.0, 2))
    with pytest.raises(ValueError, match="charged twice"):
        ledger.charge(LocalReport(1.0), ids(3, 4), Shuffle(1.0, 2))
    with pytest.raises(ValueError, match="charged twice"):
        ledger.charge(LocalReport(1.0), range(10), Shuffle(1.0, 2))
    assert ledger.participations().tolist() == [1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert ledger.epsilons().tolist() == [1.0, 0, 0, 1.0, 0, 0, 0, 0, 0, 0]


def test_releases_of_disjoint_clients_cost_what_the_dearest_may_and_no_dearer_one_is_made():
    """Shuffle(3, 10,000) is (0.4, 1e-6)-DP and Shuffle(3, 50) is not (1, 1e-6)-DP."""
    ledger = Ledger(20_000, rule="once", plan=((LocalReport(1.0), Shuffle(1.0, 1), 1),))
    ledger.charge(LocalReport(1.0), range(0, 4), Shuffle(1.0, 4))
    ledger.charge(LocalReport(3.0), range(4, 10_004), Shuffle(3.0, 10_000))
    found = ledger.guarantee()
    assert (found.epsilon, found.delta, found.bound) == (1.0, 1e-6, "parallel-composition")
    assert found.median == 1.0 and ledger.epsilons().max() == 1.0
    with pytest.raises(ValueError, match="no release was to cost more than 1"):
        ledger.charge(LocalReport(3.0), range(11_000, 11_050), Shuffle(3.0, 50))
    # Reports by themselves lose 3, and that would be said of them.
    local = Ledger(10, rule="once", plan=((LocalReport(1.0), None, 1),), collector="server")
    with pytest.raises(ValueError, match="it costs epsilon 3"):
        local.charge(LocalReport(3.0), range(2))
    local.charge(LocalReport(1.0), range(2))
    local.charge(LocalReport(1.0), range(2, 9))
    assert local.guarantee().epsilon == 1.0 and local.guarantee().delta == 0.0
