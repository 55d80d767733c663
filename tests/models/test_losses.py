"""Slopes of the losses by finite differences in float64, and their limits."""

import numpy as np
import pytest
from scipy.special import rel_entr, softmax

from raydp_sim.models.losses import cross_entropy, divergence

DRAWN = np.random.default_rng(2)
P, Q = (DRAWN.normal(0.0, 3.0, (5, 7)) for _ in range(2))


def slopes(loss, at, step=1e-6):
    """Central differences in every logit."""
    out = np.empty_like(at)
    for column in range(at.shape[1]):
        move = np.zeros_like(at)
        move[:, column] = step
        out[:, column] = (loss(at + move) - loss(at - move)) / (2 * step)
    return out


def test_the_divergence_is_that_of_the_distributions():
    meant = rel_entr(softmax(P, axis=1), softmax(Q, axis=1)).sum(axis=1)
    np.testing.assert_allclose(divergence(P, Q).values, meant, rtol=1e-12)
    assert (divergence(P, Q).values > 0).all()
    np.testing.assert_allclose(divergence(P, P + 4.0).values, 0.0, atol=1e-12)


@pytest.mark.parametrize(("p", "q"), [(P, Q), (Q, P)], ids=["forward", "reverse"])
def test_both_slopes_of_the_divergence(p, q):
    found = divergence(p, q)
    by_p = slopes(lambda x: divergence(x, q).values, p)
    by_q = slopes(lambda x: divergence(p, x).values, q)
    np.testing.assert_allclose(found.p_slopes, by_p, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.q_slopes, by_q, rtol=1e-6, atol=1e-8)


def test_the_slopes_of_cross_entropy():
    labels = np.arange(5)
    by_hand = slopes(lambda x: cross_entropy(x, labels).values, P)
    np.testing.assert_allclose(cross_entropy(P, labels).slopes, by_hand, rtol=1e-6, atol=1e-8)


def test_extreme_logits_stay_finite_in_float32():
    far = np.array([[0.0, 1e4], [-1e4, 1e4]], np.float32)
    found = divergence(far, far[:, ::-1].copy())
    assert all(np.isfinite(each).all() and each.dtype == np.float32 for each in found)
    np.testing.assert_allclose(found.values, [1e4, 2e4])
