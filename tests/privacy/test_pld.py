"""Composition by privacy-loss distributions against enumeration, dp_accounting and other bounds."""

import itertools
import math

import numpy as np
import pytest

from raydp_sim.privacy.composition.pld import Round, compose_delta, compose_epsilon, shuffle_round
from raydp_sim.privacy.curves.clones import clones_delta, clones_epsilon, clones_rdp
from raydp_sim.privacy.curves.variation import variation_epsilon, variation_pair
from tests.privacy.enumeration import (
    Pair,
    hockey_stick,
    randomized_response,
    shuffle_pairs,
    subsampled_pairs,
)


def product(pairs: tuple[Pair, ...]) -> Pair:
    """Return the pair of T independent rounds."""
    laws = []
    for side in (0, 1):
        law = np.ones(1)
        for pair in pairs:
            part = pair[side].ravel()
            law = np.outer(law, part[(pair[0] + pair[1]).ravel() > 0]).ravel()
        laws.append(law)
    return laws[0], laws[1]


@pytest.mark.parametrize("symbols", [2, 3])
@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_composed_shuffles_are_never_below_the_exact_value(symbols, epsilon0, n):
    pairs = list(shuffle_pairs(randomized_response(epsilon0, symbols), n))
    for rounds in (1, 2, 3):
        generic = [shuffle_round(epsilon0, n, times=rounds)]
        named = [shuffle_round(epsilon0, n, rounds, "krr", symbols)]
        for share in (0.0, 0.2, 0.5, 0.9):
            epsilon = share * rounds * epsilon0
            exact = max(hockey_stick(product((p,) * rounds), epsilon) for p in pairs)
            assert compose_delta(generic, epsilon) >= exact - 1e-12
            assert compose_delta(named, epsilon) >= exact - 1e-12


@pytest.mark.parametrize(
    ("symbols", "clients", "sampled"), [(2, 3, 1), (2, 4, 2), (2, 5, 3), (3, 3, 2), (3, 4, 2)]
)
@pytest.mark.parametrize("epsilon0", [0.5, 2.0])
def test_sampled_shuffles_are_never_below_the_exact_value(symbols, clients, sampled, epsilon0):
    pairs = list(subsampled_pairs(randomized_response(epsilon0, symbols), clients, sampled))
    for rounds in (1, 2, 3):
        bounds = [
            [shuffle_round(epsilon0, sampled, rounds, clients=clients)],
            [shuffle_round(epsilon0, sampled, rounds, "krr", symbols, clients=clients)],
        ]
        for epsilon in (0.0, 0.05, 0.2, 0.5, 1.0, 2.0):
            exact = max(hockey_stick(product((p,) * rounds), epsilon) for p in pairs)
            for bound in bounds:
                assert compose_delta(bound, epsilon) >= exact - 1e-12


def test_unequal_rounds_are_never_below_the_exact_value():
    # Two rounds over different mechanisms and batch sizes; any two neighbouring pairs.
    one = list(shuffle_pairs(randomized_response(0.5, 2), 3))
    two = list(subsampled_pairs(randomized_response(2.0, 3), 3, 2))
    rounds = [shuffle_round(0.5, 3), shuffle_round(2.0, 2, clients=3)]
    for epsilon in (0.0, 0.3, 1.0):
        exact = max(hockey_stick(product(both), epsilon) for both in itertools.product(one, two))
        assert compose_delta(rounds, epsilon) >= exact - 1e-12


@pytest.mark.parametrize(("epsilon0", "n", "delta"), [(1.0, 100, 1e-6), (0.5, 10**5, 1e-8)])
def test_one_round_is_the_clones_bound(epsilon0, n, delta):
    found = compose_epsilon([shuffle_round(epsilon0, n)], delta)
    assert clones_epsilon(epsilon0, n, delta) <= found * (1 + 1e-9)
    assert found <= 1.001 * clones_epsilon(epsilon0, n, delta)


def exact_masses(epsilon0: float, n: int) -> tuple[dict[tuple, float], dict[tuple, float]]:
    """Return the clone pair's two laws, (c, x) by (c, x)."""
    p, q = {}, {}
    g, h = math.exp(-epsilon0), math.tanh(epsilon0 / 2)
    for c in range(n):
        mass = math.comb(n - 1, c) * g**c * (1 - g) ** (n - 1 - c)
        for x in range(c + 2):
            weight = mass * math.comb(c + 1, x) / 2 ** (c + 1)
            lean = h * (2 * x - c - 1) / (c + 1)
            p[c, x], q[c, x] = math.log(weight * (1 + lean)), math.log(weight * (1 - lean))
    return p, q


