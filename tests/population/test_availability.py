"""Who is there when: random access, the stated rates, and what is special about each model."""

import sys

import numpy as np
import pytest
import yaml
from scipy.stats import beta as beta_law
from scipy.stats import binom, expon, kstest, norm

from raydp_sim.population.availability import AVAILABILITY
from raydp_sim.population.availability.adversarial import Adversarial
from raydp_sim.population.availability.bernoulli import Bernoulli
from raydp_sim.population.availability.beta import Beta
from raydp_sim.population.availability.diurnal import Diurnal
from raydp_sim.population.availability.markov import Markov
from raydp_sim.population.availability.outages import Outages
from raydp_sim.random import Stream

MODELS = {
    "always": {},
    "bernoulli": {"probability": 0.3, "period": 2.0},
    "beta": {"alpha": 0.5, "beta": 1.5},
    "diurnal": {"low": 0.1, "high": 0.7, "day": 24.0},
    "markov": {"mean_on": 3.0, "mean_off": 5.0},
    "outages": {"regions": 5, "outage": 0.3, "probability": 0.6},
    "adversarial": {"share": 0.2},
}
STREAM = Stream(11).at("availability")


def model(kind):
    return AVAILABILITY.kinds[kind](**MODELS[kind])


def test_every_model_is_tested_here_or_in_test_trace():
    assert sorted(AVAILABILITY.kinds) == sorted([*MODELS, "trace"])


@pytest.mark.parametrize("kind", MODELS)
def test_asking_about_few_equals_asking_about_many(kind):
    ids, moment = np.arange(3000, dtype=np.uint32), 1234.56
    whole = model(kind).available(ids, moment, STREAM)
    assert whole.dtype == np.bool_ and whole.shape == (3000,)
    for rows in (slice(77, 99), slice(5, 6), np.array([2999, 0, 0, 7]), slice(0, 0)):
        assert np.array_equal(model(kind).available(ids[rows], moment, STREAM), whole[rows])


@pytest.mark.parametrize("kind", MODELS)
def test_a_moment_for_each_equals_one_moment_for_all(kind):
    ids = np.arange(400, dtype=np.uint32)
    moments = (0.0, 0.999, 17.25, 1e6 + 0.5, 3.7e9)
    each = np.repeat(np.array(moments), len(ids))
    many = model(kind).available(np.tile(ids, len(moments)), each, STREAM)
    one_by_one = [model(kind).available(ids, moment, STREAM) for moment in moments]
    assert np.array_equal(many, np.concatenate(one_by_one))
    order = np.random.default_rng(1).permutation(len(each))
    shuffled = model(kind).available(np.tile(ids, len(moments))[order], each[order], STREAM)
    assert np.array_equal(shuffled, many[order])


@pytest.mark.parametrize("kind", sorted(set(MODELS) - {"always", "adversarial"}))
def test_the_long_run_rate_is_the_stated_one(kind):
    """Mean over 5000 clients at 40 moments far apart, by the central limit theorem over blocks.

    Clients are independent but for outages, where a region's periods are; the standard error is
    taken over moments there and over clients elsewhere. Beyond 5.5 errors; with Student's tail at
    39 degrees of freedom that happens with probability below 3e-6.
    """
    ids = np.arange(5000, dtype=np.uint32)
    # Not a multiple of the day, so that all its hours are seen.
    moments = 1000.0 + 1013.7 * np.arange(40)
    seen = np.array([model(kind).available(ids, moment, STREAM) for moment in moments])
    means = seen.mean(axis=1 if kind == "outages" else 0)
    error = means.std(ddof=1) / np.sqrt(len(means))
    assert abs(seen.mean() - model(kind).rate()) < 5.5 * error


def test_every_field_can_be_written_in_yaml():
    """YAML reads on, off, yes and no as true and false, so no field may be called so."""
    for cls in AVAILABILITY.kinds.values():
        for name in cls.model_fields:
            assert yaml.safe_load(name) == name, (cls.kind, name)


def test_seeds_and_clients_are_apart():
    ids = np.arange(1000, dtype=np.uint32)
    for kind in sorted(set(MODELS) - {"always", "adversarial"}):
        one, two = (model(kind).available(ids, 5.0, Stream(seed)) for seed in (1, 2))
        assert not np.array_equal(one, two), kind


def test_bernoulli_draws_as_it_always_has():
    """Recorded before there were moments for each client: results of old scenarios stay."""
    coins = Bernoulli(probability=0.5, period=2.0)
    there = coins.available(np.arange(24, dtype=np.uint32), 7.0, Stream(3).at("availability"))
    expected = Stream(3).at("availability", "period", 3).clients(np.arange(24)).uniform("coin")
    assert np.array_equal(there, expected[:, 0] < 0.5)
    assert "".join("01"[int(bit)] for bit in there) == "001001010100111011001100"


