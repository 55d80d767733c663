"""One client over time, and all clients at one moment, from the rows alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raydp_sim.privacy.events import LocalReport, Shuffle, SubsampledShuffle
from raydp_sim.privacy.ledger.histories import history, replayed, standing
from raydp_sim.privacy.ledger.ledger import Ledger
from raydp_sim.privacy.ledger.participations import gini
from raydp_sim.privacy.ledger.store import Charge

DELTA = 1e-6


def rows(clients=30, releases=12, seed=3):
    draw = np.random.default_rng(seed)
    made = []
    for release in range(releases):
        members = np.flatnonzero(draw.random(clients) < 0.4).astype(np.uint32)
        size = int(draw.choice([300, 1500]))
        made.append(
            Charge(0, release, 2.0 * release, LocalReport(1.0), members, Shuffle(1.0, size))
        )
    return made


def test_a_history_ends_with_what_the_ledger_says_of_the_client():
    made = rows()
    for until in (0, 5, 11):
        ledger = replayed(made, Ledger(30, DELTA), until)
        for client in range(30):
            own = history(made[: until + 1], client, Ledger(30, DELTA))
            assert len(own) == ledger.participations()[client]
            spent = own[-1].epsilon if own else 0.0
            assert spent == pytest.approx(ledger.epsilons()[client], rel=1e-12)
            assert np.all(np.diff([entry.epsilon for entry in own]) > 0)


def test_an_entry_says_what_happened():
    made = rows()
    client = int(made[4].participants[0])
    (entry,) = (entry for entry in history(made, client, Ledger(30, DELTA)) if entry.release == 4)
    assert (entry.time, entry.n, entry.epsilon0) == (8.0, len(made[4].participants), 1.0)
    assert entry.event == made[4].shuffled and entry.took_part
    assert entry.delta == DELTA and entry.bound == "rdp-best"


def test_who_might_have_been_sampled_is_charged_without_taking_part():
    event = SubsampledShuffle(1.0, 1000, 100)
    made = [
        Charge(0, release, 0.0, LocalReport(1.0), range(50 * release, 50 * release + 100), event)
        for release in range(3)
    ]
    entries = history(made, 999, Ledger(1000, DELTA))
    assert [entry.took_part for entry in entries] == [False] * 3
    found = standing(replayed(made, Ledger(1000, DELTA)))
    assert entries[-1].epsilon == found.guarantee.epsilon
    assert entries[-1].epsilon0 is None and found.never == 0.0 and found.sampled
    assert found.participation["max"] == 2 and found.least == found.guarantee.epsilon > 0


def test_the_distribution_is_that_of_the_clients():
    ledger = replayed(rows(), Ledger(30, DELTA))
    each, found = ledger.epsilons(), standing(ledger)
    shown = found.per_client()
    assert shown["max"] == each.max() == each[shown["worst"]] and shown["min"] == each.min()
    in_order = np.sort(each)
    assert shown["p5"] == in_order[1] and shown["p95"] == in_order[28]
    assert shown["median"] == in_order[14]
    counts = ledger.participations()
    assert shown["never"] == (counts == 0).mean()
    assert found.participation["median"] == np.median(counts)


def test_nothing_charged_stands_at_nothing():
    found = standing(Ledger(5, DELTA))
    assert found.never == 1.0 and set(found.per_client().values()) == {0.0, 1.0}
    assert found.participation["gini"] == 0.0


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40))
def test_gini_is_the_mean_difference_over_twice_the_mean(counts):
    counts = np.array(counts)
    differences = np.abs(counts[:, None] - counts[None]).mean()
    expected = differences / (2 * counts.mean()) if counts.any() else 0.0
    assert gini(counts) == pytest.approx(expected, abs=1e-12)
