"""Rounds that sample clients and one point of each: exact divergences of tiny ones, and bounds."""

import math
from functools import cache

import numpy as np
import pytest

from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.bound import find_run
from raydp_sim.privacy.composition.law_rounds import LawRound
from raydp_sim.privacy.composition.pld import shuffle_round
from raydp_sim.privacy.errors import Unsupported
from raydp_sim.privacy.events import CldpRound, SubsampledShuffle
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


def test_several_points_per_client_are_refused_by_loss_distributions():
    event = CldpRound(1.0, 100, 4, 10, 2)
    with pytest.raises(Unsupported, match="one point per client"):
        find_run("pld-clones").epsilon([(event, 3)], 1e-5)
