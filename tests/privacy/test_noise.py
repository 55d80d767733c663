"""Loss distributions of noisy releases, against dp_accounting, quadrature and exact composition."""

import math
import sys

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as peer
from scipy.stats import norm

from raydp_sim.errors import InputError
from raydp_sim.privacy import events as ev
from raydp_sim.privacy.bound import find_run
from raydp_sim.privacy.composition.direct import compose
from raydp_sim.privacy.composition.fourier import transform
from raydp_sim.privacy.composition.losses import connect_side, join
from raydp_sim.privacy.composition.noise import LaplaceNoise, NoiseRound, NormalNoise
from raydp_sim.privacy.composition.pld import compose_delta
from raydp_sim.privacy.dp_events import from_dp_event, to_dp_event
from raydp_sim.privacy.errors import NotApplicable, Unsupported

RUNS = [
    (ev.SubsampledGaussian(1.0, 0.01), 100, 1e-5),
    pytest.param(ev.SubsampledGaussian(0.8, 0.001), 10_000, 1e-6, marks=pytest.mark.long),
    pytest.param(ev.SubsampledGaussian(2.0, 0.3), 20, 1e-8, marks=pytest.mark.long),
    (ev.SubsampledGaussian(0.6, 0.02), 3, 1e-9),
    (ev.GaussianRelease(20.0), 100, 1e-6),
    (ev.LaplaceRelease(0.2), 50, 1e-6),
    (ev.SubsampledLaplace(1.0, 0.01), 100, 1e-5),
    (ev.SubsampledLaplace(3.0, 0.1), 5, 1e-7),
]


def peers_epsilon(event, times, delta, pessimistic):
    """Return dp_accounting's epsilon, an upper or a lower bound on the true one."""
    step = 1e-4 if times > 5 else 1e-3
    options = {"pessimistic_estimate": pessimistic, "value_discretization_interval": step}
    rate = getattr(event, "rate", 1.0)
    if hasattr(event, "noise_multiplier"):
        law = peer.from_gaussian_mechanism(event.noise_multiplier, sampling_prob=rate, **options)
    else:
        law = peer.from_laplace_mechanism(1.0 / event.epsilon, sampling_prob=rate, **options)
    return law.self_compose(times).get_epsilon_for_delta(delta)


@pytest.mark.parametrize(("event", "times", "delta"), RUNS)
def test_noise_lies_between_the_peers_two_estimates_within_one_percent(event, times, delta):
    found = find_run("pld-noise").epsilon([(event, times)], delta).epsilon
    assert peers_epsilon(event, times, delta, False) <= found * (1.0 + 1e-9)
    assert found <= 1.01 * peers_epsilon(event, times, delta, True)


def test_the_gaussian_of_the_calculator_is_no_longer_that_of_divergences():
    event = [(ev.SubsampledGaussian(1.0, 0.01), 100)]
    assert find_run("pld-noise").epsilon(event, 1e-5).epsilon < 0.7181 * 1.01
    assert find_run("rdp-best").epsilon(event, 1e-5).epsilon > 1.2


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.1), (0.5, 0.7), (3.0, 0.01)])
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.05, 0.5])
def test_profiles_of_sampled_normal_noise_are_the_integrals(sigma, rate, epsilon):
    one = NoiseRound(NormalNoise(sigma), rate=rate)
    y, step = np.linspace(-12.0 * sigma, 1.0 + 12.0 * sigma, 400_001, retstep=True)
    without = norm.pdf(y, 0.0, sigma)
    used = (1.0 - rate) * without + rate * norm.pdf(y, 1.0, sigma)
    for profile, a, b in ((one.removed, used, without), (one.added, without, used)):
        exact = float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum() * step)
        # The one kink costs the sum about step^2 times the slope there.
        assert float(profile(np.array([epsilon]))[0]) == pytest.approx(exact, abs=1e-8, rel=1e-6)


def exact_profile(p, q, times, epsilon):
    """Return H of the product of finite laws, by listing all its points."""
    a, b = np.ones(1), np.ones(1)
    for _ in range(times):
        a, b = np.outer(a, p).ravel(), np.outer(b, q).ravel()
    return float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum())


