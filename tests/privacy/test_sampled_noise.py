"""Normal noise on secret samples, against enumerated laws, quadrature and dp_accounting."""

import itertools
import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as peer
from scipy.stats import binom, norm

from raydp_sim.privacy import events as ev
from raydp_sim.privacy.accountant import account
from raydp_sim.privacy.bound import find_run
from raydp_sim.privacy.composition.pld import compose_delta
from raydp_sim.privacy.composition.sampled_noise import SampledNoiseRound
from raydp_sim.privacy.curves.gaussian import gaussian_deltas
from raydp_sim.privacy.floors.floors import least_epsilon

GRID, STEP = np.linspace(-14.0, 14.0, 28_001, retstep=True)
# A kink costs a sum over the grid at most its slope, here below 4, times STEP^2/8; there are two.
OFF = STEP**2
EPSILONS = np.array([0.0, 0.02, 0.2, 0.7, 1.5])


def released(data, k, s, noise):
    """Return the density of the noisy sum, on the grid: every cohort and choice is as likely.

    Args:
        data: values of -1/2 or 1/2, one row per client, so that a replaced point moves it by 1.
        k: clients drawn.
        s: points drawn of each.
        noise: its standard deviation.
    """
    clients, points = data.shape
    sums = []
    for cohort in itertools.combinations(range(clients), k):
        for own in itertools.product(itertools.combinations(range(points), s), repeat=k):
            sums.append(sum(data[c, p] for c, ps in zip(cohort, own, strict=True) for p in ps))
    values, counts = np.unique(sums, return_counts=True)
    parts = [n * norm.pdf(GRID, v, noise) for v, n in zip(values, counts, strict=True)]
    return sum(parts) / len(sums)


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * STEP)


def neighbours(clients, points):
    """Yield all data sets of two values, each with its first point replaced."""
    for rest in itertools.product((-0.5, 0.5), repeat=clients * points - 1):
        for first in (-0.5, 0.5):
            data = np.array([first, *rest]).reshape(clients, points)
            other = data.copy()
            other[0, 0] = -first
            yield data, other


def worst(clients, k, points, s, noise):
    """Return the largest divergence over all neighbours, at each epsilon."""
    found = np.zeros(len(EPSILONS))
    for one, other in neighbours(clients, points):
        p, q = (released(data, k, s, noise) for data in (one, other))
        found = np.maximum(found, [hockey_stick(p, q, e) for e in EPSILONS])
    return found


@pytest.mark.parametrize(
    ("clients", "k", "points", "s"),
    [
        (3, 2, 1, 1),
        (4, 1, 1, 1),
        (3, 3, 1, 1),
        (2, 1, 2, 1),
        (2, 2, 2, 1),
        (2, 1, 2, 2),
        (2, 1, 3, 2),
    ],
)
@pytest.mark.parametrize("noise", [0.6, 2.0])
def test_no_neighbours_are_further_apart_than_a_round_says(clients, k, points, s, noise):
    event = ev.SubsampledGaussianRelease(noise, clients, k, points, s, unit="item")
    stated = SampledNoiseRound(event).profile(EPSILONS, 1e-12)
    exact = worst(clients, k, points, s, noise)
    assert (exact <= stated + OFF).all()
    if s == 1:  # then it is reached: all others hold what is farthest from the victim's
        np.testing.assert_allclose(exact, stated, rtol=1e-9, atol=OFF)


def test_with_several_points_of_a_client_sampling_clients_does_not_amplify_as_with_one():
    """One of two clients is drawn and sends both of its points: the rule of one point is broken."""
    exact = worst(2, 1, 2, 2, 0.6)
    q = 0.5
    as_with_one = q * gaussian_deltas(np.log1p(np.expm1(EPSILONS) / q), 0.6)
    assert (exact[2:] > as_with_one[2:] + 1e-3).all()


