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
