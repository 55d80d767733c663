"""Duchi's mechanisms: corners of the cube by enumeration, directions by quadrature."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.parts.coin import Coin
from raydp_sim.mechanisms.parts.half_space import half_step

from .support import ALPHA, inputs, reports


def corners(dimension: int) -> np.ndarray:
    return np.array(list(itertools.product([-1.0, 1.0], repeat=dimension)))


def cube_law(mechanism, values: np.ndarray, tie: float = 0.5) -> np.ndarray:
    """P(corner | value), from the definition: one of two sides of a rounded value, with the weight
    `tie` in each for the corners between them."""
    every = corners(values.shape[1])
    product = every @ every.T
    right, wrong = (np.where(side > 0, 1.0, tie * (side == 0)) for side in (product, -product))
    p = math.exp(mechanism.epsilon_local) / (math.exp(mechanism.epsilon_local) + 1)
    given = p * right / right.sum(axis=0) + (1 - p) * wrong / wrong.sum(axis=0)
    rounding = np.prod(0.5 + every[None] * values[:, None] / (2 * mechanism.radius), axis=2)
    return rounding @ given.T


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 6])
def test_the_cube_by_enumeration(dimension):
    mechanism = make("duchi-linf", epsilon_local=1.3, dimension=dimension, radius=2.0)
    values = np.concatenate([inputs(mechanism.domain), 2.0 * corners(dimension)])
    law, sent = cube_law(mechanism, values), mechanism.size * corners(dimension)
    assert law.sum(axis=1) == pytest.approx(1.0)
    mean = law @ sent
    assert mean == pytest.approx(values, abs=1e-10)
    error = law @ (sent**2).sum(axis=1) - (mean**2).sum(axis=1)
    assert error == pytest.approx(mechanism.mse(values), rel=1e-9)
    loss = (np.log(law)[:, None] - np.log(law)[None]).max()
    assert loss == pytest.approx(1.3, abs=1e-9)
    assert mechanism.event().epsilon == pytest.approx(1.3, abs=1e-9)
    assert mechanism.event().epsilon <= 1.3


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5])
def test_the_value_decides_only_between_opposite_corners(dimension):
    """What lets it be accounted for as R^Bin: a pair has the same probability for all values, and
    with the same draws every value gives the same pair."""
    mechanism = make("duchi-linf", epsilon_local=1.3, dimension=dimension, radius=2.0)
    law = cube_law(mechanism, inputs(mechanism.domain))
    assert law + law[:, ::-1] == pytest.approx(2.0 ** (1 - dimension))
    assert mechanism.randomizer() == "rbin"
    values = np.stack([np.zeros(dimension), np.full(dimension, 2.0), np.full(dimension, -2.0)])
    first, *others = (reports(mechanism, np.tile(value, (200, 1))) for value in values)
    every = np.packbits(np.ones(dimension, np.uint8))
    for other in others:
        same, opposite = (first == other).all(axis=2), (first ^ every == other).all(axis=2)
        assert (same | opposite).all() and same.any() and opposite.any()


@pytest.mark.parametrize("dimension", [2, 4, 6])
def test_published_ties_break_the_guarantee_in_even_dimension(dimension):
    """Duchi et al. 2018 put <z, w> = 0 into both sides: unbiased with their larger corner, but the
    loss is log(1 + e^epsilon)."""
    d = dimension
    mechanism = make("duchi-linf", epsilon_local=1.0, dimension=d, radius=1.0)
    law = cube_law(mechanism, corners(d), tie=1.0)
    factor = (2 ** (d - 1) + math.comb(d, d // 2) / 2) / math.comb(d - 1, d // 2)
    published = factor * (math.e + 1) / (math.e - 1)
    assert law @ (published * corners(d)) == pytest.approx(corners(d))
    loss = (np.log(law)[:, None] - np.log(law)[None]).max()
    assert loss == pytest.approx(math.log(1 + math.e))
    assert mechanism.size < published


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5])
def test_reports_on_the_cube_follow_the_law(dimension):
    """Chi-square over all corners; chance of a false alarm 1e-8 for each of three values."""
    clients = 20_000
    mechanism = make("duchi-linf", epsilon_local=1.0, dimension=dimension, radius=1.0)
    places = 1 << np.arange(dimension)[::-1]
    for number, value in enumerate(inputs(mechanism.domain)[[0, 3, -1]]):
        payload = reports(mechanism, np.tile(value, (clients, 1)), first=clients * number)
        bits = np.unpackbits(payload[:, 0], axis=1, count=dimension)
        seen = np.bincount(bits @ places, minlength=2**dimension)
        expected = clients * cube_law(mechanism, value[None])[0]
        assert stats.chisquare(seen, expected).pvalue > ALPHA


@pytest.mark.parametrize("dimension", [1, 2, 3, 10, 11, 57, 300, 1001])
def test_the_size_of_a_corner_is_that_of_the_binomials(dimension):
    d = dimension
    exact = Fraction(2 ** (d - 1), math.comb(d - 1, d // 2))
    mechanism = make("duchi-linf", epsilon_local=1.0, dimension=d, radius=1.0)
    scale = (math.e + 1) / (math.e - 1)
    assert mechanism.size == pytest.approx(float(exact) * scale, rel=1e-11)


def test_published_size_of_a_corner():
    """10.9572 at d = 10 counts ties to both sides, which adds K."""
    mechanism = make("duchi-linf", epsilon_local=1.0, dimension=10, radius=1.0)
    scale = (math.e + 1) / (math.e - 1)
    assert mechanism.size + scale == pytest.approx(10.9572, rel=5e-6) and mechanism.bits == 10


def test_a_wide_cube_is_unbiased_and_errs_as_stated():
    """Chance of a false alarm, by the normal limit: 1e-8 for the mean along the value."""
    d, clients = 400, 4000
    mechanism = make("duchi-linf", epsilon_local=2.0, dimension=d, radius=1.0)
    value = np.random.default_rng(0).uniform(-1, 1, d)
    payload = reports(mechanism, np.tile(value, (clients, 1)))
    signs = 2.0 * np.unpackbits(payload[:, 0], axis=1, count=d) - 1.0
    along = mechanism.size * (signs * value).sum(axis=1) / (value**2).sum()
    z = stats.norm.isf(ALPHA / 2)
    assert abs(along.mean() - 1.0) < z * along.std() / math.sqrt(clients)
    assert mechanism.worst_mse() == pytest.approx(d * mechanism.size**2)


@pytest.mark.parametrize("x", [0.5, 1.0, 2.5, 50.0, 99.9, 100.0, 500.5])
def test_the_ratio_of_gamma_functions(x):
    exact = math.sqrt(math.pi) * math.exp(math.lgamma(x + 0.5) - math.lgamma(x))
    assert half_step(x) == pytest.approx(exact, rel=1e-11)


def test_the_series_continues_the_gamma_functions():
    below, above = half_step(math.nextafter(100.0, 0.0)), half_step(100.0)
    assert above == pytest.approx(below, rel=4e-15)
    # (x + 1/2) Gamma(x + 1/2) / (x Gamma(x)) is the ratio one step further.
    for x in (100.0, 1234.5, 1e6):
        assert half_step(x + 1.0) == pytest.approx(half_step(x) * (x + 0.5) / x, rel=1e-14)


LENGTHS = {1: 2.16395, 2: 3.39913, 3: 4.32791, 10: 8.36505, 100: 27.0534, 1000: 85.7431}


@pytest.mark.parametrize("dimension", LENGTHS)
def test_published_lengths_of_a_direction(dimension):
    mechanism = make("priv", epsilon_local=1.0, dimension=dimension, radius=1.0)
    assert mechanism.length == pytest.approx(LENGTHS[dimension], rel=2e-6)
    scale = (math.e + 1) / (math.e - 1)
    assert 1.0 - 1e-12 <= mechanism.length**2 / (dimension * scale**2) <= math.pi / 2
    assert mechanism.worst_mse() <= dimension * (0.75 * math.sqrt(math.pi) * scale) ** 2


@pytest.mark.parametrize("dimension", [2, 3, 10, 60])
def test_the_printed_length_of_priv_lacks_the_factor_d(dimension):
    """Girgis et al. 2021, Algorithm 4: with their length the mean is x / d, with ours it is x."""
    d = dimension
    mechanism = make("priv", epsilon_local=1.0, dimension=d, radius=1.0)
    # The first coordinate of a uniform direction is cos(t) with density sin(t)^(d - 2).
    weight = integrate.quad(lambda t: math.sin(t) ** (d - 2), 0, math.pi)[0]
    size = integrate.quad(lambda t: abs(math.cos(t)) * math.sin(t) ** (d - 2), 0, math.pi)[0]
    scale = (math.e + 1) / (math.e - 1)
    towards = size / weight / scale
    assert mechanism.length * towards == pytest.approx(1.0, rel=1e-8)
    log_ratio = math.lgamma((d - 1) / 2 + 1) - math.lgamma(d / 2 + 1)
    printed = math.sqrt(math.pi) / 2 * math.exp(log_ratio) * scale
    assert printed * towards == pytest.approx(1 / d, rel=1e-8)


@pytest.mark.parametrize("dimension", [1, 2, 3, 64])
def test_directions_are_uniform_on_each_side(dimension):
    """Side: binomial; distance from the border: Kolmogorov-Smirnov. Chance of a false alarm 1e-8
    for each value. In one dimension there are only two points."""
    d, clients = dimension, 20_000
    mechanism = make("priv", epsilon_local=1.0, dimension=d, radius=2.0)
    flip = 1 / (math.e + 1)
    for number, length in enumerate([2.0, 0.8, 0.0]):
        axis = np.random.default_rng(number).normal(size=d)
        axis /= np.sqrt((axis**2).sum())
        payload = reports(mechanism, np.tile(length * axis, (clients, 1)), first=clients * number)
        unit = payload[:, 0] / mechanism.length
        assert (unit**2).sum(axis=1) == pytest.approx(1.0)
        along = (unit * axis).sum(axis=1)
        chance = flip + (1 - 2 * flip) * (0.5 + length / 4.0)
        right = int((along > 0).sum())
        assert stats.binomtest(right, clients, chance).pvalue > ALPHA
        if d > 1:
            law = stats.beta(0.5, (d - 1) / 2)
            assert stats.kstest(along**2, law.cdf).pvalue > ALPHA


@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 1.0, 7.3, 20.0, 24.9])
def test_the_coin_is_tossed_exactly_as_stated(epsilon):
    coin = Coin(epsilon)
    steps = coin.flip * 2.0**53
    # A uniform of 53 bits is below a multiple of its step with exactly that probability.
    assert steps == int(steps) and coin.chance(np.array([0.0, 1.0])).tolist() == [
        coin.flip,
        1.0 - coin.flip,
    ]
    flip = Fraction(coin.flip)
    assert Fraction(coin.gap) == 1 - 2 * flip
    ratio = (1 - flip) / flip - 1
    exact = math.log1p(float(ratio))
    assert exact <= coin.event().epsilon * (1 + 1e-15) and coin.event().epsilon <= epsilon
    assert exact == pytest.approx(epsilon, rel=1e-5)


@pytest.mark.parametrize("kind", ["priv", "r2", "duchi-linf", "r1", "rinf"])
def test_beyond_what_53_bits_express_no_loss_is_claimed(kind):
    mechanism = make(kind, epsilon_local=40.0, dimension=3, radius=1.0)
    assert math.isinf(mechanism.event().epsilon)