def test_two_rounds_cost_no_more_than_their_composition_whatever_is_asked_in_each():
    """In each round the others' values may be chosen anew, also to exchange the directions."""
    noise, grid = 0.8, slice(None, None, 20)
    round_ = [SampledNoiseRound(ev.SubsampledGaussianRelease(noise, 3, 1), 2)]
    laws = {}
    for others in itertools.product((-0.5, 0.5), repeat=2):
        for victim in (-0.5, 0.5):
            data = np.array([victim, *others])[:, None]
            laws[victim, others] = released(data, 1, 1, noise)[grid]
    kinds = {others for _, others in laws}
    for epsilon in (0.1, 0.6, 1.4):
        stated, largest = compose_delta(round_, epsilon), 0.0
        for first, second in itertools.product(kinds, repeat=2):
            for one in (-0.5, 0.5):
                p, q = (np.outer(laws[v, first], laws[v, second]) for v in (one, -one))
                excess = np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * (20 * STEP) ** 2
                largest = max(largest, float(excess))
        assert 0.8 * stated < largest <= stated + 400 * OFF


@pytest.mark.parametrize(("clients", "probability", "points"), [(3, 0.3, 1), (3, 0.8, 2)])
def test_coins_are_the_mean_over_all_numbers_of_those_who_joined(clients, probability, points):
    noise = 0.7
    event = ev.SelfSampledGaussianRelease(noise, clients, probability, points, unit="item")
    stated = SampledNoiseRound(event).profile(EPSILONS, 1e-12)
    exact = np.zeros(len(EPSILONS))
    for one, other in neighbours(clients, points):
        total = np.zeros(len(EPSILONS))
        for k in range(1, clients + 1):
            p, q = (released(data, k, 1, noise) for data in (one, other))
            chance = binom.pmf(k, clients, probability)
            total += chance * np.array([hockey_stick(p, q, e) for e in EPSILONS])
        exact = np.maximum(exact, total)
    np.testing.assert_allclose(exact, stated, rtol=1e-9, atol=OFF)


def test_many_coins_are_put_together_at_little_cost():
    event = ev.SelfSampledGaussianRelease(1.0, 1000, 0.1)
    stated = SampledNoiseRound(event).profile(EPSILONS, 1e-12)
    k = np.arange(1, 1001)
    base = np.log1p(np.expm1(EPSILONS)[:, None] * 1000 / k)
    each = k / 1000 * gaussian_deltas(base.ravel(), 1.0).reshape(base.shape)
    exact = (binom.pmf(k, 1000, 0.1) * each).sum(axis=1)
    assert (exact <= stated + 1e-12).all() and (stated <= 1.05 * exact + 1e-12).all()


RUNS = [(1.0, 10_000, 100, 100, 1e-5), (0.7, 1000, 50, 10, 1e-6), (3.0, 100, 30, 60, 1e-5)]


@pytest.mark.parametrize(("noise", "clients", "k", "times", "delta"), RUNS)
def test_epsilon_lies_between_the_peers_pair_of_one_direction_and_their_divergences(
    noise, clients, k, times, delta
):
    """Who is removed from a Poisson sample at the same rate is one of the pairs that must be
    covered; dp_accounting's divergences of samples without replacement are an upper bound."""
    event = ev.SubsampledGaussianRelease(noise, clients, k)
    found = find_run("pld-sampled-noise").epsilon([(event, times)], delta).epsilon
    options = {"pessimistic_estimate": False, "value_discretization_interval": 1e-3}
    law = peer.from_gaussian_mechanism(noise, sampling_prob=k / clients, **options)
    least = law.self_compose(times).get_epsilon_for_delta(delta)
    assert least <= found * (1.0 + 1e-9)
    theirs = dp_accounting.rdp.RdpAccountant(
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE
    )
    inner = dp_accounting.GaussianDpEvent(noise)
    drawn = dp_accounting.SampledWithoutReplacementDpEvent(clients, k, inner)
    theirs.compose(drawn, times)
    assert found <= theirs.get_epsilon(delta)
    assert found <= 1.5 * least
    assert least_epsilon(event, times, delta) <= found
    # All of it by the table too, where what is not sampled is beside it.
    table = account([(event, times)], delta)
    assert table.best == "pld-sampled-noise" and table["rdp-best"].value > found


def test_everyone_sampled_is_no_sample():
    whole = ev.SubsampledGaussianRelease(2.0, 50, 50)
    found = find_run("pld-sampled-noise").epsilon([(whole, 9)], 1e-6).epsilon
    exact = find_run("pld-noise").epsilon([(ev.GaussianRelease(2.0), 9)], 1e-6).epsilon
    assert exact <= found <= 1.005 * exact
    coins = ev.SelfSampledGaussianRelease(2.0, 50, 1.0)
    assert find_run("pld-sampled-noise").epsilon([(coins, 9)], 1e-6).epsilon >= exact
