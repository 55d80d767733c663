"""Shuffles of normal and Laplace noise, and of vqSGD, attacked by quadrature and enumeration.

Outputs are told in cells, so the divergences found are no larger than the true ones: whatever
exceeds a bound refutes it. All neighbours among some inputs, both directions, and other clients
with inputs of their own.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import ndtr

from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.shuffled import shuffled_event
from raydp_sim.privacy.bound import find_run
from raydp_sim.privacy.composition.law_rounds import LawRound
from raydp_sim.privacy.composition.losses import connect, convex
from raydp_sim.privacy.composition.normal_rounds import NormalRound
from raydp_sim.privacy.curves.gaussian import gaussian_delta, gaussian_epsilon
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import GaussianShuffle, Shuffle, SubsampledGaussianShuffle
from raydp_sim.privacy.floors.floors import least_epsilon
from raydp_sim.privacy.laws import law_of
from raydp_sim.privacy.normal_laws import normal
from tests.privacy import enumeration as exact

EPSILONS = np.array([0.0, 0.02, 0.1, 0.3, 0.7, 1.2, 2.0])


def laplace_cdf(z):
    return np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0)), 1 - 0.5 * np.exp(-np.maximum(z, 0)))


def told(cdf, inputs, edges):
    """The probabilities of the cells of a lattice, for inputs with independent noise."""
    rows = []
    for x in np.atleast_2d(inputs):
        row = np.ones(1)
        for coordinate in x:
            row = np.outer(row, np.diff(cdf(edges - coordinate))).ravel()
        rows.append(row)
    return np.array(rows)


def lattice(reach, cells):
    return np.concatenate([[-np.inf], np.linspace(-reach, reach, cells - 1), [np.inf]])


def ball(radius, dimension, norm, count, seed):
    """Corners of the ball, its centre, and random inputs on its sphere and inside."""
    rng = np.random.default_rng(seed)
    inputs = [sign * radius * np.eye(dimension)[i] for i in range(dimension) for sign in (1, -1)]
    inputs.append(np.zeros(dimension))
    for _ in range(count):
        x = rng.normal(size=dimension)
        length = radius * (1.0 if rng.random() < 0.6 else rng.random())
        inputs.append(x / np.linalg.norm(x, norm) * length)
    return np.array(inputs)


def worst(channel, n):
    """Largest divergences over all neighbours of n ordered messages, symmetrized."""
    found = np.zeros(len(EPSILONS))
    for others in itertools.combinations_with_replacement(range(len(channel)), n - 1):
        laws = []
        for row in channel:
            law = 0.0
            for place in range(n):
                rows = [channel[i] for i in others]
                rows.insert(place, row)
                for order in set(itertools.permutations(range(n))) if n > 2 else [(0, 1), (1, 0)]:
                    if n > 1:
                        law = law + _outer([rows[i] for i in order])
            laws.append(law / law.sum() if n > 1 else row)
        for first, second in itertools.permutations(laws, 2):
            for i, epsilon in enumerate(EPSILONS):
                value = np.maximum(first - math.exp(epsilon) * second, 0.0).sum()
                found[i] = max(found[i], value)
    return found


def _outer(rows):
    out = np.ones(1)
    for row in rows:
        out = np.multiply.outer(out, row).ravel()
    return out


def normal_channel(a, dimension, cells, count=2, seed=0):
    inputs = ball(a, dimension, 2, count, seed)
    return told(ndtr, inputs, lattice(a + 3.0, cells))


@pytest.mark.parametrize(
    ("a", "dimension", "cells", "n"),
    [
        (0.2, 1, 80, 2),
        (0.6, 1, 80, 2),
        (1.0, 1, 24, 3),
        (0.4, 1, 24, 3),
        (0.3, 2, 16, 2),
        (0.8, 2, 16, 2),
        (0.5, 3, 7, 2),
    ],
)
def test_no_neighbours_of_shuffled_normal_noise_are_further_apart_than_the_bound(
    a, dimension, cells, n
):
    channel = normal_channel(a, dimension, cells)
    found = worst(channel, n)
    by_blanket = LawRound(normal(a, dimension, 1e-4), n).profile(EPSILONS)
    assert np.all(found <= by_blanket)
    assert np.all(found <= NormalRound(0.5 / a, dimension, n, tail=1e-9).profile(EPSILONS))
    if dimension == 1:
        # Few others hide little: the bound is not far, so that this test can fail.
        assert by_blanket[0] <= 1.5 * found[0]


@pytest.mark.parametrize("a", [0.25, 0.7])
def test_four_clients_with_normal_noise_and_other_inputs_of_the_others(a):
    inputs = np.array([[-a], [-0.4 * a], [0.1 * a], [a]])
    channel = told(ndtr, inputs, lattice(1.6, 6))
    found = np.zeros(len(EPSILONS))
    for first, second in exact.shuffle_pairs(channel, 4):
        values = [np.maximum(first - math.exp(e) * second, 0.0).sum() for e in EPSILONS]
        found = np.maximum(found, values)
    assert np.all(found <= LawRound(normal(a, 1, 1e-9), 4).profile(EPSILONS))


@pytest.mark.parametrize(("clients", "sampled"), [(4, 1), (4, 2), (4, 3), (3, 2)])
def test_no_neighbours_of_sampled_normal_noise_are_further_apart(clients, sampled):
    a = 0.6
    channel = told(ndtr, np.array([[-a], [0.0], [a]]), lattice(1.8, 6))
    rate = sampled / clients
    bound = NormalRound(0.5 / a, 1, sampled, rate=rate, tail=1e-9).profile(EPSILONS)
    law = LawRound(normal(a, 1, 1e-9), sampled, rate=rate).profile(EPSILONS)
    for first, second in exact.subsampled_pairs(channel, clients, sampled):
        values = np.array([np.maximum(first - math.exp(e) * second, 0.0).sum() for e in EPSILONS])
        assert np.all(values <= bound * (1 + 1e-12))
        assert np.all(values <= law * (1 + 1e-12))


@pytest.mark.parametrize("a", [0.15, 0.5, 1.1])
def test_inputs_inside_an_interval_are_smaller_in_convex_order(a):
    w = np.linspace(-12.0, 12.0, 200_001)
    blanket = np.exp(-0.5 * (np.abs(w) + a) ** 2) / math.sqrt(2 * math.pi)
    for k in (1.0, 1.1, 1.5, 3.0, 20.0):
        excess = [
            np.maximum(np.exp(-0.5 * (w - x) ** 2) / math.sqrt(2 * math.pi) - k * blanket, 0).sum()
            for x in np.linspace(0.0, a, 12)
        ]
        assert np.all(np.diff(excess) >= -1e-9 * excess[-1])


@pytest.mark.parametrize(("a", "d"), [(0.3, 2), (0.6, 2), (0.4, 5), (0.2, 40)])
def test_the_blanket_of_a_vector_is_a_little_less_than_the_true_one_and_keeps_all_of_a_report(a, d):
    lifted, law = d + 1, normal(a, d, 1e-10)
    log_sphere = math.log(2.0) - math.lgamma(0.5 * lifted) - 0.5 * lifted * math.log(2.0)
    true = quad(
        lambda s: math.exp(log_sphere + (lifted - 1) * math.log(s) - 0.5 * (s + a) ** 2), 0, 40
    )[0]
    assert true * 0.97 <= law.mass <= true
    for ratio in (law.first, law.second):
        assert float(law.weights @ ratio) * law.mass == pytest.approx(1.0, abs=1e-8)
    assert law.beyond < 1.1e-10


@pytest.mark.parametrize(("a", "d"), [(0.3, 2), (0.7, 2), (0.5, 4)])
def test_the_law_of_a_vector_is_no_less_spread_than_the_true_one(a, d):
    """One copy: E (f - c f')_+ over the blanket, by a double integral on the lifted sphere."""
    law = normal(a, d, 1e-10)
    for c in (1.0, 1.5, 4.0):

        def density(t, y, c=c):
            # The three measures at (y, t); t is a chi of d degrees.
            log_chi = (d - 1) * math.log(t) - 0.5 * t * t + (1 - 0.5 * d) * math.log(2)
            chi = math.exp(log_chi - math.lgamma(0.5 * d))
            up, down = math.exp(-0.5 * (y - a) ** 2), math.exp(-0.5 * (y + a) ** 2)
            return chi * max(up - c * down, 0.0) / math.sqrt(2 * math.pi)

        start = math.log(c) / (2 * a)
        true = dblquad(density, start, 12, 1e-9, 12, epsabs=1e-9)[0]
        mine = law.mass * float(law.weights @ np.maximum(law.first - c * law.second, 0.0))
        assert true <= mine + law.beyond + 1e-8
        assert mine <= true * 1.02 + 1e-3


def test_tails_are_charged_to_delta_and_refused_where_they_are_more():
    law = normal(0.4, 1, 1e-3)
    high = LawRound(law, 100).profile(np.array([50.0]))
    assert high[0] >= law.beyond >= 0.9e-3
    assert LawRound(law, 100).epsilon(1e-4) == math.inf
    low, high = (LawRound(normal(0.4, 1, t), 1000).epsilon(1e-6) for t in (1e-9, 1e-7))
    assert low == pytest.approx(high, rel=0.2)


def test_the_report_alone_is_always_a_candidate():
    bound = find_run("pld-gaussian")
    for multiplier in (0.05, 1.0, 100.0):
        for dimension in (1, 3, 10**6):
            for n in (1, 1000):
                for times in (1, 50):
                    event = GaussianShuffle(multiplier, n, dimension)
                    found = bound.epsilon([(event, times)], 1e-6).epsilon
                    alone = gaussian_epsilon(1e-6, multiplier / math.sqrt(times))
                    assert found <= alone * (1 + 1e-8)
                    assert gaussian_delta(alone, multiplier / math.sqrt(times)) <= 1e-6
                    if n == 1:
                        assert found == pytest.approx(alone, rel=1e-6)
    with pytest.raises(NotApplicable, match="blanket"):
        normal(10.0, 1, 1e-9)


@pytest.mark.parametrize("multiplier", [0.03, 0.02, 1e-3])
@pytest.mark.parametrize("times", [1, 3, 20])
def test_next_to_no_noise_costs_what_a_report_alone_costs(multiplier, times):
    """Beyond the losses that profiles are looked at nothing may be claimed."""
    bound = find_run("pld-gaussian")
    for event in (GaussianShuffle(multiplier, 1), GaussianShuffle(multiplier, 10, 3)):
        found = bound.epsilon([(event, times)], 1e-6).epsilon
        assert gaussian_delta(found, multiplier / math.sqrt(times)) <= 1e-6
    # A sampled report tells all it tells with the probability of being there.
    event = SubsampledGaussianShuffle(multiplier, 2, 1)
    found = bound.epsilon([(event, times)], 1e-6).epsilon
    assert 0.5 * gaussian_delta(found + math.log(2.0), multiplier) <= 1e-6


@pytest.mark.parametrize("times", [1, 40])
def test_the_floor_of_shuffled_normal_noise_is_below_and_not_far(times):
    for event in (
        GaussianShuffle(2.0, 10_000),
        GaussianShuffle(1.5, 500),
        SubsampledGaussianShuffle(1.0, 100_000, 1000),
    ):
        floor = least_epsilon(event, times, 1e-8)
        value = find_run("pld-gaussian").epsilon([(event, times)], 1e-8).epsilon
        assert 0.2 * value < floor <= value


def test_more_noise_more_clients_and_fewer_dimensions_cost_less():
    def cost(*event):
        return find_run("pld-gaussian").epsilon([(GaussianShuffle(*event), 1)], 1e-7).epsilon

    assert cost(2.0, 1000) > cost(2.5, 1000) > cost(2.5, 4000)
    assert cost(2.0, 1000, 1) < cost(2.0, 1000, 5) < cost(2.0, 1000, 50)


# Laplace vectors


@pytest.mark.parametrize(("epsilon", "cells", "n"), [(1.0, 10, 2), (3.0, 10, 2), (2.0, 4, 3)])
def test_no_neighbours_of_shuffled_laplace_vectors_are_further_apart(epsilon, cells, n):
    inputs = ball(0.5 * epsilon, 2, 1, 3, seed=1)
    channel = told(laplace_cdf, inputs, lattice(0.5 * epsilon + 0.3, cells))
    found = worst(channel, n)
    bound = LawRound(law_of("laplace", epsilon), n).profile(EPSILONS)
    assert np.all(found <= bound + 1e-15)
    assert bound[0] <= 1.5 * found[0]


@pytest.mark.parametrize(("x", "y"), [(1.0, 1.0), (0.7, 0.2), (2.0, 0.05)])
def test_two_laplace_coordinates_lose_less_than_their_sum(x, y):
    """The lemma of laws.py: the survival functions have the stated form and cross once."""
    rng = np.random.default_rng(5)
    w = rng.laplace(size=(2, 400_000))
    total = sum(np.abs(w[i]) - np.abs(w[i] - s) for i, s in enumerate((x, y)))
    for v in np.linspace(-x - y + 0.01, x + y - 0.01, 8):
        if v < y - x:
            form = 0.75 + (v + x + y) / 8
        elif v < x - y:
            form = 0.5 + y / 4
        else:
            form = 0.25 + (x + y - v) / 8
        seen = float((total > v).mean())
        # Six standard deviations of 400,000 draws: false alarm below 1e-7 over all of them.
        assert abs(seen - form * math.exp(-0.5 * (v + x + y))) < 6 * 0.5 / math.sqrt(400_000)
    for k in (-0.5, 0.0, 0.4):
        # E (e^l - e^k)_+ of one coordinate with all of it, and of two.
        one = max(0.0, -math.expm1(0.5 * (k - x - y)))
        two = float(np.maximum(np.exp(total) - math.exp(k), 0.0).mean())
        assert two <= one + 6 * math.exp(x + y) / math.sqrt(400_000)


# vqSGD


@pytest.mark.parametrize("calibration", ["seed", "tight"])
@pytest.mark.parametrize(
    ("d", "epsilon", "n"), [(1, 2.0, 4), (2, 1.5, 4), (2, 4.0, 3), (3, 3.0, 3)]
)
def test_no_neighbours_of_shuffled_corners_are_further_apart(calibration, d, epsilon, n):
    settings = {"dimension": d, "radius": 1.0, "calibration": calibration}
    mechanism = make("vqsgd", epsilon_local=epsilon, **settings)
    inputs = ball(1.0, d, 2, 2, seed=3)
    signs = np.array(list(itertools.product((1, -1), repeat=d))) / math.sqrt(d)
    channel = mechanism.laws(np.concatenate([inputs[: 2 * d], inputs[-2:], signs]))[0]
    law = law_of(mechanism.randomizer(), mechanism.losses()[0], mechanism.alphabet())
    pick = channel if n < 4 else channel[:: max(1, len(channel) // 6)]
    for size in range(1, n + 1):
        bound = LawRound(law, size).profile(EPSILONS)
        for first, second in exact.shuffle_pairs(pick, size):
            for e, most in zip(EPSILONS, bound, strict=True):
                assert np.maximum(first - math.exp(e) * second, 0.0).sum() <= most * (1 + 1e-9)


@pytest.mark.parametrize("d", [1, 2, 7, 300])
def test_corners_of_no_input_are_more_spread_than_the_law(d):
    mechanism = make("vqsgd", epsilon_local=2.0, dimension=d, radius=1.0, calibration="tight")
    law = law_of("vqsgd", mechanism.losses()[0], 2 * d)
    laws = mechanism.laws(ball(1.0, d, 2, 40, seed=d)[-60:])[0]
    ratios = laws * 2 * d / law.mass
    for k in np.geomspace(1.0, math.exp(2.0), 15):
        spread = float(law.weights @ np.maximum(law.first - k, 0.0))
        assert np.all(np.maximum(ratios - k, 0.0).mean(axis=1) <= spread * (1 + 1e-6) + 1e-9)


@pytest.mark.parametrize("calibration", ["seed", "tight"])
def test_corners_cost_less_than_any_randomizer_of_their_loss_and_no_less_than_their_floor(
    calibration,
):
    settings = {"dimension": 50, "radius": 1.0, "calibration": calibration}
    event = shuffled_event(make("vqsgd", epsilon_local=2.0, **settings), 10_000)
    assert isinstance(event, Shuffle)
    value = find_run("pld-law").epsilon([(event, 1)], 1e-8).epsilon
    generic = find_run("pld-clones").epsilon([(event, 1)], 1e-8).epsilon
    assert 0.4 * value < least_epsilon(event, 1, 1e-8) <= value < 0.6 * generic


# What makes laws of bounds whose slack differs


def test_convex_bounds_stay_above_the_profile_and_make_no_heavy_law():
    rng = np.random.default_rng(0)
    losses = np.linspace(0.02, 3.0, 60)
    true = np.array([gaussian_delta(e, 1.3) for e in np.append(0.0, losses)])
    for _ in range(50):
        values = true * (1.0 + rng.random(len(true)) * rng.choice([1e-3, 0.3, 3.0]))
        made = convex(losses, values)
        assert np.all(true <= made) and np.all(made <= values * (1 + 1e-12))
        law = connect(losses, made)
        assert law.total <= 1.0 + 1e-9
        assert np.all(law.profile(np.append(0.0, losses)) >= true * (1 - 1e-12))
