"""Rounds that sample clients and one point of each: exact divergences of tiny ones, and bounds."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.bound import find_run
from raydp_sim.privacy.composition.law_rounds import LawRound
from raydp_sim.privacy.composition.pld import shuffle_round
from raydp_sim.privacy.events import CldpRound, Shuffle, SubsampledShuffle
from raydp_sim.privacy.laws import clones, law_of
from tests.privacy.enumeration import hockey_stick, randomized_response, two_stage_pairs

SHAPES = [(2, 2, 1), (2, 2, 2), (3, 2, 2), (2, 3, 2), (3, 3, 3)]


@cache
def exact(epsilon0: float, symbols: int, clients: int, points: int, sampled: int) -> list:
    return list(
        two_stage_pairs(randomized_response(epsilon0, symbols), clients, points, sampled, 1)
    )


def worst(pairs, epsilon: float) -> float:
    return max(hockey_stick(pair, epsilon) for pair in pairs)


@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_one_round_is_within_the_amplified_pair(epsilon0, shape):
    clients, points, sampled = shape
    rate = sampled / (clients * points)
    for name, alphabet in ((None, None), ("2rr", None)):
        found = shuffle_round(epsilon0, sampled, 1, name, alphabet, clients * points)
        law = found.law(1e-12)
        for epsilon in np.linspace(0.0, math.log1p(rate * math.expm1(epsilon0)), 9)[:-1]:
            stated = float(law.profile(np.array([epsilon]))[0])
            assert worst(exact(epsilon0, 2, *shape), epsilon) <= stated * (1.0 + 1e-9)


def test_the_law_of_a_sampled_batch_does_not_hold_for_points():
    """What holds for k of N R clients is far too little: the victim's client may still be there."""
    epsilon, rate = 1.7, 1.0 / 3.0
    true = worst(exact(3.0, 2, 3, 3, 3), epsilon)
    for law, least in ((clones(3.0), 5.0), (law_of("2rr", 3.0, None), 20.0)):
        stated = float(LawRound(law, 3, 1, rate).profile(np.array([epsilon]))[0])
        assert true > least * stated


@pytest.mark.parametrize("shape", SHAPES)
def test_two_rounds_are_within_every_bound(shape):
    clients, points, sampled = shape
    pairs = exact(1.0, 2, *shape)
    event = CldpRound(1.0, clients, points, sampled, 1, "2rr")
    for name in ("pld-clones", "pld-variation", "rdp-cldp"):
        for delta in (0.01, 0.1):
            epsilon = find_run(name).epsilon([(event, 2)], delta).epsilon
            for p, q in pairs[:: max(1, len(pairs) // 40)]:
                twice = (np.multiply.outer(p, p), np.multiply.outer(q, q))
                assert hockey_stick(twice, epsilon) <= delta * (1.0 + 1e-9)


def test_loss_distributions_say_far_less_than_divergences():
    event = CldpRound(1.5, 6000, 10, 1000, 1, "rbin")
    table = account([(event, 100)], 1e-5)
    assert table.best == "pld-variation"
    assert table.epsilon < table["rdp-cldp"].value / 3.0
    # One point per client is a sampled shuffle, which a sharper bound is proved for.
    single = CldpRound(1.5, 60_000, 1, 1000, 1, "rbin")
    alike = account([(SubsampledShuffle(1.5, 60_000, 1000, "rbin"), 100)], 1e-5)
    assert alike.epsilon <= account([(single, 100)], 1e-5).epsilon


# Several points of each client: clients, points, sampled clients, sampled points.
SEVERAL = [(2, 2, 1, 2), (3, 3, 1, 2), (2, 3, 2, 2), (3, 2, 2, 2), (2, 3, 1, 3)]


@cache
def exactly(epsilon0: float, symbols: int, shape: tuple[int, ...]) -> list:
    return list(two_stage_pairs(randomized_response(epsilon0, symbols), *shape))


@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("shape", SEVERAL)
def test_one_round_of_several_points_is_within_the_pair_of_those_drawn(epsilon0, shape):
    clients, points, k, s = shape
    most = math.log1p(s / points * math.expm1(epsilon0))
    for name, alphabet in ((None, None), ("2rr", None), ("krr", 3)):
        pairs = exactly(epsilon0, alphabet or 2, shape) if alphabet is None or s == 2 else []
        found = replace(
            shuffle_round(epsilon0, k * s, 1, name, alphabet, k * points), drawn=k / clients
        ).law(1e-12)
        for epsilon in np.linspace(0.0, most, 9)[:-1] if pairs else ():
            stated = float(found.profile(np.array([epsilon]))[0])
            assert worst(pairs, epsilon) <= stated * (1.0 + 1e-9)


@pytest.mark.parametrize("shape", SEVERAL)
def test_one_and_two_rounds_of_several_points_are_within_every_bound(shape):
    pairs = exactly(1.0, 2, shape)
    event = CldpRound(1.0, *shape, "2rr")
    for name in ("pld-clones", "pld-variation", "rdp-cldp"):
        for delta in (0.01, 0.1):
            once = find_run(name).epsilon([(event, 1)], delta).epsilon
            assert worst(pairs, once) <= delta * (1.0 + 1e-9)
            epsilon = find_run(name).epsilon([(event, 2)], delta).epsilon
            for p, q in pairs[:: max(1, len(pairs) // 40)]:
                twice = (np.multiply.outer(p, p), np.multiply.outer(q, q))
                assert hockey_stick(twice, epsilon) <= delta * (1.0 + 1e-9)


def test_who_is_drawn_does_not_amplify_epsilon_where_several_points_are():
    """At the rate of one point, k s/(N R), the stated delta would be exceeded: spec 2.4."""
    for epsilon0, shape in ((1.0, (2, 2, 1, 2)), (1.0, (3, 3, 1, 2))):
        clients, points, k, s = shape
        wrong = shuffle_round(epsilon0, k * s, 1, "2rr", None, clients * points).law(1e-12)
        grid = np.linspace(0.0, 0.9, 19)
        stated = wrong.profile(grid)
        true = np.array([worst(exactly(epsilon0, 2, shape), epsilon) for epsilon in grid])
        assert (true - stated).max() > 0.01


def test_all_points_of_all_clients_are_a_shuffle():
    for name in ("pld-clones", "pld-variation"):
        for times in (1, 30):
            event, plain = CldpRound(1.0, 50, 4, 50, 4, "rbin"), Shuffle(1.0, 200, "rbin")
            one, other = (
                find_run(name).epsilon([(e, times)], 1e-5).epsilon for e in (event, plain)
            )
            assert one == pytest.approx(other, rel=1e-6)


def test_loss_distributions_say_far_less_of_several_points_too():
    event = CldpRound(1.5, 6000, 10, 1000, 3, "rbin")
    table = account([(event, 100)], 1e-5)
    assert table.best == "pld-variation"
    assert table.epsilon < table["rdp-cldp"].value / 3.0