def test_beta_clients_differ_as_the_law_says():
    """Kolmogorov-Smirnov on the clients' own probabilities; false alarm 1e-6."""
    ids, uneven = np.arange(20_000, dtype=np.uint32), Beta(alpha=0.5, beta=1.5)
    q = uneven.probabilities(ids, STREAM)
    assert kstest(q, beta_law(0.5, 1.5).cdf).pvalue > 1e-6


def test_beta_clients_come_as_often_as_their_own_probability():
    """Each client's visits in 200 periods are binomial: sum of squared residuals, normal at n=2000.

    Beyond 6 standard errors with probability 2e-9 (the sum over 2000 clients is close to normal).
    """
    ids, uneven = np.arange(2000, dtype=np.uint32), Beta(alpha=2.0, beta=3.0)
    q, periods = uneven.probabilities(ids, STREAM), 200
    visits = sum(uneven.available(ids, float(t), STREAM).astype(int) for t in range(periods))
    squares = (visits - periods * q) ** 2 / (periods * q * (1 - q))
    assert abs(squares.mean() - 1.0) < 6 * squares.std() / np.sqrt(len(ids))
    # Coins of a client are independent between periods given q: the spread of the shares says so.
    assert (visits / periods).std() == pytest.approx(np.sqrt(0.04 + 0.2 / periods), rel=0.1)


def test_diurnal_follows_the_curve_of_the_day():
    """Share at every hour against the curve, in one zone; binomial, false alarm 24e-7 in all."""
    ids = np.arange(20_000, dtype=np.uint32)
    day = Diurnal(low=0.2, high=0.8, peak=3.0, zones=[2.0], day=86400.0)
    for hour in range(24):
        there = day.available(ids, 86400.0 * 5 + 3600.0 * hour, STREAM).sum()
        chance = 0.2 + 0.6 * (1 + np.cos(2 * np.pi * (hour + 2.0 - 3.0) / 24)) / 2
        low, high = binom.ppf((5e-8, 1 - 5e-8), len(ids), chance)
        assert low <= there <= high, hour


def test_diurnal_zones_are_drawn_evenly_and_kept():
    """Each of three zones gets a third of the clients; binomial, false alarm 3e-7 in all."""
    ids = np.arange(30_000, dtype=np.uint32)
    zones = (-8.0, 0.0, 8.0)
    day = Diurnal(low=0.0, high=1.0, peak=12.0, zones=zones, day=24.0)
    # At noon of a zone its clients are all there.
    chance = day.chance(ids, 12.0, STREAM)
    assert set(np.round(chance, 9)) == {0.25, 1.0}
    low, high = binom.ppf((5e-8, 1 - 5e-8), len(ids), 1 / 3)
    for zone in zones:
        assert low <= (day.chance(ids, 12.0 - zone, STREAM) > 0.999).sum() <= high
    assert np.allclose(day.chance(ids, 12.0 + 24 * 10**6, STREAM), chance)


def test_diurnal_everywhere_is_flat_on_the_whole():
    """With offsets uniform over the day the share is the mean at any hour; false alarm 4e-7."""
    ids = np.arange(20_000, dtype=np.uint32)
    day = Diurnal(low=0.0, high=1.0)
    low, high = binom.ppf((5e-8, 1 - 5e-8), len(ids), 0.5)
    for hour in (0, 5, 11, 20):
        assert low <= day.available(ids, 3600.0 * hour, STREAM).sum() <= high


def test_diurnal_keeps_its_coin_for_a_period():
    ids = np.arange(2000, dtype=np.uint32)
    flat = Diurnal(low=0.5, high=0.5, day=24.0)
    first = flat.available(ids, 3.0, STREAM)
    assert np.array_equal(flat.available(ids, 3.99, STREAM), first)
    assert not np.array_equal(flat.available(ids, 4.0, STREAM), first)


def test_markov_bursts_have_exponential_lengths():
    """Whole stays and absences of one client over a long time, on a fine grid.

    Kolmogorov-Smirnov against the exponential law with the grid's rounding (step/mean = 1/500, far
    below the 0.03 that 5000 stays could tell); false alarm 1e-6 each. The means within 6 errors.
    """
    bursty, step, total = Markov(mean_on=2.0, mean_off=3.0), 0.004, 2_000_000
    there = bursty.available(np.full(total, 8, np.uint32), step * np.arange(total), STREAM)
    changes = np.flatnonzero(there[1:] != there[:-1]) + 1
    lengths, states = np.diff(changes) * step, there[changes[:-1]]
    for state, mean in ((True, 2.0), (False, 3.0)):
        stays = lengths[states == state]
        assert len(stays) > 1000
        assert kstest(stays, expon(scale=mean).cdf).pvalue > 1e-6
        assert abs(stays.mean() - mean) < 6 * mean / np.sqrt(len(stays))


