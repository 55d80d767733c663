"""Laplace and Gaussian noise: its law, its privacy, and the fixed-point sums."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.wires.fixed import add, quantise, resolution, summed, total
from raydp_sim.mechanisms.wires.packing import index_bits, pack_bits, unpack_bits
from raydp_sim.privacy.curves.gaussian import gaussian_delta, gaussian_sigma

from .support import ALPHA, SERVER, folded, inputs, reports

GUARANTEES = [(1.0, 1e-5), (0.1, 1e-3), (4.0, 1e-6), (0.5, 0.2), (10.0, 1e-9), (1e-3, 1e-2)]


def hockey_stick(epsilon: float, sigma: float, sensitivity: float) -> float:
    """Integral of the positive part of p - e^epsilon q, independently of the closed form."""
    # p/q falls in x, so the positive part ends where the ratio is e^epsilon.
    end = sensitivity / 2 - epsilon * sigma**2 / sensitivity

    def excess(x: float) -> float:
        p = stats.norm.pdf(x, 0.0, sigma)
        return float(p - math.exp(epsilon) * stats.norm.pdf(x, sensitivity, sigma))

    points = np.linspace(min(end, 0.0) - 12 * sigma, end, 40)
    return sum(
        integrate.quad(excess, low, high, epsabs=1e-16, epsrel=1e-12)[0]
        for low, high in itertools.pairwise(points)
    )


def test_the_laplace_ratio_is_bounded_and_attained():
    mechanism = make("laplace", epsilon_local=1.5, dimension=3, radius=2.0)
    values = inputs(mechanism.domain)
    outputs = np.random.default_rng(0).uniform(-9, 9, (400, 3))
    outputs = np.concatenate([outputs, 50 * np.eye(3), -50 * np.eye(3)])
    distance = np.abs(outputs[None] - values[:, None]).sum(axis=2) / mechanism.scale
    ratio = (distance[:, None] - distance[None]).max()
    assert ratio <= 1.5 + 1e-9
    assert ratio == pytest.approx(1.5)
    assert 2 * mechanism.radius / mechanism.scale == pytest.approx(mechanism.event().epsilon)


@pytest.mark.parametrize(("epsilon", "delta"), GUARANTEES)
def test_gaussian_noise_is_the_least_for_its_guarantee(epsilon, delta):
    sigma = gaussian_sigma(epsilon, delta, 2.0)
    assert gaussian_delta(epsilon, sigma, 2.0) == pytest.approx(delta, abs=1e-9, rel=1e-6)
    assert gaussian_delta(epsilon, sigma, 2.0) <= delta
    assert gaussian_delta(epsilon, sigma * (1 - 1e-6), 2.0) > delta
    assert hockey_stick(epsilon, sigma, 2.0) == pytest.approx(delta, abs=1e-9, rel=1e-6)


@given(st.floats(1e-4, 20.0), st.floats(0.05, 50.0))
def test_delta_falls_with_noise_and_with_epsilon(epsilon, sigma):
    here = gaussian_delta(epsilon, sigma)
    assert 0.0 <= here <= 1.0
    assert gaussian_delta(epsilon, sigma * 1.1) <= here + 1e-15
    assert gaussian_delta(epsilon * 1.1, sigma) <= here + 1e-15


def test_the_classical_calibration_needs_more_noise():
    classical = math.sqrt(2 * math.log(1.25 / 1e-5)) / 1.0
    assert gaussian_sigma(1.0, 1e-5) < 0.8 * classical


@pytest.mark.parametrize(
    "bad", [(0.0, 0.1, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, 1.0), (1.0, 0.1, 0.0)]
)
def test_bad_guarantees_are_refused(bad):
    with pytest.raises(ValueError, match="must be"):
        gaussian_sigma(*bad)


def test_the_local_gaussian_keeps_its_guarantee():
    mechanism = make("gaussian", epsilon_local=1.0, delta_local=1e-5, dimension=4, radius=0.7)
    assert gaussian_delta(1.0, mechanism.sigma, 1.4) == pytest.approx(1e-5, abs=1e-9)
    assert mechanism.event().delta == 1e-5


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_noise_at_the_client_follows_its_law(kind):
    """Kolmogorov-Smirnov on 60,000 draws, with 1e-8 as the chance of a false alarm."""
    extra = {"delta_local": 1e-5} if kind == "gaussian" else {}
    mechanism = make(kind, epsilon_local=1.0, dimension=3, radius=1.0, **extra)
    values = np.tile([[0.2, -0.1, 0.3]], (20_000, 1))
    noise = (reports(mechanism, values)[:, 0] - values).ravel()
    scale = mechanism.scale if kind == "laplace" else mechanism.sigma
    law = stats.laplace if kind == "laplace" else stats.norm
    assert stats.kstest(noise / scale, law.cdf).pvalue > ALPHA
    between = np.corrcoef(noise.reshape(-1, 3).T)[np.triu_indices(3, 1)]
    assert (np.abs(between) < 6 / math.sqrt(20_000)).all()


@pytest.mark.parametrize("kind", ["central-laplace", "central-gaussian"])
def test_noise_at_the_aggregator_follows_its_law(kind):
    """Kolmogorov-Smirnov on 20,000 releases, and a 6-sigma interval for the variance: 1e-8 each."""
    extra = {"delta": 1e-4} if kind == "central-gaussian" else {}
    mechanism = make(kind, epsilon=0.5, dimension=2, radius=1.0, **extra)
    values = inputs(mechanism.domain)
    counts = folded(mechanism, reports(mechanism, values))
    n = len(values)
    noise = np.array([mechanism.decode(counts, SERVER.at(k)) for k in range(10_000)])
    noise = (noise - values.mean(axis=0)).ravel()
    if kind == "central-laplace":
        assert mechanism.scale(n) == pytest.approx(2.0 / (n * 0.5), rel=1e-9)
        assert stats.kstest(noise / mechanism.scale(n), stats.laplace.cdf).pvalue > ALPHA
    else:
        assert gaussian_delta(0.5, mechanism.sigma(n), 2.0 / n) == pytest.approx(1e-4, rel=1e-6)
        assert stats.kstest(noise / mechanism.sigma(n), stats.norm.cdf).pvalue > ALPHA
    error = mechanism.mse(values).sum() / n**2 / 2
    spread = (noise**2).std() / math.sqrt(len(noise))
    assert abs((noise**2).mean() - error) < 6 * spread


def test_central_noise_shrinks_with_the_square_of_the_clients():
    mechanism = make("central-laplace", epsilon=1.0, dimension=1, radius=0.5)
    one, ten = (mechanism.mse(np.zeros((n, 1))).sum() / n**2 for n in (1, 10))
    assert one == pytest.approx(2.0, rel=1e-9) and ten == pytest.approx(0.02, rel=1e-9)
    assert mechanism.worst_mse() == pytest.approx(one)
    known = make("central-laplace", epsilon=1.0, dimension=1, radius=0.5, clients=10)
    assert known.worst_mse() == pytest.approx(0.2, rel=1e-9)


def test_the_central_mean_is_exact_but_for_the_noise():
    mechanism = make("central-gaussian", epsilon=1e6, delta=0.5, dimension=3, radius=1.0)
    values = inputs(mechanism.domain)
    estimate = mechanism.decode(folded(mechanism, reports(mechanism, values)), SERVER)
    assert estimate == pytest.approx(values.mean(axis=0), abs=1e-2)


@given(st.floats(1e-6, 1e6))
def test_ten_million_of_the_largest_terms_fit(largest):
    step = resolution(largest)
    assert math.log2(step).is_integer()
    steps = int(quantise(np.array([largest]), step)[0])
    assert steps * 10**7 < 2**63
    assert steps * step == pytest.approx(largest, rel=1e-11)


def test_overflow_is_refused_by_name():
    with pytest.raises(OverflowError, match="largest that can be summed"):
        quantise(np.array([1e30]), 1e-9)
    with pytest.raises(OverflowError, match="largest that can be summed"):
        quantise(np.array([np.nan]), 1.0)
    with pytest.raises(OverflowError, match="64 bits"):
        total(np.full((4, 1), 2**61))
    with pytest.raises(OverflowError, match="64 bits"):
        add(np.array([2**62]), np.array([2**62]))
    assert add(np.array([2**62]), np.array([-(2**62)])).tolist() == [0]


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_packing_is_undone_and_dense(width, count, seed):
    symbols = np.random.default_rng(seed).integers(0, 2**width, (6, count), dtype=np.uint64)
    wire = pack_bits(symbols, width)
    assert wire.shape == (6, math.ceil(width * count / 8))
    assert np.array_equal(unpack_bits(wire, width, count), symbols)
    text = "".join(format(int(symbol), f"0{width}b") for symbol in symbols[0])
    assert "".join(format(byte, "08b") for byte in wire[0]).startswith(text)


@pytest.mark.parametrize(
    ("alphabet", "bits"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (13170, 14)]
)
def test_index_bits(alphabet, bits):
    assert index_bits(alphabet) == bits


@pytest.mark.parametrize("dimension", [1, 10**4, 10**6, 10**8])
def test_the_noise_of_a_release_is_stated_over_all_that_sums_are_apart(dimension):
    """Every coordinate is rounded to the accumulator's step, and there may be many."""
    settings = {"epsilon": 1.0, "delta": 1e-5, "radius": 0.5, "dimension": dimension}
    mechanism = make("central-gaussian", **settings)
    apart = 2 * 0.5 + math.sqrt(dimension) * mechanism.wire.step
    assert mechanism.release().noise_multiplier <= mechanism.sigma(1) / apart


@pytest.mark.parametrize("width", [1, 7, 100_000])
def test_sums_in_pieces_are_the_sum_of_what_was_rounded(width):
    rng = np.random.default_rng(5)
    # The last are so large that doubles would not add them up exactly.
    for size in (1.0, 1e3, 1e5):
        values = rng.normal(0.0, size, (23, width))
        step = resolution(1.0)
        assert np.array_equal(summed(values, step), total(quantise(values, step)))
    assert summed(np.empty((0, width)), 1.0).tolist() == [0] * width
    for wrong in (np.nan, np.inf, 1e60):
        values[3, 0] = wrong
        with pytest.raises(OverflowError):
            summed(values, step)
