"""Kashin's representation: exact, small, and what it gains the l2 mechanism."""

import math

import numpy as np
import pytest

from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.parts.kashin import LEVEL, Kashin, frame_size
from raydp_sim.random import Stream

from .support import exact_moments, inputs, losses

SIZES = (1, 2, 3, 5, 8, 64, 100, 256)


def units(d, count=100, seed=0):
    x = np.random.default_rng(seed).normal(size=(count, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def hard(frame, seed=0):
    """Sums of a few of the frame's own vectors: the largest coefficients that were found."""
    random = np.random.default_rng(seed)
    rows = []
    for few in (1, 2, 3, 4, 8):
        for _ in range(20):
            sparse = np.zeros(frame.full)
            chosen = random.choice(frame.full, min(few, frame.full), replace=False)
            sparse[chosen] = random.choice([-1.0, 1.0], len(chosen))
            rows.append(frame.back(sparse[None])[0])
    x = np.array(rows)
    length = np.linalg.norm(x, axis=1)
    return x[length > 1e-9] / length[length > 1e-9, None]


@pytest.mark.parametrize("d", SIZES)
def test_the_frame_is_tight_and_its_vectors_equally_long(d):
    frame = Kashin(d, frame_size(d), 3)
    matrix = frame.back(np.eye(frame.full)).T
    assert matrix @ matrix.T == pytest.approx(np.eye(d), abs=1e-12)
    assert (matrix**2).sum(axis=0) == pytest.approx(np.full(frame.full, d / frame.full))
    assert 2 * d <= frame.full < 4 * d


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("seed", [0, 1])
def test_coefficients_give_the_vector_back_and_stay_below_the_level(d, seed):
    frame = Kashin(d, frame_size(d), seed)
    x = np.concatenate(
        [units(d), hard(frame), np.eye(d)[:20], 0.01 * units(d, 5), np.zeros((1, d))]
    )
    a = frame.rotate(x)
    assert frame.back(a) == pytest.approx(x, abs=1e-12)
    allowed = LEVEL * np.linalg.norm(x, axis=1) / math.sqrt(frame.full)
    assert (np.abs(a).max(axis=1) <= allowed * (1 + 1e-12)).all()


def test_vectors_in_general_position_reach_about_two_and_plain_coefficients_more():
    frame = Kashin(64, 128, 0)
    x = units(64, 500)
    largest = np.abs(frame.rotate(x)).max(axis=1) * math.sqrt(128)
    assert largest.max() < 2.2 and largest.mean() < 1.9
    # The least-squares coefficients F^T x, which a rotation would have, are not small.
    matrix = frame.back(np.eye(128)).T
    assert (np.abs(x @ matrix).max(axis=1) * math.sqrt(128)).max() > 3.5


def test_entries_are_picked_from_the_whole():
    frame = Kashin(20, 64, 0)
    x, rows = units(20, 3000), np.random.default_rng(1).integers(0, 64, (3000, 5))
    whole = frame.rotate(x)
    assert np.array_equal(frame.pick(x, rows, 5), np.take_along_axis(whole, rows, axis=1))
    assert np.array_equal(frame.rotate(x[1021:1030]), whole[1021:1030])


def test_the_l2_mechanism_clips_nothing_and_needs_no_number_of_clients():
    mechanism = make(
        "l2", epsilon_local=4.0, dimension=64, radius=2.0, rotation="kashin", coordinates=128
    )
    assert mechanism.rotated_bound == pytest.approx(3.0 * 2.0 / math.sqrt(128))
    assert mechanism.randomize(2.0 * units(64), Stream(0).clients(np.arange(100))).clipped == 0


@pytest.mark.parametrize("coordinates", [3, 16])
def test_the_error_is_exact_and_less_than_with_a_rotation(coordinates):
    settings = {"epsilon_local": 3.0, "dimension": 6, "radius": 1.0, "clients": 1000}
    kashin = make("l2", rotation="kashin", coordinates=coordinates, **settings)
    values = inputs(kashin.domain)
    mean, variance = exact_moments(kashin, values)
    assert mean == pytest.approx(values, abs=1e-9)
    assert variance == pytest.approx(kashin.mse(values), rel=1e-9)
    assert variance.max() <= kashin.worst_mse() * (1 + 1e-12)
    turned = make("l2", coordinates=min(coordinates, 8), **settings)
    assert kashin.mse(values).max() < turned.mse(values).max()


def test_the_gain_is_that_of_the_squared_radii():
    settings = {"epsilon_local": 1.0, "dimension": 64, "radius": 1.0, "clients": 10_000}
    kashin, turned = make("l2", rotation="kashin", **settings), make("l2", **settings)
    gain = 2.0 * math.log(2 * 64 * 10_000 / 0.01) / LEVEL**2
    # But for one part in D, which the rotation, here without padding, does not sample.
    assert turned.worst_mse() / kashin.worst_mse() == pytest.approx(gain, rel=1 / 64)


def test_coefficients_beyond_a_small_level_are_clipped_counted_and_private():
    mechanism = make(
        "l2",
        epsilon_local=2.0,
        dimension=8,
        radius=1.0,
        rotation="kashin",
        rotated_radius=0.7,
        coordinates=16,
    )
    x = inputs(mechanism.domain)
    expected = int((np.abs(mechanism._rotation.rotate(x)) > 0.7 / 4).sum())
    assert mechanism.randomize(x, Stream(0).clients(np.arange(len(x)))).clipped == expected > 0
    assert losses(mechanism.laws(x)).max() <= mechanism.event().epsilon


def test_the_published_radius_of_rotations_is_refused():
    with pytest.raises(ValueError, match="rotated_radius is 'seed'"):
        make(
            "l2",
            epsilon_local=1.0,
            dimension=4,
            radius=1.0,
            rotation="kashin",
            rotated_radius="seed",
        )


# Found by climbing from sparse sums of the frame's vectors; hundredths of a unit vector.
WORST = (
    "26 -27 -25 -25 -2 4 -3 4 -27 -29 -27 -2 1 1 0 25 25 -4 2 26 23 -26 -1 -2 2 2 -1 1 -1 24 -22 27"
)


def test_some_vectors_exceed_the_level_and_the_mechanisms_say_so():
    """So no estimate by these coefficients is called unbiased for every vector."""
    x = np.array([[float(each) for each in WORST.split()]])
    x /= np.sqrt((x**2).sum())
    assert np.abs(Kashin(32, 64, 34).rotate(x)).max() > LEVEL / math.sqrt(64)
    settings = {"epsilon_local": 1.0, "dimension": 32, "radius": 1.0, "clients": 10}
    for kind, more in (("l2", {"rotation": "kashin"}), ("sqkr", {})):
        assert "beyond the level" in make(kind, **settings, **more).bias
