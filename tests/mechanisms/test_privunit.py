"""Published numbers of PrivUnit, its cap against quadrature, and the law of what it sends."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.parts.spherical_cap import _normal, _sphere, best_cap
from raydp_sim.random import Stream

from .support import ALPHA, reports

PUBLISHED = {
    (2, 1.0): (0.308287, 0.644638, 9.52178),
    (10, 1.0): (0.128318, 0.597757, 59.7326),
    (300, 1.0): (0.0229636, 0.589588, 1895.35),
    (300, 2.0): (0.0454218, 0.670825, 483.697),
    (300, 4.0): (0.0874105, 0.791819, 129.880),
    (300, 6.0): (0.124664, 0.862402, 63.3452),
}
# 1 / mean with the threshold 0 and epsilon 1: the scale of Priv, by dimension.
PRIV = {2: 3.39913, 3: 4.32791, 10: 8.36505, 100: 27.0534, 1000: 85.7431}
VARIANTS = ("exact", "gaussian")


def density(variant, d, t):
    """The law of <V, u> before the tilt, up to a constant on the sphere; not the code's formula."""
    if variant == "gaussian":
        return math.exp(-0.5 * t * t)
    # With t = sin(a) there is no singularity: dt = cos(a) da.
    return math.exp((d - 2) * math.log(max(math.cos(t), 1e-300)))


def integral(variant, d, low, high, weight=lambda t: 1.0):
    """The integral of weight(height) from low to high (angles on the sphere), over the whole."""
    plain = variant == "gaussian"
    top = 40.0 if plain else math.pi / 2
    # Cut where the mass is: about 0, in steps of the law's width.
    width = 1.0 if variant == "gaussian" else 1.0 / math.sqrt(d)

    def over(bounds, f):
        cuts = [c * width for c in range(-30, 31) if bounds[0] < c * width < bounds[1]]
        points = [bounds[0], *cuts, bounds[1]]
        spans = itertools.pairwise(points)
        pieces = [integrate.quad(f, a, b, epsabs=0.0, epsrel=1e-13)[0] for a, b in spans]
        return math.fsum(pieces)

    part = over((low, high), lambda t: weight(t if plain else math.sin(t)) * density(variant, d, t))
    return part / over((-top, top), lambda t: density(variant, d, t))


@pytest.mark.parametrize("shape", PUBLISHED)
def test_published_caps_and_errors(shape):
    (d, epsilon), (threshold, probability, error) = shape, PUBLISHED[shape]
    mechanism = make("privunit", epsilon_local=epsilon, dimension=d, radius=1.0)
    assert mechanism.cap.threshold == pytest.approx(threshold, rel=5e-6)
    assert mechanism.cap.probability == pytest.approx(probability, rel=1e-6)
    assert mechanism.mse(np.eye(d)[:1])[0] == pytest.approx(error, rel=4e-6)
    # At the optimum the threshold is the mean.
    assert mechanism.cap.threshold == pytest.approx(mechanism.cap.mean, rel=1e-9)


