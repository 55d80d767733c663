"""The numerical clones bound: reference numbers, exact laws, extremes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from raydp_sim.privacy.curves.binomials import binomial_buckets, log_binomial
from raydp_sim.privacy.curves.clones import clones_delta, clones_epsilon, clones_rdp
from tests.privacy.enumeration import (
    hockey_stick,
    random_channel,
    randomized_response,
    renyi,
    shuffle_pairs,
)


@pytest.mark.parametrize(
    ("epsilon0", "n", "delta", "expected"),
    [
        (4.0, 10**5, 1e-6, 0.169769747255),
        (1.0, 10**5, 1e-24, 0.0454716899384),
        (1.0, 10**5, 1e-40, 0.0612655667611),
    ],
)
def test_reference_values_to_six_digits(epsilon0, n, delta, expected):
    assert clones_epsilon(epsilon0, n, delta) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon0", "n", "expected"),
    [
        (0.1, 10**3, 0.010185), (0.1, 10**4, 0.0028708), (0.1, 10**6, 2.0557e-4),
        (1.0, 10**4, 0.053005), (2.0, 10**4, 0.15505), (3.0, 10**4, 0.32072),
        (1.0, 10**5, 0.015282), (2.0, 10**5, 0.045026), (3.0, 10**5, 0.092758),
        (3.0, 10**6, 0.026873),
    ],
)  # fmt: skip
def test_the_table_of_single_shots(epsilon0, n, expected):
    assert clones_epsilon(epsilon0, n, 1e-6) == pytest.approx(expected, rel=5e-5)


@pytest.mark.parametrize(
    ("epsilon0", "expected"),
    [
        (0.1, 2.75839502147e-4),
        (0.5, 0.00989925891857),
        (1.0, 0.0584936926679),
        (2.0, 0.552798882009),
    ],
)
def test_reference_renyi_values(epsilon0, expected):
    assert clones_rdp(5, epsilon0, 100) == pytest.approx(expected, rel=1e-8)
    assert clones_rdp(5, epsilon0, 100) >= expected * (1 - 1e-11)


def direct(epsilon0: float, n: int, epsilon: float, alpha: float) -> tuple[float, float]:
    """Return delta and RDP of the pair by plain sums over all C and A."""
    g, h = math.exp(-epsilon0), math.tanh(epsilon0 / 2)
    delta = 0.0
    logs = []
    for c in range(min(n, 1500)):
        x = np.arange(c + 2)
        t = (2 * x - c - 1) / (c + 1)
        log_p = binom.logpmf(x, c + 1, 0.5) + np.log1p(h * t)
        log_q = binom.logpmf(x, c + 1, 0.5) + np.log1p(-h * t)
        mass = binom.pmf(c, n - 1, g)
        delta += mass * np.maximum(np.exp(log_p) - np.exp(epsilon + log_q), 0).sum()
        terms = alpha * log_p + (1 - alpha) * log_q
        logs.append(binom.logpmf(c, n - 1, g) + np.logaddexp.reduce(terms))
    return delta, float(np.logaddexp.reduce(logs)) / (alpha - 1)


@pytest.mark.parametrize(
    ("epsilon0", "n", "epsilon", "alpha"),
    [(1.0, 1000, 0.1, 30.0), (0.1, 50, 0.01, 2.0), (3.0, 200, 1.0, 7.5), (8.0, 300, 5.0, 100.0)],
)
def test_it_is_the_plain_sum(epsilon0, n, epsilon, alpha):
    delta, renyi_ = direct(epsilon0, n, epsilon, alpha)
    assert clones_delta(epsilon0, n, epsilon) == pytest.approx(delta, rel=1e-8)
    assert clones_rdp(alpha, epsilon0, n) == pytest.approx(renyi_, rel=1e-6)
    assert clones_rdp(alpha, epsilon0, n) >= renyi_ * (1 - 1e-9)


def test_the_second_mode_at_large_orders_counts():
    # The mass sits near C = mean/2: a window of 14 standard deviations would cut it off.
    _, exact = direct(3.0, 10_000, 1.0, 300.0)
    assert exact <= clones_rdp(300, 3.0, 10_000) * (1 + 1e-9)
    assert clones_rdp(300, 3.0, 10_000) == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize("epsilon0", [0.1, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_it_is_never_below_the_exact_value(epsilon0, n):
    channels = [randomized_response(epsilon0, b) for b in (2, 3)]
    channels += [random_channel(seed, epsilon0) for seed in range(4)]
    for channel in channels:
        pairs = list(shuffle_pairs(channel, n))
        for share in (0.0, 0.1, 0.5, 0.9):
            exact = max(hockey_stick(p, share * epsilon0) for p in pairs)
            assert clones_delta(epsilon0, n, share * epsilon0) >= exact - 1e-12
        for alpha in (1.5, 2.0, 5.0, 30.0):
            assert clones_rdp(alpha, epsilon0, n) >= max(renyi(p, alpha) for p in pairs) - 1e-12


@pytest.mark.parametrize("epsilon0", [1e-4, 0.01, 0.7, 3.0, 10.0])
@pytest.mark.parametrize("log_delta", [-6, -20, -300])
def test_ten_million_clients(epsilon0, log_delta):
    epsilon = clones_epsilon(epsilon0, 10**7, 10.0**log_delta)
    assert 0.0 <= epsilon <= epsilon0
    assert clones_delta(epsilon0, 10**7, epsilon) <= 10.0**log_delta


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.floats(1e-3, 6.0),
    st.integers(1, 10**6),
    st.floats(-40.0, -1.0),
)
def test_epsilon_is_enough_falls_with_n_and_stays_below_epsilon0(epsilon0, n, log_delta):
    delta = 10.0**log_delta
    epsilon = clones_epsilon(epsilon0, n, delta)
    assert epsilon <= epsilon0
    assert clones_delta(epsilon0, n, epsilon) <= delta
    assert clones_epsilon(epsilon0, 2 * n, delta) <= epsilon * (1 + 1e-5)


def test_limits():
    assert clones_epsilon(0.0, 10, 1e-6) == 0.0
    assert clones_rdp(2, 0.0, 10) == 0.0
    assert clones_delta(1.0, 10, 1.0) == 0.0
    # One message: nobody hides it. 2RR's own values.
    assert clones_delta(1.0, 1, 0.0) == pytest.approx(math.tanh(0.5), rel=1e-9)
    assert clones_rdp(10**5, 3.0, 10) == pytest.approx(3.0, rel=1e-2)
    assert clones_rdp(2, 60.0, 10) == clones_epsilon(60.0, 10, 1e-6) == 60.0
    assert clones_rdp(1 + 1e-3, 1.0, 100) < clones_rdp(2.0, 1.0, 100)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: clones_epsilon(-1.0, 10, 1e-6), "epsilon0"),
        (lambda: clones_epsilon(math.nan, 10, 1e-6), "epsilon0"),
        (lambda: clones_epsilon(1.0, 0, 1e-6), "n is"),
        (lambda: clones_epsilon(1.0, 1.5, 1e-6), "n is"),
        (lambda: clones_epsilon(1.0, 10, 0.0), "delta"),
        (lambda: clones_delta(1.0, 10, -0.1), "epsilon"),
        (lambda: clones_rdp(1.0, 1.0, 10), "alpha"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()


@pytest.mark.parametrize(("trials", "p"), [(1, 0.3), (50, 0.9), (2000, 0.01), (30_000, 0.5)])
def test_buckets_lose_no_mass_and_stand_low(trials, p):
    for count in (10, 100, 10**5):
        buckets = binomial_buckets(trials, p, count)
        mass = np.exp(buckets.log_mass)
        assert mass.sum() == pytest.approx(1.0, abs=1e-9)
        assert mass @ buckets.low <= trials * p * (1 + 1e-9)
    if trials <= 2000:
        k = np.arange(trials + 1.0)
        assert log_binomial(trials, p, k) == pytest.approx(binom.logpmf(k, trials, p), abs=1e-9)
