"""Published numbers of the l_inf mechanism and of binary vectors."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raydp_sim.mechanisms import make
from raydp_sim.random import Stream

from .support import exact_moments, inputs, losses, reports

# Worst error of a scalar in [-1/2, 1/2] with v = epsilon: rows epsilon, columns levels 1..4.
SCALAR = {
    0.25: (16.25, 32.0625, 46.1835, 56.9515),
    0.5: (4.25, 8.0625, 11.5576, 14.2408),
    1.0: (1.25, 2.0625, 2.90112, 3.56313),
    2.0: (0.5, 0.5625, 0.736998, 0.893713),
    3.0: (0.361111, 0.284722, 0.336235, 0.399376),
    4.0: (0.3125, 0.1875, 0.195968, 0.226358),
    5.0: (0.29, 0.1425, 0.131045, 0.146275),
}
SCALAR_TIGHT = {
    1.0: (1.17067, 2.02135, 2.87016, 3.53476),
    5.0: (0.256830, 0.111211, 0.105422, 0.122756),
}
LAPLACE = {0.25: 32, 0.5: 8, 1.0: 2, 2.0: 0.5, 3.0: 0.222222, 4.0: 0.125, 5.0: 0.08}


def scalar(epsilon, levels, calibration):
    settings = {"dimension": 1, "radius": 0.5, "coordinates": 1, "calibration": calibration}
    return make("linf", epsilon_local=epsilon, levels=levels, **settings)


@pytest.mark.parametrize("epsilon", SCALAR)
def test_published_errors_of_a_scalar(epsilon):
    errors = [scalar(epsilon, levels, "seed").worst_mse() for levels in range(1, 5)]
    assert errors == pytest.approx(SCALAR[epsilon], rel=5e-6)
    laplace = make("laplace", epsilon_local=epsilon, dimension=1, radius=0.5)
    assert laplace.worst_mse() == pytest.approx(LAPLACE[epsilon], rel=2e-6)


@pytest.mark.parametrize("epsilon", SCALAR_TIGHT)
def test_published_errors_of_a_scalar_with_tight_calibration(epsilon):
    errors = [scalar(epsilon, levels, "tight").worst_mse() for levels in range(1, 5)]
    assert errors == pytest.approx(SCALAR_TIGHT[epsilon], rel=6e-6)


def test_published_bits_of_a_network():
    mechanism = make("linf", epsilon_local=1.0, dimension=13170, radius=1.0, coordinates=1)
    assert mechanism.bits == 15
    assert 32 * 13170 // 15 == 28096


@pytest.mark.parametrize(
    ("dimension", "coordinates", "levels", "bits"),
    [(1, 1, 1, 1), (8, 8, 1, 8), (8, 2, 3, 18), (10, 4, 2, 24), (1024, 4, 1, 36)],
)
def test_bits_are_those_of_the_formula(dimension, coordinates, levels, bits):
    shape = {"dimension": dimension, "coordinates": coordinates, "levels": levels}
    assert make("linf", epsilon_local=1.0, radius=1.0, **shape).bits == bits


def test_padding_breaks_the_printed_bound():
    mechanism = make("rbin", epsilon_local=2.0, dimension=10, coordinates=4, calibration="seed")
    _, exact = exact_moments(mechanism, np.ones((1, 10)))
    printed = 10**2 * (1 / 4 - 1 / 10 + 4 / 2**2)
    assert exact[0] == pytest.approx(140.0) and mechanism.worst_mse() == pytest.approx(140.0)
    assert printed == pytest.approx(115.0)


@pytest.mark.parametrize(("dimension", "coordinates", "filled"), [(5, 4, 3), (4, 3, 2), (8, 4, 4)])
def test_empty_blocks_cost_no_privacy(dimension, coordinates, filled):
    shape = {"dimension": dimension, "coordinates": coordinates, "calibration": "seed"}
    mechanism = make("rbin", epsilon_local=2.0, **shape)
    expected = filled * 2 * np.arcsinh(2.0 / (2 * coordinates))
    assert mechanism.event().epsilon == pytest.approx(expected, rel=1e-11)
    assert losses(mechanism.laws(inputs(mechanism.domain))).max() == pytest.approx(expected)
    # Tight calibration spends what they leave on the others.
    tight = make("rbin", epsilon_local=2.0, **{**shape, "calibration": "tight"})
    assert losses(tight.laws(inputs(tight.domain))).max() == pytest.approx(2.0, rel=1e-9)


def test_balanced_blocks_beat_padded_ones_that_are_empty():
    shape = {"epsilon_local": 4.0, "dimension": 300, "coordinates": 200, "calibration": "seed"}
    padded, balanced = (make("rbin", blocks=blocks, **shape) for blocks in ("pad", "balanced"))
    assert balanced.worst_mse() < padded.worst_mse()


def test_centring_quarters_the_sampling_error_at_its_worst():
    shape = {"epsilon_local": 2.0, "dimension": 6, "coordinates": 2, "radius": 1.0}
    seed, centred = (make("linf", decoder=decoder, **shape) for decoder in ("seed", "centred"))
    noise = 4 * 6 * 3 * float(seed.wire.noise[0])
    assert seed.worst_mse() == pytest.approx(noise + 4 * 6 * 2)
    assert centred.worst_mse() == pytest.approx(noise + 4 * 6 * (2 / 4 + 1 / 4))
    # The messages are the same; only the server reads them otherwise.
    values = inputs(seed.domain)
    assert np.array_equal(reports(seed, values), reports(centred, values))


def test_huge_epsilon_is_exact_quantisation():
    mechanism = make("linf", epsilon_local=2000.0, dimension=2, radius=1.0, levels=3, coordinates=2)
    values = np.array([[1.0, -1.0], [0.0, 0.5]])
    mean, variance = exact_moments(mechanism, values)
    assert mean == pytest.approx(values) and variance == pytest.approx([0.0, 0.0], abs=1e-12)
    assert mechanism.worst_mse() == pytest.approx(4 * 2 * 4.0**-3)


def test_tiny_epsilon_has_finite_error():
    mechanism = make("linf", epsilon_local=1e-9, dimension=1, radius=0.5)
    # Flips are multiples of 2^-53, which at so small a loss shows in the sixth digit.
    assert mechanism.worst_mse() == pytest.approx(1e18, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 7),
    st.integers(1, 7),
    st.integers(1, 3),
    st.floats(0.1, 8.0),
    st.sampled_from(["tight", "seed"]),
    st.sampled_from(["seed", "equal", "rdp"]),
    st.sampled_from(["pad", "balanced"]),
    st.sampled_from(["seed", "centred"]),
)
def test_loss_mean_and_error_are_exact(d, s, m, epsilon, calibration, allocation, blocks, decoder):
    mechanism = make(
        "linf",
        epsilon_local=epsilon,
        dimension=d,
        radius=2.0,
        coordinates=min(s, d),
        levels=m,
        calibration=calibration,
        allocation=allocation,
        blocks=blocks,
        decoder=decoder,
    )
    values = inputs(mechanism.domain)
    mean, variance = exact_moments(mechanism, values)
    assert mean == pytest.approx(values, abs=1e-8)
    assert variance == pytest.approx(mechanism.mse(values), rel=1e-9)
    assert mechanism.worst_mse() >= variance.max() * (1 - 1e-12)
    loss = losses(mechanism.laws(values)).max()
    stated = mechanism.event().epsilon
    assert loss <= stated <= epsilon
    assert loss == pytest.approx(stated, rel=1e-9)


def test_values_outside_are_refused_or_clipped():
    settings = {"epsilon_local": 1.0, "dimension": 2, "radius": 1.0}
    stream = Stream(0).clients(np.array([41, 42]))
    far, edge = np.array([[0.0, 0.0], [0.5, 1.5]]), np.array([[0.0, 0.0], [0.5, 1.0]])
    with pytest.raises(ValueError, match=r"client 42 .* index 1 holds 1\.5"):
        make("linf", **settings).randomize(far, stream)
    clipping = make("linf", on_out_of_range="clip", **settings)
    assert np.array_equal(
        clipping.randomize(far, stream).payload, clipping.randomize(edge, stream).payload
    )


def test_the_printed_bound_behind_shufflers_lacks_the_constant_of_its_budget():
    """Girgis 2023, (3.34): with v^2 = s n eps^2 / (c log(1/delta)) the mean's error is above the
    bound as printed, without c, and within it with c."""
    n, d, r, epsilon, delta, c = 1000, 4, 1.0, 0.5, 1e-5, 432
    v = math.sqrt(d * n * epsilon**2 / (c * math.log(1 / delta)))
    same = {"dimension": d, "radius": r, "coordinates": d, "calibration": "seed"}
    exact = make("linf", epsilon_local=v, **same).worst_mse() / n
    private = 5 * d**2 * math.log(1 / delta) / (n**2 * epsilon**2)
    rounding = d / (n * 4)
    assert exact > 10 * 4 * r**2 * (private + rounding)
    assert exact <= 4 * r**2 * (c * private + rounding)


def test_levels_that_are_added_without_their_weights_estimate_something_else():
    """One line of the same text leaves 2^-k out."""
    mechanism = make("linf", epsilon_local=60.0, dimension=1, radius=1.0, coordinates=1, levels=3)
    values = np.array([[-0.3]])
    bits = mechanism._bits(values)
    weighted = sum(w * bit[0, 0] for w, bit in zip((0.5, 0.25, 0.25), bits, strict=True))
    assert 2.0 * weighted - 1.0 == pytest.approx(-0.3)
    assert 2.0 * sum(bit[0, 0] for bit in bits) - 1.0 != pytest.approx(-0.3, abs=0.1)
