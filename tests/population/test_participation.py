"""Who takes part: the choices are uniform, keyed, and cost what the cohort costs."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom, chi2

from raydp_sim.population.availability.always import Always
from raydp_sim.population.availability.bernoulli import Bernoulli
from raydp_sim.population.participation import PARTICIPATION
from raydp_sim.population.participation.self_sampling import SelfSampling
from raydp_sim.population.participation.uniform import Uniform
from raydp_sim.random import Stream


def everyone(ids):
    return np.ones(len(ids), dtype=bool)


@pytest.mark.parametrize("rate,there", [(1.0, range(7)), (0.6, (0, 2, 3, 6)), (0.2, (0, 2, 3, 6))])
def test_every_cohort_of_the_available_clients_is_equally_likely(rate, there):
    """Chi-square over all cohorts of 3; false alarm 1e-7 per case. The rate is only a hint."""
    available = np.isin(np.arange(7), list(there))
    cohorts = {cohort: place for place, cohort in enumerate(combinations(there, 3))}
    counts = np.zeros(len(cohorts))
    draws = 4000
    for release in range(draws):
        stream = Stream(3).at("participation", release)
        chosen = Uniform(sampled=3).choose(7, lambda ids: available[ids], rate, stream)
        counts[cohorts[tuple(int(i) for i in chosen)]] += 1
    expected = draws / len(cohorts)
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-7, len(cohorts) - 1)


def test_sparse_candidates_are_uniform_too():
    """A large population, where candidates are drawn without looking at everyone.

    Each of 20 blocks of clients should get 1/20 of the choices; chi-square, false alarm 1e-7.
    """

    def odd(ids):
        return ids % 2 == 1

    counts = np.zeros(20)
    for release in range(400):
        chosen = Uniform(sampled=50).choose(100_000, odd, 0.5, Stream(4).at(release))
        assert len(chosen) == 50 and len(np.unique(chosen)) == 50 and odd(chosen).all()
        counts += np.bincount(chosen // 5000, minlength=20)
    expected = counts.sum() / 20
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-7, 19)


def test_a_choice_looks_at_few_clients():
    looked = []

    def half(ids):
        looked.append(len(ids))
        return ids % 2 == 0

    Uniform(sampled=100).choose(10_000_000, half, 0.5, Stream(1))
    assert sum(looked) < 1000


def test_a_wrong_hint_costs_time_but_changes_nothing_that_matters():
    def rare(ids):
        return ids % 100 == 0

    chosen = Uniform(sampled=30).choose(5000, rare, 1.0, Stream(1))
    assert len(chosen) == 30 and rare(chosen).all()


def test_all_take_part_when_fewer_are_there_than_wanted():
    def few(ids):
        return ids < 4

    assert Uniform(sampled=10).choose(50, few, 0.5, Stream(1)).tolist() == [0, 1, 2, 3]


def test_nobody_there_gives_an_empty_cohort():
    def nobody(ids):
        return np.zeros(len(ids), dtype=bool)

    assert len(Uniform(sampled=10).choose(50, nobody, 0.5, Stream(1))) == 0


def test_self_sampling_has_its_rate_and_is_independent_between_releases():
    """Binomial two-sided, false alarm 1e-6 each."""
    ids = np.arange(20_000, dtype=np.uint32)
    policy = SelfSampling(probability=0.3)
    one, two = (policy.joins(ids, Stream(5).at("participation", r)) for r in (0, 1))
    for count, p in ((one.sum(), 0.3), (two.sum(), 0.3), ((one & two).sum(), 0.09)):
        low, high = binom.ppf((5e-7, 1 - 5e-7), len(ids), p)
        assert low <= count <= high


def test_bernoulli_availability_is_random_access():
    """The coin of a client and a period does not depend on who else is asked about."""
    ids = np.arange(5000, dtype=np.uint32)
    model, stream = Bernoulli(probability=0.4, period=2.0), Stream(6)
    whole = model.available(ids, 4.0, stream)
    assert np.array_equal(model.available(ids[77:99], 4.0, stream), whole[77:99])
    assert np.array_equal(model.available(ids, 5.9, stream), whole)
    assert not np.array_equal(model.available(ids, 6.0, stream), whole)
    low, high = binom.ppf((5e-7, 1 - 5e-7), len(ids), 0.4)
    assert low <= whole.sum() <= high


def test_always_is_always():
    assert Always().available(np.arange(9), 1e9, Stream(0)).all() and Always().rate() == 1


def test_the_policies_are_registered():
    expected = ["all", "asynchronous", "over-selected", "self", "uniform"]
    assert sorted(PARTICIPATION.kinds) == expected