@pytest.mark.parametrize("d", PRIV)
def test_a_threshold_of_zero_is_priv_and_the_best_cap_beats_it(d):
    mass, partial = _sphere(d)(0.0)
    assert (mass + 1.0 / math.expm1(1.0)) / partial == pytest.approx(PRIV[d], rel=2e-6)
    assert 1.0 / best_cap("exact", d, 1.0).mean < PRIV[d]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("d", [2, 3, 10, 300])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_mass_mean_and_error_agree_with_quadrature(variant, d, epsilon):
    cap = best_cap(variant, d, epsilon)
    top = 40.0 if variant == "gaussian" else math.pi / 2
    g = cap.threshold if variant == "gaussian" else math.asin(cap.threshold)
    p, q = cap.probability, cap.mass
    assert integral(variant, d, g, top) == pytest.approx(q, rel=1e-10)

    def tilted(weight):
        inside, outside = (integral(variant, d, *side, weight) for side in ((g, top), (-top, g)))
        return p / q * inside + (1 - p) / (1 - q) * outside

    assert tilted(lambda t: 1.0) == pytest.approx(1.0, rel=1e-10)
    assert tilted(lambda t: t) == pytest.approx(cap.mean, rel=1e-9)
    across = d - 1.0 if variant == "gaussian" else 0.0
    along = tilted(lambda t: t * t) if variant == "gaussian" else 1.0
    assert along + across == pytest.approx(cap.second, rel=1e-10)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("d", [2, 5, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_no_other_threshold_has_less_error(variant, d, epsilon):
    cap, rest = best_cap(variant, d, epsilon), 1.0 / math.expm1(epsilon)
    law = _sphere(d) if variant == "exact" else _normal

    def error(threshold):
        mass, partial = law(threshold)
        mean = partial / (mass + rest)
        return (1.0 if variant == "exact" else d + threshold * mean) / mean**2

    best = cap.second / cap.mean**2
    assert best == pytest.approx(error(cap.threshold), rel=1e-9)
    for threshold in (0.0, 0.5 * cap.threshold, 0.9 * cap.threshold, 1.001 * cap.threshold):
        assert error(threshold) > best * (1 + 1e-10)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("d", [1, 2, 3, 10, 1000, 10**6])
def test_the_density_ratio_is_the_stated_loss(variant, d):
    for epsilon in (1e-9, 1e-3, 0.5, 1.0, 4.0, 8.0, 20.0, 25.0):
        mechanism = make(
            "privunit", epsilon_local=epsilon, dimension=d, radius=1.0, variant=variant
        )
        p, q = mechanism.cap.probability, mechanism.cap.mass
        # A 53-bit uniform below p happens this often.
        sampled = math.ceil(p * 2.0**53) / 2.0**53
        exact = math.log(sampled) - math.log1p(-sampled) - math.log(q) + math.log1p(-q)
        assert exact <= mechanism.event().epsilon <= epsilon
        assert mechanism.event().epsilon - exact < 1e-9 + 2.0**-50 / (1.0 - p)


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_point_of_the_plane_is_likelier_by_more_than_the_loss(variant):
    cap = best_cap(variant, 2, 1.5)
    angles = np.linspace(0.0, 2 * np.pi, 181)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    reached = np.concatenate([size * circle for size in (1.0, 0.2, 3.0)])
    height = reached @ circle.T
    p, q = cap.probability, cap.mass
    # The law without direction is a common factor of every column.
    log = np.where(height >= cap.threshold, math.log(p / q), math.log((1 - p) / (1 - q)))
    worst = (log.max(axis=1) - log.min(axis=1)).max()
    assert worst <= 1.5 and worst == pytest.approx(1.5, abs=1e-9)


def test_the_mass_of_a_large_cap_keeps_its_digits():
    """Through 1 - threshold^2, as printed, the mass is off by more than the whole loss."""
    cap = best_cap("exact", 1000, 1e-9)
    g, half = cap.threshold, 0.5 * 999
    peak = math.exp(-special.betaln(half, 0.5))
    assert cap.mass == pytest.approx(0.5 - peak * g, abs=2e-16)
    printed = 0.5 * special.betainc(half, 0.5, (1.0 - g) * (1.0 + g))
    assert abs(printed - (0.5 - peak * g)) > 1e-10


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("d", "epsilon"), [(2, 1.0), (3, 8.0), (10, 25.0), (1000, 1.0), (1000, 8.0)]
)
def test_heights_invert_the_law_on_both_sides_and_in_the_tails(variant, d, epsilon):
    cap = best_cap(variant, d, epsilon)
    uniform = np.array([2.0**-54, 1e-9, 0.1, 0.5, 0.9, 1.0 - 1e-9])

    def above(height, across):
        # The probability above a height, from whichever of the two has kept its digits.
        if variant == "gaussian":
            return integral(variant, d, height, 40.0)
        if abs(height) < 0.9:
            return integral(variant, d, math.asin(height), math.pi / 2)
        pole = integrate.quad(lambda a: math.sin(a) ** (d - 2), 0.0, math.asin(across), epsabs=0.0)
        share = pole[0] / special.beta((d - 1) / 2, 0.5)
        return share if height > 0.0 else 1.0 - share

    inside = cap.heights(np.ones(6, bool), uniform)
    assert (inside[0] >= cap.threshold * (1 - 1e-12)).all()
    for height, across, u in zip(*inside, uniform, strict=True):
        assert above(height, across) == pytest.approx(cap.mass * u, rel=1e-9)
        if variant == "exact":
            assert height**2 + across**2 == pytest.approx(1.0, abs=1e-13)
    outside = cap.heights(np.zeros(6, bool), uniform)
    assert (outside[0] <= cap.threshold * (1 + 1e-12)).all()
    for height, across, u in zip(*outside, uniform, strict=True):
        # By symmetry, what is below a height is above its negative.
        below = above(-height, across)
        assert below == pytest.approx((1.0 - cap.mass) * (1.0 - u), rel=1e-9)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("d", [3, 70])
def test_reports_follow_the_law_along_and_across(variant, d):
    """Kolmogorov-Smirnov on 20,000 reports, twice: false alarm 1e-8 each."""
    mechanism = make("privunit", epsilon_local=2.0, dimension=d, radius=1.0, variant=variant)
    random = np.random.default_rng(d)
    u, other = np.linalg.qr(random.normal(size=(d, 2)))[0].T
    v = reports(mechanism, np.tile(u, (20_000, 1)))[:, 0] / mechanism.scale
    cap = mechanism.cap

    def plain(t):
        if variant == "gaussian":
            return special.ndtr(t)
        return special.betainc((d - 1) / 2, (d - 1) / 2, (1.0 + t) / 2)

    def tilted(t):
        below = np.minimum(plain(t), 1.0 - cap.mass) * (1 - cap.probability) / (1 - cap.mass)
        return below + np.maximum(plain(t) - (1.0 - cap.mass), 0.0) * cap.probability / cap.mass

    along = v @ u
    assert stats.kstest(along, tilted).pvalue > ALPHA
    across = v @ other
    if variant == "gaussian":
        assert stats.kstest(across, "norm").pvalue > ALPHA
    else:
        assert np.linalg.norm(v, axis=1) == pytest.approx(1.0, abs=1e-12)
        cosine = across / np.sqrt(1.0 - along**2)
        law = stats.beta((d - 2) / 2, (d - 2) / 2)
        assert stats.kstest((1.0 + cosine) / 2, law.cdf).pvalue > ALPHA


def test_the_gaussian_variant_is_never_better_and_as_good_in_high_dimension():
    for d in (2, 10, 100, 10_000):
        for epsilon in (0.5, 2.0, 8.0):
            exact, gaussian = (
                make("privunit", epsilon_local=epsilon, dimension=d, radius=1.0, variant=variant)
                for variant in VARIANTS
            )
            ratio = gaussian.worst_mse() / exact.worst_mse()
            assert 1.0 < ratio < 1.0 + (1.0 + epsilon) / d


def test_vectors_without_a_direction_and_in_the_middle_are_reported():
    mechanism = make("privunit", epsilon_local=2.0, dimension=3, radius=2.0)
    values = np.array([[0.0, 0.0, 0.0], [0.0, 1e-200, 0.0], [1e-120, 0.0, 0.0], [0.0, -2.0, 0.0]])
    sent = reports(mechanism, np.repeat(values, 50, axis=0))[:, 0]
    assert np.linalg.norm(sent, axis=1) == pytest.approx(mechanism.scale, rel=1e-12)
    error = mechanism.mse(values)
    assert error[0] == mechanism.worst_mse() and error[3] == pytest.approx(error[0] - 4.0)


def test_one_dimension_is_randomized_response():
    """100,000 reports; false alarm 1e-8 by the binomial tail."""
    for variant in VARIANTS:
        mechanism = make("privunit", epsilon_local=1.0, dimension=1, radius=0.5, variant=variant)
        sent = reports(mechanism, np.full((100_000, 1), -0.5))[:, 0, 0]
        assert set(np.abs(sent)) == {mechanism.scale}
        assert mechanism.scale == pytest.approx(0.5 * 2.16395, rel=1e-5)
        truth = int((sent < 0).sum())
        assert stats.binomtest(truth, len(sent), math.e / (math.e + 1)).pvalue > ALPHA


def test_no_loss_is_claimed_where_the_draws_cannot_express_it():
    for epsilon in (26.0, 2000.0, 1e9):
        mechanism = make("privunit", epsilon_local=epsilon, dimension=3, radius=1.0)
        assert mechanism.event().epsilon == math.inf
        value = np.array([[0.6, 0.0, -0.8]])
        assert mechanism.mse(value)[0] < 1e-4
        assert np.isfinite(mechanism.randomize(value, Stream(0).clients([1])).payload).all()
