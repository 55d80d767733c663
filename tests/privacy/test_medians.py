"""Medians that are kept up to date are those that looking at everyone would give."""

import numpy as np
import pytest

from raydp_sim.privacy.events import LocalReport
from raydp_sim.privacy.ledger.divergences import Divergences
from raydp_sim.privacy.ledger.filter import ORDERS
from raydp_sim.privacy.ledger.participations import Participations


@pytest.mark.parametrize("seed", range(6))
def test_the_median_epsilon_is_that_of_a_partition(seed):
    draw = np.random.default_rng(seed)
    clients = int(draw.integers(1, 40))
    spent = Divergences(clients, 1e-6)
    for _ in range(60):
        cost = draw.choice([0.0, 0.01, 0.02, draw.random()]) * ORDERS
        members = np.flatnonzero(draw.random(clients) < draw.random()).astype(np.uint32)
        spent.add(cost, draw.choice([0.3, np.inf]), None if draw.random() < 0.1 else members)
        if draw.random() < 0.7:  # not asked every time, so that several charges lie between
            middle = (clients - 1) // 2
            assert spent.median() == np.sort(spent.each())[middle]


@pytest.mark.parametrize("seed", range(6))
def test_the_median_of_sums_is_that_of_all_sums(seed):
    draw = np.random.default_rng(seed)
    clients = int(draw.integers(1, 40))
    taken = Participations(clients)
    for _ in range(40):
        members = np.flatnonzero(draw.random(clients) < draw.random()).astype(np.uint32)
        if draw.random() < 0.3:
            first, last = np.sort(draw.integers(0, clients + 1, 2)).tolist()
            members = range(first, last)
        times = int(draw.integers(1, 4))
        taken.add(LocalReport(0.5), None if draw.random() < 0.1 else members, times)
        assert taken.median() == np.median(taken.epsilons())
        assert taken.with_count.tolist() == np.bincount(taken.counts).tolist()


def test_a_median_that_nobody_passes_is_not_looked_for_again(monkeypatch):
    spent = Divergences(1000, 1e-6)
    searches = []
    monkeypatch.setattr(np, "partition", lambda *given: searches.append(1) or np.sort(given[0]))
    for release in range(400):  # everyone comes twice, in turn
        start = release % 200 * 5
        spent.add(0.01 * ORDERS, np.inf, np.arange(start, start + 5, dtype=np.uint32))
        spent.median()
    assert len(searches) == 2
