"""What is special about the l2 mechanism: its radii, its clipping and the cut to d of D."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raydp_sim.mechanisms import make
from raydp_sim.random import Stream

from .support import exact_moments, inputs, losses, reports


def test_published_radii():
    settings = {"epsilon_local": 1.0, "dimension": 256, "radius": 1.0, "clients": 200, "beta": 0.05}
    seed, tight = (make("l2", rotated_radius=choice, **settings) for choice in ("seed", "tight"))
    assert seed.rotated_bound == pytest.approx(2.325, abs=6e-4)
    assert tight.rotated_bound == pytest.approx(0.337, abs=6e-4)
    three = make("l2", rotated_radius=3.0, **settings)
    assert three.rotated_bound == pytest.approx(3 / 16)


def test_the_tight_radius_clips_nothing_on_the_whole_population():
    """By its own guarantee this fails with probability at most beta = 1e-6 over the rotation."""
    mechanism = make(
        "l2", epsilon_local=4.0, dimension=64, radius=1.0, clients=2000, beta=1e-6, coordinates=64
    )
    x = np.random.default_rng(0).normal(size=(2000, 64))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    sent = mechanism.randomize(x, Stream(0).clients(np.arange(2000)))
    assert sent.clipped == 0


def test_clipped_coordinates_are_counted_and_still_private():
    mechanism = make(
        "l2", epsilon_local=2.0, dimension=8, radius=1.0, rotated_radius=0.5, coordinates=8
    )
    x = inputs(mechanism.domain)
    stream = Stream(0).clients(np.arange(len(x)))
    rotated = mechanism._rotation.rotate(x)
    expected = int((np.abs(rotated) > 0.5 / math.sqrt(8)).sum())
    assert mechanism.randomize(x, stream).clipped == expected > 0
    loss = losses(mechanism.laws(x)).max()
    # Axis vectors reach every corner of a clipped ball, so here the bound is attained.
    assert loss <= mechanism.event().epsilon
    assert loss == pytest.approx(2.0, rel=1e-9)


def test_cutting_the_padding_drops_error():
    settings = {"epsilon_local": 3.0, "dimension": 5, "radius": 1.0, "clients": 100, "levels": 2}
    for coordinates in (3, 8):
        mechanism = make("l2", coordinates=coordinates, **settings)
        wide = make(
            "linf",
            epsilon_local=3.0,
            dimension=8,
            radius=mechanism.rotated_bound,
            coordinates=coordinates,
            levels=2,
        )
        x = inputs(mechanism.domain)
        ratio = mechanism.mse(x) / wide.mse(mechanism._rotation.rotate(x))
        # Exactly d/D where every block holds one coordinate, and close to it otherwise.
        assert ratio == pytest.approx(5 / 8, rel=1e-9 if coordinates == 8 else 0.03)


def test_the_loss_is_that_of_the_linf_mechanism():
    settings = {"epsilon_local": 2.0, "radius": 1.0, "levels": 3, "calibration": "seed"}
    rotated = make("l2", dimension=5, coordinates=3, clients=10, **settings)
    wide = make("linf", dimension=8, coordinates=3, **settings)
    assert rotated.event() == wide.event() and rotated.bits == wide.bits


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 3),
    st.sampled_from(["hadamard", "haar", "kashin"]),
    st.sampled_from(["pad", "balanced"]),
    st.sampled_from(["seed", "centred"]),
)
def test_mean_and_error_are_exact_and_bounded(d, s, m, rotation, blocks, decoder):
    mechanism = make(
        "l2",
        epsilon_local=3.0,
        dimension=d,
        radius=2.0,
        coordinates=min(s, d),
        levels=m,
        rotation=rotation,
        blocks=blocks,
        decoder=decoder,
        clients=50,
    )
    values = inputs(mechanism.domain)
    mean, variance = exact_moments(mechanism, values)
    assert mean == pytest.approx(values, abs=1e-8)
    assert variance == pytest.approx(mechanism.mse(values), rel=1e-9)
    assert mechanism.worst_mse() >= variance.max() * (1 - 1e-12)
    assert losses(mechanism.laws(values)).max() <= mechanism.event().epsilon


@pytest.mark.parametrize("rotation", ["hadamard", "haar"])
def test_large_batches_are_cut_without_a_trace(rotation):
    mechanism = make(
        "l2", epsilon_local=4.0, dimension=128, radius=1.0, rotation=rotation, rotated_radius=2.0
    )
    x = np.random.default_rng(0).normal(size=(20_000, 128)) * 0.05
    whole = reports(mechanism, x)
    for first, last in ((0, 1), (1020, 1031), (16_380, 16_390), (19_000, 20_000)):
        part = reports(mechanism, x[first:last], first=first)
        assert np.array_equal(part, whole[first:last])