@pytest.mark.parametrize("times", [1, 7, 60])
def test_dp_accounting_agrees(times):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    parts = [(1.0, 40, times), (2.0, 60, times)]
    oracle = None
    for epsilon0, n, rounds in parts:
        p, q = exact_masses(epsilon0, n)
        one = pld.from_two_probability_mass_functions(
            q, p, pessimistic_estimate=True, value_discretization_interval=1e-4
        ).self_compose(rounds)
        oracle = one if oracle is None else oracle.compose(one)
    rounds = [shuffle_round(epsilon0, n, t) for epsilon0, n, t in parts]
    for delta in (1e-3, 1e-6):
        expected = oracle.get_epsilon_for_delta(delta)
        assert compose_epsilon(rounds, delta) == pytest.approx(expected, rel=3e-3)


def rdp_pipeline(epsilon0: float, n: int, times: int, delta: float) -> float:
    orders = [1.5, *range(2, 65), *(2**k for k in range(7, 13))]
    return min(
        times * clones_rdp(a, epsilon0, n)
        + (-math.log(delta) + (a - 1) * math.log1p(-1 / a) - math.log(a)) / (a - 1)
        for a in orders
    )


@pytest.mark.parametrize(
    ("epsilon0", "n", "times", "delta"),
    [(0.5, 10**6, 10**5, 1e-8), (2.0, 10**6, 100, 1e-8), (1.0, 1000, 10, 1e-6)],
)
def test_it_is_below_the_renyi_pipeline_on_the_same_pair(epsilon0, n, times, delta):
    found = compose_epsilon([shuffle_round(epsilon0, n, times)], delta)
    assert found <= rdp_pipeline(epsilon0, n, times, delta)


def test_the_seeds_headline_run():
    # Renyi with the numerical bound gives 1.1116, clones with exact strong composition 7.33.
    assert compose_epsilon([shuffle_round(0.5, 10**6, 10**5)], 1e-8) == pytest.approx(
        1.0156, rel=1e-3
    )
    # Sampling: 1.0402 by the seeds' theorem.
    sampled = [shuffle_round(2.0, 1000, 10**5, clients=10**6)]
    assert compose_epsilon(sampled, 1e-8) == pytest.approx(0.2083, rel=3e-3)


def test_a_named_randomizer_composes_to_less():
    generic = compose_epsilon([shuffle_round(2.0, 10**5, 1000)], 1e-8)
    named = compose_epsilon([shuffle_round(2.0, 10**5, 1000, "krr", 20)], 1e-8)
    assert named < 0.7 * generic
    one = compose_epsilon([shuffle_round(2.0, 10**5, 1, "krr", 20)], 1e-8)
    assert variation_epsilon("krr", 2.0, 10**5, 1e-8, 20) <= one * (1 + 1e-9)


def test_more_rounds_cost_more_and_sampling_costs_less():
    values = [compose_epsilon([shuffle_round(1.0, 1000, t)], 1e-6) for t in (1, 3, 10, 100)]
    assert values == sorted(values)
    rates = [compose_epsilon([shuffle_round(1.0, 100, 50, clients=c)], 1e-6) for c in (100, 300)]
    assert rates[1] < rates[0]
    assert rates[0] == pytest.approx(compose_epsilon([shuffle_round(1.0, 100, 50)], 1e-6))


def test_delta_and_epsilon_are_inverse():
    rounds = [shuffle_round(1.0, 500, 20), shuffle_round(0.3, 100, 5)]
    epsilon = compose_epsilon(rounds, 1e-7)
    assert compose_delta(rounds, epsilon) == pytest.approx(1e-7, rel=1e-3)


def test_a_very_small_delta_keeps_its_digits():
    rounds = [shuffle_round(0.5, 10**4, 100)]
    epsilon = compose_epsilon(rounds, 1e-30)
    assert 0.0 < epsilon < 50.0
    assert compose_delta(rounds, epsilon) == pytest.approx(1e-30, rel=0.05)


def test_trivial_rounds():
    assert compose_epsilon([], 1e-6) == 0.0
    assert compose_epsilon([shuffle_round(0.0, 10)], 1e-6) == 0.0
    assert compose_delta([], 0.0) == 0.0
    assert compose_delta([shuffle_round(1.0, 10, 2)], 2.0) == 0.0
    assert compose_delta([shuffle_round(1.0, 10)], 0.5) >= clones_delta(1.0, 10, 0.5)


def test_bad_rounds_are_refused():
    pair = variation_pair("2rr", 1.0, 10)
    with pytest.raises(ValueError, match="times"):
        Round(pair, 0)
    with pytest.raises(ValueError, match="rate"):
        Round(pair, 1, 0.0)
    with pytest.raises(ValueError, match="clients"):
        shuffle_round(1.0, 10, clients=9)
    with pytest.raises(ValueError, match="delta"):
        compose_epsilon([Round(pair)], 1.0)
    with pytest.raises(ValueError, match="epsilon"):
        compose_delta([Round(pair)], -1.0)
