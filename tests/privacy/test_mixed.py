"""Batches of clients that differ in epsilon0 or collude, against exact laws."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raydp_sim.privacy.curves.clones import clones_epsilon
from raydp_sim.privacy.curves.mixed import fewest, honest_clients, mixed_epsilon, mixed_pair
from raydp_sim.privacy.curves.variation import variation_epsilon
from raydp_sim.privacy.errors import Unsupported
from tests.privacy.enumeration import Array, Pair, hockey_stick, randomized_response, renyi


def with_message(law: Array, row: Array) -> Array:
    out = np.zeros_like(law)
    for axis, probability in enumerate(row):
        moved = np.roll(law, 1, axis=axis)
        moved[(slice(None),) * axis + (0,)] = 0.0
        out += probability * moved
    return out


def mixed_pairs(victim: Array, others: list[Array]) -> list[Pair]:
    """Return the laws for every input of the others and ordered pair of the victim's."""
    symbols, pairs = victim.shape[1], []
    for inputs in itertools.product(range(len(victim)), repeat=len(others)):
        law = np.zeros((len(others) + 2,) * symbols)
        law[(0,) * symbols] = 1.0
        for channel, x in zip(others, inputs, strict=True):
            law = with_message(law, channel[x])
        pairs += itertools.permutations([with_message(law, row) for row in victim], 2)
    return pairs


@pytest.mark.parametrize("symbols", [2, 3])
@pytest.mark.parametrize("victim", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("others", [(1.0,), (0.3, 3.0), (0.3, 1.0, 3.0), (3.0, 3.0, 0.5, 0.5)])
def test_a_mixed_batch_is_never_below_the_exact_value(symbols, victim, others):
    channels = [randomized_response(e, symbols) for e in others]
    pairs = mixed_pairs(randomized_response(victim, symbols), channels)
    counts = {e: others.count(e) for e in set(others)}
    bounds = [
        mixed_pair(victim, counts, "krr", symbols),
        mixed_pair(victim, counts, jointly_private=True),
    ]
    for share in (0.0, 0.2, 0.6, 0.9):
        exact = max(hockey_stick(p, share * victim) for p in pairs)
        assert all(bound.delta(share * victim) >= exact - 1e-12 for bound in bounds)
    for alpha in (1.5, 2.0, 8.0):
        exact = max(renyi(p, alpha) for p in pairs)
        assert all(bound.rdp(alpha) >= exact - 1e-12 for bound in bounds)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=7))
def test_the_substitute_count_is_stochastically_smaller(coins):
    count, g = fewest([(c, 1) for c in coins])
    law = np.ones(1)
    for c in coins:
        law = np.convolve(law, [1 - c, c])
    k = np.arange(count + 1)
    binomial = np.array([math.comb(count, int(i)) * g**i * (1 - g) ** (count - i) for i in k])
    lower = np.cumsum(binomial[::-1])[::-1]
    upper = np.cumsum(law[::-1])[::-1][: count + 1]
    assert np.all(lower <= upper + 1e-12)


def test_equal_clients_give_the_plain_bounds():
    assert mixed_epsilon({1.0: 1000}, 1e-6, "2rr")[1.0] == pytest.approx(
        variation_epsilon("2rr", 1.0, 1000, 1e-6), rel=1e-6
    )
    assert mixed_epsilon({1.0: 1000}, 1e-6, jointly_private=True)[1.0] == pytest.approx(
        clones_epsilon(1.0, 1000, 1e-6), rel=1e-6
    )


@pytest.mark.parametrize("settings_", [{"randomizer": "2rr"}, {"jointly_private": True}])
def test_it_is_no_worse_than_taking_the_largest_epsilon0_for_all(settings_):
    found = mixed_epsilon({0.5: 3000, 2.0: 1000}, 1e-6, **settings_)
    worst = mixed_epsilon({2.0: 4000}, 1e-6, **settings_)[2.0]
    assert found[0.5] < found[2.0] <= worst * (1 + 1e-6)


def test_what_is_not_proved_is_refused():
    with pytest.raises(Unsupported, match="jointly_private"):
        mixed_epsilon({1.0: 10, 2.0: 10}, 1e-6)
    for name in ("laplace", "hadamard", "privunit"):
        with pytest.raises(Unsupported, match="not proved"):
            mixed_epsilon({1.0: 10, 2.0: 10}, 1e-6, name)


@pytest.mark.parametrize(
    ("n", "fraction", "expected"),
    [
        (10, 0.7, 7),
        (10, 0.69, 6),
        (100, 0.29, 29),
        (3, 0.999, 2),
        (5, 0.0, 1),
        (1, 0.5, 1),
        (7, 1, 7),
    ],
)
def test_honest_clients_are_never_rounded_up(n, fraction, expected):
    assert honest_clients(n, fraction) == expected


def test_colluders_are_those_who_hide_best():
    whole = mixed_epsilon({0.5: 500, 2.0: 500}, 1e-6, "2rr")
    half = mixed_epsilon({0.5: 500, 2.0: 500}, 1e-6, "2rr", honest_fraction=0.5)
    assert half[2.0] == pytest.approx(mixed_epsilon({2.0: 500}, 1e-6, "2rr")[2.0], rel=1e-6)
    assert all(half[e] > whole[e] for e in whole)
    alone = mixed_epsilon({0.5: 500, 2.0: 500}, 1e-6, "2rr", honest_fraction=0.0)
    assert alone[2.0] == pytest.approx(2.0, rel=1e-5)


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.nan])
def test_bad_fractions_are_refused(fraction):
    with pytest.raises(ValueError, match="honest_fraction"):
        honest_clients(10, fraction)