@pytest.mark.parametrize("lag", [0.1, 1.0, 4.0])
def test_markov_forgets_as_the_chain_does(lag):
    """P(there at both) is r (r + (1 - r) exp(-lag (1/on + 1/off))); binomial, false alarm 1e-7."""
    ids, bursty = np.arange(100_000, dtype=np.uint32), Markov(mean_on=2.0, mean_off=3.0)
    start = 7.3 + ids % 13 * 0.77  # wherever the cells' borders are
    both = bursty.available(ids, start, STREAM) & bursty.available(ids, start + lag, STREAM)
    rate = bursty.rate()
    joint = rate * (rate + (1 - rate) * np.exp(-lag * (1 / 2.0 + 1 / 3.0)))
    low, high = binom.ppf((5e-8, 1 - 5e-8), len(ids), joint)
    assert low <= both.sum() <= high


def test_an_outage_takes_a_region_at_once_and_others_not():
    ids, failing = np.arange(5000, dtype=np.uint32), Outages(regions=20, outage=0.4)
    region = failing.region(ids, STREAM)
    up = np.empty((300, 20), bool)
    for period in range(300):
        there = failing.available(ids, period + 0.5, STREAM)
        for place in range(20):
            states = np.unique(there[region == place])
            assert len(states) == 1
            up[period, place] = states[0]
    # Between regions: correlations of 300 independent periods, 190 pairs, false alarm 2e-6.
    between = np.corrcoef(up.T)[np.triu_indices(20, 1)]
    assert np.abs(between).max() < norm.isf(5e-9) / np.sqrt(300)
    low, high = binom.ppf((5e-8, 1 - 5e-8), up.size, 0.6)
    assert low <= up.sum() <= high


def test_outages_of_a_region_with_coins_are_correlated():
    """Within a region the correlation is p o / (1 - p (1 - o)), here 3/7.

    Estimated from the variance over 3000 periods of the share of one region's clients, whose two
    halves of the periods hardly vary: 0.02 is more than 20 standard errors.
    """
    failing, n, periods = Outages(regions=1, outage=0.5, probability=0.6), 200, 3000
    ids, times = np.tile(np.arange(n), periods), np.repeat(np.arange(periods) + 0.5, n)
    shares = failing.available(ids, times, STREAM).reshape(periods, n).mean(axis=1)
    rate = failing.rate()
    correlation = (shares.var() / (rate * (1 - rate)) * n - 1) / (n - 1)
    assert correlation == pytest.approx(3 / 7, abs=0.02)


def test_adversarial_takes_the_most_influential_by_exact_count():
    influence = np.array([0.5, 2.0, 2.0, -1.0, 2.0, 0.0, 7.0])
    assert np.flatnonzero(Adversarial(share=3 / 7).absent(influence)).tolist() == [1, 2, 6]
    assert np.flatnonzero(Adversarial(share=0.5).absent(np.zeros(10))).tolist() == list(range(5))
    some = np.random.default_rng(3).random(10_001)
    away = Adversarial(share=0.123).absent(some)
    assert away.sum() == round(0.123 * 10_001) and some[away].min() > some[~away].max()


def test_only_adversarial_needs_influence_and_only_always_is_everyone():
    assert [kind for kind, cls in AVAILABILITY.kinds.items() if cls.needs_influence] == [
        "adversarial"
    ]
    assert [kind for kind, cls in AVAILABILITY.kinds.items() if cls.everyone] == ["always"]
    assert not model("beta").absent(np.arange(4.0)).any()


@pytest.mark.parametrize(("share", "word"), [(0.001, "nobody"), (0.999, "everyone")])
def test_adversarial_refuses_a_share_of_nobody_or_everyone(share, word):
    assert word in Adversarial(share=share).check(50)
    assert Adversarial(share=0.5).check(50) is None


def test_low_above_high_is_refused():
    with pytest.raises(ValueError, match=r"low is 0\.9; it must be at most high, 0\.1"):
        Diurnal(low=0.9, high=0.1)


@pytest.mark.parametrize("kind", MODELS)
def test_no_model_does_anything_client_by_client(kind):
    """A million clients must cost array operations: Python's own calls hardly grow with them."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += 1

    times = np.random.default_rng(1).uniform(0.0, 100.0, 100_000)
    for when in (50.0, times):
        calls = 0
        sys.setprofile(count)
        model(kind).available(np.arange(100_000, dtype=np.uint32), when, STREAM)
        sys.setprofile(None)
        assert calls < 5000
