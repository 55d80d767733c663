"""Sketches and their decoders against enumeration of all encoders and the text's numbers."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.sketching import projection, spatial
from raydp_sim.mechanisms.sketching.adaptive import (
    induced_error,
    wangni_error,
    wangni_probabilities,
)
from raydp_sim.mechanisms.sketching.joint import check_seeds
from raydp_sim.mechanisms.sketching.normaliser import normaliser
from raydp_sim.mechanisms.sketching.similarity import check_sizes, correlation, slope

Floats = NDArray[np.float64]


def fixture(clients: int, dimension: int) -> Floats:
    i, j = np.ogrid[:clients, :dimension]
    return np.asarray(np.cos(0.1 * (j + 1)) + 0.3 * np.sin((i + 1) * (j + 1)))


def hadamard(dimension: int) -> Floats:
    return np.array(
        [[(-1.0) ** (a & b).bit_count() for b in range(dimension)] for a in range(dimension)]
    )


@pytest.mark.parametrize(
    ("sizes", "values"),
    [
        ((8, 4, 64), (6.4293, 66.990, 55.361, 54.619, 54.591, 50.531, 125.80)),
        ((8, 8, 64), (6.4293, 31.262, 20.964, 20.278, 20.250, 23.032, 55.122)),
        ((16, 4, 128), (13.7716, 137.220, 112.765, 110.748, 110.688, 104.726, 265.864)),
    ],
)
def test_errors_of_the_fixture(sizes: tuple[int, int, int], values: tuple[float, ...]) -> None:
    clients, kept, dimension = sizes
    x = fixture(clients, dimension)
    known = correlation(x)
    slopes = (0.0, slope("avg", clients), slope("max", clients), slope("opt", clients, known))
    found = [
        known,
        *(spatial.error(x, kept, s) for s in slopes),
        wangni_error(x, kept).sum() / clients**2,
        induced_error(x, kept).sum() / clients**2,
    ]
    assert found == pytest.approx(values, rel=5e-5)


@pytest.mark.parametrize(
    ("sizes", "values"),
    [
        ((2, 1, 3), (3.0, 3.6, 3.6, 3.375)),
        ((3, 1, 4), (4.0, 5.189189, 4.988864, 4.423963)),
        ((3, 2, 4), (2.0, 3.428571, 3.146067, 2.448980)),
    ],
)
def test_spatial_decoding_over_all_choices_of_coordinates(
    sizes: tuple[int, int, int], values: tuple[float, ...]
) -> None:
    clients, kept, dimension = sizes
    x = fixture(clients, dimension)
    choices = [np.array(c) for c in combinations(range(dimension), kept)]
    slopes = (0.0, 1.0, slope("avg", clients), slope("opt", clients, 0.5))
    for s, value in zip(slopes, values, strict=True):
        assert spatial.normaliser(clients, kept, dimension, s) == pytest.approx(value, abs=1e-6)
        estimates = np.array(
            [
                spatial.decoded(
                    np.array(rows), np.take_along_axis(x, np.array(rows), 1), dimension, s
                )
                for rows in product(choices, repeat=clients)
            ]
        )
        mean = x.mean(axis=0)
        np.testing.assert_allclose(estimates.mean(axis=0), mean, atol=1e-12)
        exact = np.square(estimates - mean).sum(axis=1).mean()
        assert spatial.error(x, kept, s) == pytest.approx(exact, rel=1e-12)
        if s > 0.0:  # Eq. 2.3 as printed, without 1/n^2 on the bracket
            plain = (dimension / kept - 1.0) * np.square(x).sum() / clients**2
            assert abs(plain + clients**2 * (exact - plain) - exact) > 0.05 * exact


@pytest.mark.parametrize(
    ("kept", "values"),
    [(1, (4.0, 4.266667, 4.266667, 4.324324)), (2, (2.0, 2.4, 2.4, 2.377358))],
)
def test_projected_decoding_over_all_signs_and_rows(kept: int, values: tuple[float, ...]) -> None:
    clients, dimension = 2, 4
    x = fixture(clients, dimension)
    # All signs of a client turned at once turn what it sends, and the estimate stays.
    encoders = [
        (np.array([1, *signs], float), np.array(rows))
        for signs in product((1, -1), repeat=dimension - 1)
        for rows in combinations(range(dimension), kept)
    ]
    slopes = (0.0, 1.0, slope("avg", clients), slope("opt", clients, 0.5))
    for s, beta in zip(slopes, values, strict=True):
        total, traces = np.zeros(dimension), 0.0
        for one, other in product(encoders, repeat=2):
            signs, rows = (np.stack(part) for part in zip(one, other, strict=True))
            sent = projection.encoded(x, signs, rows)
            total += projection.decoded(signs, rows, sent, s, beta)
            eigenvalues = np.linalg.eigvalsh(projection.gram(signs, rows))
            positive = eigenvalues[eigenvalues > projection.ZERO]
            traces += float((positive / (1.0 + s * (positive - 1.0))).sum())
        pairs = len(encoders) ** 2
        assert clients * dimension / (traces / pairs) == pytest.approx(beta, abs=1e-6)
        np.testing.assert_allclose(total / pairs, x.mean(axis=0), atol=1e-6)
    # Theorem 2.4.4 prints d^2/k where enumeration gives d/k.
    assert normaliser(clients, kept, dimension, 0.0).value == dimension / kept != 16 / kept


def test_decoding_is_the_decomposition_of_the_text() -> None:
    clients, kept, dimension = 6, 3, 32
    x = fixture(clients, dimension)
    signs, rows = projection.sketches(np.arange(50, 56, dtype=np.uint32), kept, dimension)
    h = hadamard(dimension) / math.sqrt(dimension)
    g = np.concatenate([h[r] * s for r, s in zip(rows, signs, strict=True)])
    np.testing.assert_allclose(projection.gram(signs, rows), g @ g.T, atol=1e-14)
    sent = projection.encoded(x, signs, rows)
    np.testing.assert_allclose(
        sent, [(h[r] * s) @ v for r, s, v in zip(rows, signs, x, strict=True)], atol=1e-14
    )
    eigenvalues, vectors = np.linalg.eigh(g.T @ g)
    for s in (0.0, 0.3, 0.6, 1.0):
        spectrum = np.where(eigenvalues > 1e-9, 1.0 + s * (eigenvalues - 1.0), np.inf)
        inverse = 1.0 / spectrum
        expected = 7.0 / clients * vectors @ (inverse * (vectors.T @ (g.T @ sent.reshape(-1))))
        found = projection.decoded(signs, rows, sent, s, 7.0)
        np.testing.assert_allclose(found, expected, atol=1e-11)


@pytest.mark.parametrize(
    ("sizes", "average", "error"),
    [
        pytest.param((10, 102, 1024), 13.024, 0.002, marks=pytest.mark.long),
        pytest.param((50, 20, 1024), 66.50, 0.009, marks=pytest.mark.long),
        ((10, 50, 512), 13.212, 0.002),
        ((50, 10, 512), 66.50, 0.018),
        ((10, 5, 1024), 207.09, 0.023),
        ((50, 5, 1024), 217.79, 0.042),
    ],
)
def test_normalisers_of_the_text(sizes: tuple[int, int, int], average: float, error: float) -> None:
    clients, kept, dimension = sizes
    found = normaliser(*sizes, slope("avg", clients))
    # Five standard errors of both: false alarm below 1e-6.
    assert abs(found.value - average) < 5.0 * math.hypot(found.standard_error, error) + 5e-3
    assert 0.0 < found.standard_error < 1e-3 * found.value
    # All rows were independent in every draw, so that averaging costs no more than d/k.
    assert normaliser(*sizes, 1.0).value == pytest.approx(dimension / kept, rel=1e-9)


def test_rows_may_depend_for_few_clients_that_send_everything() -> None:
    # Measured 0.845 by 20,000 draws at (n, k, d) = (2, 16, 32); six standard errors of 500 draws.
    dependent = 0
    for draw in range(500):
        seeds = np.array([2 * draw, 2 * draw + 1], np.uint32)
        values = np.linalg.eigvalsh(projection.gram(*projection.sketches(seeds, 16, 32)))
        dependent += bool((values <= projection.ZERO).any())
    assert abs(dependent / 500 - 0.845) < 6.0 * math.sqrt(0.845 * 0.155 / 500)
    assert normaliser(2, 16, 32, 1.0).value > 32 / 16 * 1.01


@pytest.mark.parametrize(
    ("sizes", "values", "theirs", "draws"),
    [
        ((8, 4, 64), (47.3, 42.5), 0.2, 600),
        ((8, 8, 64), (15.3, 10.5), 0.06, 1500),
        ((16, 4, 128), (98.3, 84.8), 0.3, 400),
    ],
)
def test_errors_by_simulation_of_the_fixture(
    sizes: tuple[int, int, int], values: tuple[float, float], theirs: float, draws: int
) -> None:
    """Proj(Avg) and Proj(Opt), with the standard errors that the specification found."""
    clients, kept, dimension = sizes
    x = fixture(clients, dimension)
    mean = x.mean(axis=0)
    for s, value in (
        (slope("avg", clients), values[0]),
        (slope("opt", clients, correlation(x)), values[1]),
    ):
        beta = normaliser(clients, kept, dimension, s).value
        errors, estimates = [], []
        for draw in range(draws):
            seeds = np.arange(clients, dtype=np.uint32) + np.uint32(1000 + clients * draw)
            signs, rows = projection.sketches(seeds, kept, dimension)
            sent = projection.encoded(x, signs, rows)
            estimates.append(projection.decoded(signs, rows, sent, s, beta))
            errors.append(float(np.square(estimates[-1] - mean).sum()))
        error = np.std(errors) / math.sqrt(len(errors))
        # Five standard errors of ours and of the text's.
        assert abs(np.mean(errors) - value) < 5.0 * math.hypot(error, theirs) + 0.05
        # Unbiased: every coordinate within 5.5 standard errors, false alarm below 64 x 4e-8, and
        # the normaliser's own standard error.
        spread = np.std(estimates, axis=0) / math.sqrt(len(estimates))
        room = 5.5 * spread + 5.0 * normaliser(clients, kept, dimension, s).standard_error
        assert (np.abs(np.mean(estimates, axis=0) - mean) < room).all()


def test_wangni_sends_k_in_expectation_and_small_vectors_whole() -> None:
    x = np.random.default_rng(1).standard_cauchy((50, 40))
    chance = wangni_probabilities(x, 7)
    np.testing.assert_allclose(chance.sum(axis=1), 7.0, atol=1e-9)
    assert ((chance > 0) & (chance <= 1)).all()
    few = np.zeros((2, 40))
    few[0, :3] = [1.0, -2.0, 5.0]
    np.testing.assert_array_equal(wangni_probabilities(few, 7), few != 0.0)
    assert wangni_error(few, 7).tolist() == [0.0, 0.0]


def test_what_the_text_says_of_dependent_rows_is_too_kind() -> None:
    """Section A.3.2 says that delta <= 2/3 is enough to beat Rand-k; it is nk/(d + nk - k)."""
    clients, kept, dimension = 10, 5, 1024
    threshold = clients * kept / (dimension + clients * kept - kept)

    def bound(failure: float) -> float:
        return dimension / ((1.0 - failure) * clients * kept + failure * kept) - 1.0

    plain = (dimension / kept - 1.0) / clients
    assert bound(threshold) == pytest.approx(plain, rel=1e-12)
    assert bound(2.0 / 3.0) > plain


def test_seeds_make_the_same_sketch_whoever_asks() -> None:
    seeds = np.array([3, 99, 2**32 - 1], np.uint32)
    signs, rows = projection.sketches(seeds, 5, 64)
    for i in range(3):
        alone = projection.sketches(seeds[i : i + 1], 5, 64)
        np.testing.assert_array_equal(alone[0][0], signs[i])
        np.testing.assert_array_equal(alone[1][0], rows[i])
    assert (np.diff(rows, axis=1) > 0).all()
    # Uniform rows: chi-square with 63 degrees over 20,000 draws; 1e-6 quantile 136.
    many = projection.distinct_rows(np.arange(20_000, dtype=np.uint32), 1, 64)
    counts = np.bincount(many.reshape(-1), minlength=64)
    assert (np.square(counts - 312.5) / 312.5).sum() < 136.0


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="kept is 0"):
        check_sizes(3, 0, 4)
    with pytest.raises(InputError, match="clients is 0"):
        check_sizes(0, 1, 4)
    with pytest.raises(InputError, match="similarity is 'mean'"):
        slope("mean", 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="correlation is None"):
        slope("opt", 3)
    assert slope("opt", 3, -1.0) == 0.0
    assert slope("max", 1) == slope("avg", 1) == 0.0


@pytest.mark.parametrize(
    ("sizes", "value"),
    [
        ((10, 102, 1024), 13.6005),
        ((50, 20, 1024), 69.1006),
        ((10, 50, 512), 13.7947),
        ((50, 10, 512), 69.1006),
        ((10, 5, 1024), 208.0317),
        ((50, 5, 1024), 221.7073),
    ],
)
def test_spatial_normalisers_of_the_text(sizes: tuple[int, int, int], value: float) -> None:
    assert spatial.normaliser(*sizes, slope("avg", sizes[0])) == pytest.approx(value, abs=5e-5)


def estimates(x: Floats, kept: int, alike: float, beta: float) -> Floats:
    """Decode what two clients send with every pair of encoders there is."""
    dimension = x.shape[1]
    encoders = [
        (np.array([1, *signs], float), np.array(rows))
        for signs in product((1, -1), repeat=dimension - 1)
        for rows in combinations(range(dimension), kept)
    ]
    found = []
    for pair in product(encoders, repeat=2):
        signs, rows = (np.stack(part) for part in zip(*pair, strict=True))
        sent = projection.encoded(x, signs, rows)
        found.append(projection.decoded(signs, rows, sent, alike, beta))
    return np.array(found)


def test_one_convention_for_the_normaliser() -> None:
    """Eq. 2.2 has 1/n, Eq. 2.5 has not, and Eq. A.9 gives beta for the form without it."""
    x = fixture(2, 4)
    mean, beta = x.mean(axis=0), 4.0 / 1.875 * 2.0  # n d / E[rank], Max
    found = estimates(x, 1, 1.0, beta).mean(axis=0)
    np.testing.assert_allclose(found, mean, atol=1e-12)
    without = 2.0 * found  # Eq. 2.5 with this beta
    appendix = estimates(x, 1, 1.0, beta / 2.0).mean(axis=0)  # Eq. 2.2 with that of A.9
    assert np.abs(without - mean).max() > 0.5 * np.abs(mean).max()
    assert np.abs(appendix - mean).max() > 0.4 * np.abs(mean).max()


@pytest.mark.parametrize(("kept", "rank"), [(1, 1.875), (2, 8 / 2.4)])
def test_exact_errors_of_both_theorems_over_all_encoders(kept: int, rank: float) -> None:
    same = np.repeat(fixture(1, 4), 2, axis=0)
    off = np.square(estimates(same, kept, 1.0, 8.0 / rank) - same[0]).sum(axis=1).mean()
    # Theorem 2.4.3: (d/E[rank S] - 1) |x|^2, and with rank nk for sure less than that.
    length = np.square(same[0]).sum()
    assert off == pytest.approx((4.0 / rank - 1.0) * length, rel=1e-9)
    assert off > (4.0 / (2 * kept) - 1.0) * length + 0.1 * length
    # Theorem 2.4.4: T = 1 errs as Rand-k does, whatever the vectors.
    x = fixture(2, 4)
    off = np.square(estimates(x, kept, 0.0, 4.0 / kept) - x.mean(axis=0)).sum(axis=1).mean()
    assert off == pytest.approx((4.0 / kept - 1.0) * np.square(x).sum() / 4.0, rel=1e-12)


def test_a_normaliser_is_found_once_for_every_n_k_d_and_similarity() -> None:
    normaliser.cache_clear()
    for _ in range(3):
        normaliser(10, 5, 512, 0.5)
    normaliser(10, 5, 512, 0.25)
    found = normaliser.cache_info()
    assert (found.misses, found.hits) == (2, 2)


def test_rejected_decoders_of_the_appendix_gain_nothing() -> None:
    """Section A.2.2: G_i times d/k is pseudo-inverted by itself: Rand-k's error, however alike."""
    same = np.repeat(fixture(1, 4), 2, axis=0)
    off = np.square(estimates(same, 1, 0.0, 4.0) - same[0]).sum(axis=1).mean()
    assert off == pytest.approx(3.0 * np.square(same).sum() / 4.0, rel=1e-12)
    better = np.square(estimates(same, 1, 1.0, 8.0 / 1.875) - same[0]).sum(axis=1).mean()
    assert better < 0.8 * off


def test_clients_must_draw_their_own_seeds() -> None:
    check_seeds(np.arange(50, dtype=np.uint32))
    check_seeds(np.array([5] * 2 + list(range(100_000)), np.uint32))  # as may happen by chance
    with pytest.raises(InputError, match="50 clients sent 1 seeds"):
        check_seeds(np.full(50, 9, np.uint32))
    # What happens otherwise: all clients send the same coordinate, and most are never heard of.
    rows, x = np.zeros((3, 1), np.int64), np.ones((3, 4))
    same = spatial.decoded(rows, np.take_along_axis(x, rows, 1), 4, 1.0)
    assert same[1:].tolist() == [0.0] * 3
