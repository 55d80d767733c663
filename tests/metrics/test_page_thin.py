"""What a page shows of many rows: fewer points, and no peak lost."""

import numpy as np
import pytest

from raydp_sim.metrics.page.thin import MOST, by_release, kept, looked_up, numbers


def test_a_million_points_become_a_screenful_with_every_peak() -> None:
    line = np.sin(np.arange(1_000_000) / 1e4)
    peaks = [3, 123_456, 999_000]
    line[peaks] = [5.0, -7.0, 9.0]
    places = kept([line])
    assert len(places) <= 2 * MOST + 2
    assert set(peaks) <= set(places.tolist()) and {0, 999_999} <= set(places.tolist())
    assert (np.diff(places) > 0).all()


def test_each_bucket_keeps_its_least_and_largest_value() -> None:
    rng = np.random.default_rng(0)
    line = rng.normal(size=10_007)
    places = kept([line], most=50)
    size = -(-len(line) // 50)
    for first in range(0, len(line), size):
        bucket = np.arange(first, min(first + size, len(line)))
        own = line[places[(places >= bucket[0]) & (places <= bucket[-1])]]
        assert own.min() == line[bucket].min() and own.max() == line[bucket].max()


def test_several_lines_share_their_places() -> None:
    lines = [np.zeros(100_000), np.zeros(100_000)]
    lines[0][70_000], lines[1][30_000] = 1.0, -1.0
    assert {70_000, 30_000} <= set(kept(lines, most=20).tolist())


def test_what_is_not_a_number_is_passed_over() -> None:
    line = np.full(10_000, np.nan)
    line[5_000] = 2.0
    assert kept([line], most=10).tolist() == [0, 5_000, 9_999]


@pytest.mark.parametrize("length", [0, 1, 2, 2 * MOST])
def test_few_points_stay_as_they_are(length: int) -> None:
    assert kept([np.arange(float(length))]).tolist() == list(range(length))
    assert kept([]).tolist() == []


def test_means_over_repetitions_are_those_of_numpy() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(5, 7))
    release = np.tile(np.arange(7), 5)
    order = rng.permutation(35)
    at, [(mean, error)] = by_release(release[order], [values.ravel()[order]])
    assert at.tolist() == [1, 2, 3, 4, 5, 6, 7]
    np.testing.assert_allclose(mean, values.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(error, values.std(axis=0, ddof=1) / np.sqrt(5), rtol=1e-12)


def test_rows_that_are_null_are_left_out_of_means() -> None:
    values = np.array([1.0, np.nan, 3.0, np.nan])
    _, [(mean, error)] = by_release(np.array([0, 0, 1, 2]), [values])
    assert mean[:2].tolist() == [1.0, 3.0] and np.isnan(mean[2])
    assert np.isnan(error).all()


def test_numbers_are_json() -> None:
    assert numbers(np.array([np.inf, -np.inf, np.nan, 2.0, 1e-30])) == [None, None, None, 2, 1e-30]


def test_keys_that_are_missing_are_not_a_number() -> None:
    found = looked_up(np.array([0, 2, 4]), np.array([1.0, 2.0, 3.0]), np.array([4, 5, -1, 0]))
    assert found[[0, 3]].tolist() == [3.0, 1.0] and np.isnan(found[[1, 2]]).all()
    assert np.isnan(looked_up(np.array([], int), np.array([]), np.array([1]))).all()
