"""The fast transforms against the matrix, and row by row the same whatever the batch."""

import numpy as np
import pytest
from scipy.linalg import hadamard

from raydp_sim.mechanisms.parts.hadamard import cheapest_split, factored, fwht, sampled
from raydp_sim.mechanisms.parts.rotation import Haar, Hadamard, make_rotation


@pytest.mark.parametrize("full", [1, 2, 8, 64, 1024])
def test_whole_transform_is_the_matrix_product(full):
    x = np.random.default_rng(full).normal(size=(150, full))
    assert fwht(x) == pytest.approx(x @ hadamard(full), abs=1e-10)


@pytest.mark.parametrize(
    ("full", "split", "messages"),
    [(1, 1, 1), (8, 1, 3), (8, 2, 4), (8, 8, 8), (64, 4, 12), (1024, 4, 4), (2048, 64, 64)],
)
@pytest.mark.parametrize("missing", [0, 3])
def test_sampled_entries_are_those_of_the_whole(full, split, messages, missing):
    random = np.random.default_rng(full + split)
    x = random.normal(size=(150, max(1, full - missing)))
    signs = random.choice([-1.0, 1.0], full) / np.sqrt(full)
    part = full // split
    rows = random.integers(0, part, (150, messages)) + np.arange(messages) % split * part
    wide = np.zeros((150, full))
    wide[:, : x.shape[1]] = x
    whole = (wide * signs) @ hadamard(full)
    expected = np.take_along_axis(whole, rows, axis=1)
    assert sampled(x, signs, rows, split) == pytest.approx(expected, abs=1e-12)
    assert factored(x, signs, rows) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("rotation", "coordinates", "messages"),
    [
        (Hadamard(256, 1), 4, 8),
        (Hadamard(256, 1), 3, 3),
        (Hadamard(256, 1), 100, 100),
        (Hadamard(1 << 15, 1), 2, 2),
        (Hadamard(1 << 15, 1), 16, 16),
        (Haar(37, 1), 4, 4),
        (Haar(1, 1), 1, 1),
    ],
)
def test_a_row_does_not_depend_on_its_neighbours(rotation, coordinates, messages):
    n = 40 if rotation.full > 1000 else 1100
    random = np.random.default_rng(0)
    x = random.normal(size=(n, rotation.full))
    part = -(-rotation.full // coordinates)
    rows = random.integers(0, part, (n, messages)) + np.arange(messages) % coordinates * part
    rows = np.minimum(rows, rotation.full - 1)
    whole = rotation.pick(x, rows, coordinates)
    expected = np.take_along_axis(rotation.rotate(x), rows, axis=1)
    assert whole == pytest.approx(expected, abs=1e-12)
    for size in (1, 3, 7, 513):
        for first in (0, n - size):
            if first >= 0:
                part_of = slice(first, first + size)
                alone = rotation.pick(x[part_of], rows[part_of], coordinates)
                assert np.array_equal(alone, whole[part_of])


@pytest.mark.parametrize("kind", ["hadamard", "haar"])
def test_rotations_are_orthogonal_public_and_undone(kind):
    rotation = make_rotation(kind, 13, seed=4)
    x = np.random.default_rng(0).normal(size=(5, 13))
    rotated = rotation.rotate(x)
    assert (rotated**2).sum(axis=1) == pytest.approx((x**2).sum(axis=1))
    assert rotation.back(rotated)[:, :13] == pytest.approx(x, abs=1e-12)
    assert np.array_equal(make_rotation(kind, 13, seed=4).rotate(x), rotated)
    assert not np.allclose(make_rotation(kind, 13, seed=5).rotate(x), rotated)


def test_the_path_is_chosen_by_shape():
    assert cheapest_split(1024, 4, 4) == 4
    assert cheapest_split(1024, 1, 1) == 1
    assert cheapest_split(1024, 3, 3) == 1
    assert cheapest_split(1024, 1024, 1024) in (0, 1024)
    assert cheapest_split(1024, 300, 300) == 0


def test_the_buffer_size_is_given_back():
    before = np.getbufsize()
    fwht(np.ones((3, 8)))
    assert np.getbufsize() == before