def sides(p, q):
    """Return the losses > 0 of a pair of finite laws, with everything above 5 as infinite."""
    with np.errstate(divide="ignore"):
        losses = np.unique(np.log(p / q))
    knots = losses[(losses > 0.0) & (losses < 5.0)]
    knots = np.append(knots, 6.0)
    return connect_side(
        knots, np.array([exact_profile(p, q, 1, e) for e in (0.0, *knots)]) * (1.0 + 1e-14)
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("times", [1, 2, 4])
def test_pairs_that_are_not_symmetric_compose_as_their_products_do(seed, times):
    draw = np.random.default_rng(seed)
    p, q = draw.dirichlet(np.full(5, 0.7)), draw.dirichlet(np.full(5, 2.0))
    if seed % 2:
        p = p / 1.01
        q, p = np.append(q, 0.0), np.append(p, 1.0 - p.sum())  # a loss of infinity
    law = join(sides(p, q), sides(q, p))
    found = compose([(law, times)], 1e-14, 900)
    for epsilon in (0.0, 0.1, 0.7, 2.0, 4.0):
        for composed, a, b in ((found, p, q), (found.swapped(), q, p)):
            exact = exact_profile(a, b, times, epsilon)
            value = float(composed.profile(np.array([epsilon]))[0])
            assert exact * (1.0 - 1e-12) <= value <= exact * 1.01 + 1e-12
    for parts, a, b in (([(law, times)], p, q), ([(law.swapped(), times)], q, p)):
        by_transform = transform(parts, 1.0, 1e-12)
        for epsilon in (0.1, 0.7, 2.0):
            assert by_transform.delta(epsilon) >= exact_profile(a, b, times, epsilon) * (1 - 1e-9)


def test_delta_is_that_of_the_direction_which_needs_more():
    # Removing a record costs more at large epsilons: an added one has no loss beyond -log(1 - q).
    one = NoiseRound(NormalNoise(1.0), 3, 0.1)
    law = compose([(one.law(1e-14), 3)], 1e-14, 400)
    two = [float(way.profile(np.array([0.5]))[0]) for way in (law, law.swapped())]
    assert two[0] > 2.0 * two[1]
    assert compose_delta([one], 0.5) == pytest.approx(two[0], rel=1e-2)


def test_laplace_noise_composes_by_its_own_law():
    # The largest losses of k releases add up to their pure loss.
    assert NoiseRound(LaplaceNoise(1.0), 4).most == 1.0
    few = find_run("pld-noise").epsilon([(ev.LaplaceRelease(0.1), 1000)], 1e-6).epsilon
    assert few < find_run("rdp-best").epsilon([(ev.LaplaceRelease(0.1), 1000)], 1e-6).epsilon


def test_noise_too_small_is_refused_and_not_guessed():
    with pytest.raises(NotApplicable, match="too small"):
        find_run("pld-noise").epsilon([(ev.GaussianRelease(1e-3), 1)], 1e-6)


@pytest.mark.parametrize(
    ("events", "meant"),
    [
        ([(ev.GaussianRelease(2.0), 3), (ev.LaplaceRelease(0.5), 2)], "replace-one"),
        ([(ev.SubsampledGaussianRelease(1.0, 100, 10), 5)], "replace-one"),
        ([(ev.SubsampledGaussian(1.0, 0.1), 5), (ev.SubsampledLaplace(1.0, 0.2), 1)], "add-remove"),
        ([(ev.GaussianRelease(2.0), 1)], "add-remove"),
    ],
)
def test_events_survive_the_way_to_dp_accounting_and_back(events, meant):
    made, said = to_dp_event(events)
    assert said in (meant, "either")
    assert from_dp_event(made, meant) == events


def test_what_only_one_library_has_is_refused():
    with pytest.raises(Unsupported, match="no event for Shuffle"):
        to_dp_event([(ev.Shuffle(1.0, 10), 1)])
    sampled = dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(1.0))
    with pytest.raises(Unsupported, match="replace-one"):
        from_dp_event(sampled, "replace-one")
    with pytest.raises(NotApplicable, match="added up"):
        to_dp_event([(ev.SubsampledGaussian(1.0, 0.1), 1), (ev.CentralRelease(1.0), 1)])


def test_without_dp_accounting_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.dp_event", None)
    with pytest.raises(InputError, match="pip install dp-accounting"):
        to_dp_event([(ev.GaussianRelease(1.0), 1)])
