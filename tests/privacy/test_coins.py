"""Shuffles of those who joined by their own coins: exact divergences of tiny ones, and bounds."""

import numpy as np
import pytest

from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.bound import find_run
from raydp_sim.privacy.composition.coin_rounds import CoinRound, numbers
from raydp_sim.privacy.composition.law_rounds import LawRound
from raydp_sim.privacy.events import SelfSampledShuffle, SubsampledShuffle
from raydp_sim.privacy.laws import clones, law_of
from tests.privacy.enumeration import hockey_stick, randomized_response, self_sampled_pairs


@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("clients", [2, 3, 4])
@pytest.mark.parametrize("probability", [0.1, 0.6, 1.0])
def test_one_round_is_within_the_law(epsilon0, clients, probability):
    pairs = list(self_sampled_pairs(randomized_response(epsilon0), clients, probability))
    for law in (clones(epsilon0), law_of("2rr", epsilon0, None)):
        stated = CoinRound(law, clients, probability).law(1e-12)
        for epsilon in np.linspace(0.0, epsilon0, 7)[:-1]:
            true = max(hockey_stick(pair, epsilon) for pair in pairs)
            assert true <= float(stated.profile(np.array([epsilon]))[0]) * (1.0 + 1e-9)


@pytest.mark.parametrize("probability", [0.2, 0.7])
def test_two_rounds_are_within_the_bound(probability):
    event = SelfSampledShuffle(1.0, 3, probability, "2rr")
    for delta in (0.01, 0.1):
        epsilon = find_run("pld-coins").epsilon([(event, 2)], delta).epsilon
        for p, q in self_sampled_pairs(randomized_response(1.0), 3, probability):
            twice = (np.multiply.outer(p, p), np.multiply.outer(q, q))
            assert hockey_stick(twice, epsilon) <= delta * (1.0 + 1e-9)


def test_numbers_that_are_put_together_count_no_less_than_each_of_them():
    epsilons = np.linspace(0.0, 0.3, 7)
    for law in (clones(1.5), law_of("rbin", 1.5, None)):
        together = LawRound(law, 90, 1, 110 / 1000).profile(epsilons)
        for k in range(90, 111):
            assert (LawRound(law, k, 1, k / 1000).profile(epsilons) <= together * (1 + 1e-9)).all()


@pytest.mark.parametrize("case", [(60_000, 1 / 6), (1000, 0.1), (20, 0.05), (5, 1.0)])
def test_the_groups_cover_all_numbers_that_may_come(case):
    clients, probability = case
    groups, left = numbers(clients, probability, 1e-9)
    assert [b + 1 for _, b, _ in groups[:-1]] == [a for a, _, _ in groups[1:]]
    nobody = (1.0 - probability) ** clients if groups[0][0] == 1 else 0.0
    total = sum(chance for _, _, chance in groups) + left + nobody
    assert 1.0 - 1e-12 <= total < 1.0 + 1e-6
    assert left <= 1e-9


def test_coins_cost_hardly_more_than_a_cohort_of_the_size_that_comes_on_average():
    coins = SelfSampledShuffle(1.5, 60_000, 1 / 6, "rbin")
    cohort = SubsampledShuffle(1.5, 60_000, 10_000, "rbin")
    by_coins, drawn = (account([(event, 210)], 1e-5) for event in (coins, cohort))
    assert by_coins.best == "pld-coins"
    assert drawn.epsilon < by_coins.epsilon < 1.02 * drawn.epsilon
    assert by_coins.epsilon < by_coins["rdp-mixture"].value / 8.0
