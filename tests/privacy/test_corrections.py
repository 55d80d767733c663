"""What the sources print wrongly: the printed form fails, ours holds."""

import math

import numpy as np
import pytest

from raydp_sim.privacy.bound import find_rdp
from raydp_sim.privacy.bounds.upper import Upper
from raydp_sim.privacy.curves.local import bar, constants
from raydp_sim.privacy.curves.ternary import log_ternary, ternary_rdp
from raydp_sim.privacy.events import Shuffle, SubsampledShuffle
from tests.privacy import enumeration as oracle


def rdp(name, event, alpha):
    return find_rdp(name, event).rdp(event, alpha)


def test_5_7_as_the_text_shows_it_is_no_bound():
    """(eps0 - 1)^2, 8 eps0, 2 eps0 for (e^eps0 - 1)^2, 8 e^eps0, 2 e^eps0: at eps0 = 1 almost 0."""
    epsilon0, n, alpha = 1.0, 100, 2
    left = math.floor((n - 1) / (2 * epsilon0)) + 1
    power = alpha**2 * (epsilon0 - 1) ** 2 / left
    printed = math.log(math.exp(power) + math.exp(epsilon0 * alpha - (n - 1) / (8 * epsilon0)))
    pairs = list(oracle.shuffle_pairs(oracle.randomized_response(epsilon0), n))
    exact = oracle.worst(pairs, oracle.renyi, alpha)
    assert printed / (alpha - 1) < exact <= rdp("upper2", Shuffle(epsilon0, n), alpha)


def test_5_43_without_the_bar_has_too_small_a_leading_term():
    """4 v0/k for 4 v0/k-bar; the tail hides it at the few messages that can be enumerated."""
    epsilon0, k = 4.0, 6
    c = constants(epsilon0)
    exact = oracle.ternary(oracle.randomized_response(epsilon0, 3), k, 2)
    assert 2 * 4 * c.v0 / k < exact <= 4 * c.v0 / bar(k, epsilon0)
    assert exact <= math.exp(log_ternary(epsilon0, k, 2))


@pytest.mark.parametrize("sharp", [False, True])
@pytest.mark.parametrize("epsilon0", [0.2, 1.0, 2.0])
@pytest.mark.parametrize(
    "make",
    [
        lambda e: oracle.randomized_response(e, 2),
        lambda e: oracle.randomized_response(e, 3),
        lambda e: oracle.random_channel(4, e, 3, 3),
    ],
)
def test_the_ternary_bound_holds_also_with_the_sharper_constant(make, epsilon0, sharp):
    for k in (1, 2, 4):
        for j in (2, 3, 5):
            exact = oracle.ternary(make(epsilon0), k, j)
            assert exact <= math.exp(log_ternary(epsilon0, k, j, sharp)) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 3.0])
def test_three_rows_differ_by_less_than_the_source_takes(epsilon0):
    """|p' - p''|/p <= E - 1 <= E - 1/E, pointwise."""
    for seed in range(20):
        channel = oracle.random_channel(seed, epsilon0, 4, 4)
        spread = (channel.max(axis=0) - channel.min(axis=0)) / channel.min(axis=0)
        assert spread.max() <= math.expm1(epsilon0) * (1 + 1e-9) <= constants(epsilon0).s0


def test_the_subsampled_bound_is_its_ternary_one():
    event = SubsampledShuffle(1.0, 1000, 100)
    for alpha in (2, 3, 10):
        for sharp in (False, True):
            by_ternary = ternary_rdp(lambda j, s=sharp: log_ternary(1.0, 100, j, s), 0.1, alpha)
            assert Upper(sharp=sharp).rdp(event, alpha) == pytest.approx(by_ternary, rel=1e-9)
    assert Upper(sharp=True).rdp(event, 10) < Upper().rdp(event, 10)


@pytest.mark.parametrize("k", [2, 3])
def test_the_sharper_subsampled_bound_holds(k):
    for seed in range(3):
        channel = oracle.random_channel(seed, 1.0, 3, 3)
        pairs = list(oracle.subsampled_pairs(channel, 5, k))
        for alpha in (2, 6):
            exact = oracle.worst(pairs, oracle.renyi, alpha)
            assert exact <= Upper(sharp=True).rdp(SubsampledShuffle(1.0, 5, k), alpha)


def test_the_mixture_of_002_section_7_is_the_other_way_round():
    """M(D') = gamma mu1 + (1 - gamma) mu0: only so the bound becomes 2RR's own at k = n."""
    epsilon0, n, alpha = 1.0, 6, 3
    channel = oracle.randomized_response(epsilon0)
    base = oracle.histogram_law(channel, [0] * n, n)
    other = oracle.histogram_law(channel, [0] * (n - 1) + [1], n)
    for k in (2, 4, 6):
        law0 = oracle.histogram_law(channel, [0] * k, k)
        law1 = oracle.histogram_law(channel, [0] * (k - 1) + [1], k)
        gamma = k / n
        right = oracle.renyi((gamma * law1 + (1 - gamma) * law0, law0), alpha)
        wrong = oracle.renyi(((1 - gamma) * law1 + gamma * law0, law0), alpha)
        found = rdp("lower", SubsampledShuffle(epsilon0, n, k), alpha)
        assert found == pytest.approx(right, rel=1e-10)
        assert found != pytest.approx(wrong, rel=1e-3)
    assert right == pytest.approx(oracle.renyi((other, base), alpha), rel=1e-10)


@pytest.mark.parametrize("n", [3, 10, 50])
@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 4.0])
def test_odd_central_moments_are_not_negative(n, epsilon0):
    """Corollary 5.3.2 argues by Jensen, which fails for odd powers; for p0 <= 1/2 it is true."""
    p = constants(epsilon0).p0
    k = np.arange(n + 1)
    law = np.array([math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in k])
    for power in (3, 5, 7):
        assert float((law * (k - n * p) ** power).sum()) >= -1e-12


def test_the_simple_bound_may_be_below_5_4_and_is_still_one():
    """eps0 = 1e-4, n = 150, alpha = 2: the Chernoff tail dominates (5.4), not the truth."""
    event = Shuffle(1e-4, 150)
    simple = rdp("simple", event, 2)
    assert simple < rdp("upper1", event, 2)
    assert max(rdp("numeric", event, 2), rdp("clones", event, 2)) <= simple
    for epsilon0, n in [(0.01, 200), (0.5, 3000), (1.0, 10**5)]:
        for alpha in (2, 3, 4):
            if alpha**4 * math.exp(5 * epsilon0) < n / 9:
                event = Shuffle(epsilon0, n)
                assert rdp("clones", event, alpha) <= rdp("simple", event, alpha)


def test_5_7_may_beat_5_4():
    event = Shuffle(0.1, 10**4)
    assert rdp("upper2", event, 1000) < rdp("upper1", event, 1000)


def test_2rr_has_worse_datasets_than_the_lower_bound_s():
    pairs = oracle.shuffle_pairs(oracle.randomized_response(0.5), 100)
    exact = oracle.worst(pairs, oracle.renyi, 32)
    assert exact == pytest.approx(0.043061, rel=2e-5)
    assert rdp("lower", Shuffle(0.5, 100), 32) == pytest.approx(0.038752, rel=2e-5)


def test_bar_is_one_for_few_messages():
    assert bar(1, 1.0) == bar(2, 3.0) == 1
