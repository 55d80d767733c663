"""The regression kernel against doubles."""

import numpy as np
import pytest

from raydp_sim import kernels
from raydp_sim.kernels import plain
from raydp_sim.kernels.plain.softmax import exponential


def test_the_exponential_is_right_to_its_last_place():
    x = np.linspace(-63.99, 0.0, 1 << 20, dtype=np.float32)
    meant = np.exp(x.astype(np.float64))
    assert np.abs(exponential(x) - meant).max(initial=0.0, where=x > -1.0) < 2.0**-23
    assert (np.abs(exponential(x) / meant - 1.0)).max() < 1.5 * 2.0**-23
    ends = np.array([0.0, -0.0, -64.0, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(exponential(ends), np.array([1.0, 1.0, 0.0, 0.0, np.nan]))


@pytest.mark.parametrize("each", [plain, kernels], ids=["plain", "chosen"])
def test_gradients_are_those_of_doubles(each):
    drawn = np.random.default_rng(3)
    pool, theta = drawn.random((20, 7, 5), np.float32), drawn.normal(size=(4, 36)).astype("f4")
    theta = np.concatenate([theta, theta[:, ::-1]], axis=1)
    numbers, labels = drawn.integers(0, 20, (4, 9)), drawn.integers(0, 2, (4, 9))
    weights, out = drawn.random((4, 9)).astype(np.float32), np.empty((4, 72), np.float32)
    made = each.softmax(pool, numbers, 1.0, labels, weights, theta, out)
    x = pool.reshape(20, -1)[numbers].astype(np.float64)
    z = np.einsum("nsd,nkd->nsk", x, theta[:, :70].reshape(4, 2, 35)) + theta[:, None, 70:]
    share = np.exp(z) / np.exp(z).sum(axis=2, keepdims=True)
    own = np.take_along_axis(share, labels[..., None], 2)[..., 0]
    np.testing.assert_allclose(np.log(made.total) - made.below, -np.log(own), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(made.right, z.argmax(axis=2) == labels)
    slopes = (share - (labels[..., None] == np.arange(2))) * weights[..., None]
    meant = np.einsum("nsk,nsd->nkd", slopes, x).reshape(4, -1)
    np.testing.assert_allclose(out, np.hstack([meant, slopes.sum(axis=1)]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("each", [plain, kernels], ids=["plain", "chosen"])
def test_what_is_no_number_stays_visible(each):
    pool = np.ones((3, 4), np.float32)
    pool[1, 2], pool[2, 3] = np.nan, np.inf
    out, ones = np.zeros((3, 10), np.float32), np.ones((3, 2), np.float32)
    theta = np.linspace(-1.0, 1.0, 10, dtype=np.float32)
    with np.errstate(all="ignore"):
        numbers = np.array([[0, 0], [0, 1], [2, 0]])
        made = each.softmax(pool, numbers, 1.0, np.zeros((3, 2), np.int64), ones, theta, out)
        losses = np.log(made.total) - made.below
    assert np.isfinite(out[0]).all() and np.isfinite(losses[0]).all()
    assert np.isnan(out[1]).all() and np.isnan(losses[1, 1]) and np.isnan(losses[2, 0])


@pytest.mark.parametrize("each", [plain, kernels], ids=["plain", "chosen"])
@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("label", [-1, 2])
def test_a_label_that_is_no_class_is_refused_by_name(label, kind, each):
    numbers, weights = np.zeros((2, 3), np.int64), np.ones((2, 3), np.float32)
    labels, theta = np.array([[0, 1, 0], [0, 0, label]]), np.zeros(10, np.float32)
    with pytest.raises(ValueError, match=rf"label {label}; .* 2 classes"):
        out = np.zeros((2, 10), np.float32)
        each.softmax(np.ones((1, 4), kind), numbers, 1.0, labels, weights, theta, out)


@pytest.mark.parametrize("each", [plain, kernels], ids=["plain", "chosen"])
def test_parameters_beyond_single_floats_give_no_number_and_no_warning(each):
    """With bias or without it; warnings are errors in tests."""
    pool, labels = np.full((1, 4), 1.0, np.float32), np.zeros((1, 1), np.int64)
    ones, out = np.ones((1, 1), np.float32), np.zeros((1, 10), np.float32)
    for weight in (8e37, 3e38):
        theta = np.full(10, weight, np.float32)
        theta[8:] = 3e38
        made = each.softmax(pool, labels, 1.0, labels, ones, theta, out)
        assert np.isnan(out).all() and np.isnan(made.below).all()
