"""Estimates made into distributions, their predicted errors, and heavy hitters of fixed data."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.parts.distributions import (
    errors,
    heavy_hitters,
    predicted,
    radius,
    repaired,
    scores,
)
from raydp_sim.random import Stream

from .support import folded

numbers = arrays(float, st.integers(1, 30), elements=st.floats(-3.0, 3.0))


@settings(max_examples=200, deadline=None)
@given(numbers)
def test_repaired_estimates_are_distributions_and_the_simplex_is_nearest(estimate):
    for how in ("clip", "simplex"):
        found = repaired(estimate, how)
        assert (found >= 0.0).all()
        assert found.sum() == pytest.approx(1.0)
        assert repaired(found, how) == pytest.approx(found, abs=1e-12)
    near = repaired(estimate, "simplex")
    # Nearest: every way towards a corner leads away (the projection's variational inequality).
    assert ((estimate - near) @ (np.eye(len(near)) - near).T <= 1e-9).all()


@pytest.mark.parametrize("how", ["raw", "clip", "simplex"])
def test_errors_are_predicted_by_the_exact_variances(how):
    """12 releases of 20,000 clients each; the mean error is within 10 % of its prediction. Raw and
    repaired errors of a release vary by less than 6 %, so this fails falsely below 1e-6."""
    k, n = 64, 20_000
    share = 0.8 ** np.arange(k)
    share /= share.sum()
    mechanism = make("hadamard-cascade", epsilon_local=0.5, finer=(2.0,), categories=k)
    random = np.random.default_rng(6)
    for level in (0, 1):
        view, found = mechanism.view(level), []
        for run in range(12):
            values = random.choice(k, n, p=share)[:, None].astype(float)
            payload, keys = mechanism.released(values, Stream(run).clients(np.arange(n)))
            seen = mechanism.opened(payload, keys[:, level], level)
            held = np.bincount(values[:, 0].astype(int), minlength=k) / n
            found.append(errors(repaired(view.decode(folded(mechanism, seen)), how), held))
        wanted = predicted(share, view.variance(share, n), how)
        assert np.mean(found, axis=0) == pytest.approx(tuple(wanted), rel=0.1)


# Point 12: fixed data.


def played(mechanism, held, seed, level=None):
    stream = Stream(seed).clients(np.arange(len(held)))
    if level is None:
        return mechanism.decode(folded(mechanism, mechanism.messages(held, stream).payload), None)
    payload, keys = mechanism.released(held, stream)
    seen = mechanism.opened(payload, keys[:, level], level)
    return mechanism.view(level).decode(folded(mechanism, seen))


@pytest.mark.parametrize(
    ("kind", "extra", "level"),
    [
        ("hadamard-bit", {}, None),
        ("hadamard-bit", {"randomness": 0.6}, None),
        ("hadamard-cascade", {"finer": (3.0, 2.0)}, 1),
        ("hadamard-response", {}, None),
        ("recoverable-hadamard", {}, 1),
        ("ldp-rec", {}, 1),
    ],
)
def test_estimates_of_fixed_data_are_unbiased(kind, extra, level):
    """Data sorted by client, as the worst for groups by number. 300 releases; each of 8 entries
    within 6 standard errors, a false alarm below 2e-8 by the normal limit."""
    mechanism = make(kind, epsilon_local=1.0, categories=8, **extra)
    held = np.sort(np.arange(400.0) % 3)[:, None]
    truth = np.bincount(held[:, 0].astype(int), minlength=8) / 400
    found = np.array([played(mechanism, held, seed, level) for seed in range(300)])
    off = (found.mean(axis=0) - truth) / (found.std(axis=0) / math.sqrt(300))
    assert np.abs(off).max() < 6


def test_groups_by_client_number_would_be_biased():
    """Without any noise: clients 0, 1, ... in groups i mod K, whose data go with their number."""
    k, n = 8, 800
    held = np.arange(n) % k
    sign = make("hadamard-cascade", epsilon_local=1.0, finer=(math.inf,), categories=k).view(0)
    column = np.arange(n) % k
    bit = 1 - np.bitwise_count(held & column) % 2
    counts = np.bincount(2 * column + bit, minlength=2 * k)[None]
    off = sign.grouped(counts) - np.bincount(held, minlength=k) / n
    assert np.abs(off).max() > 0.3


def test_published_largest_error_and_radius_at_every_level():
    """40 releases of 20,000. The mean of the largest error of one is 0.0416 published, and varies
    by 0.006 per release: missing it by 0.006 in the mean has probability below 1e-8."""
    k, n, runs = 100, 20_000, 40
    mechanism = make("hadamard-cascade", epsilon_local=0.5, finer=(3.0, 1.0), categories=k)
    share = np.full(k, 0.5 / (k - 2))
    share[[0, 7]] = 0.3, 0.2
    held = np.random.default_rng(8).choice(k, n, p=share)[:, None].astype(float)
    truth = np.bincount(held[:, 0].astype(int), minlength=k) / n
    largest = np.array(
        [
            [np.abs(played(mechanism, held, seed, level) - truth).max() for level in range(3)]
            for seed in range(runs)
        ]
    )
    assert largest.mean(axis=0)[1] == pytest.approx(0.0416, abs=0.006)
    for level in range(3):
        span = mechanism.view(level).span
        assert largest.mean(axis=0)[level] <= radius(span, k, n, beta=1.0)
        # At beta = 1e-8 no release of 40 exceeds it but with probability 4e-7.
        assert largest[:, level].max() <= radius(span, k, n, beta=1e-8)
    assert radius(mechanism.view(1).span, k, n, beta=1.0) == pytest.approx(0.0498, abs=5e-5)


def test_heavy_hitters_of_fixed_data():
    """All three heavy categories are above phi + 2 radius at beta = 1e-7: found, and no others."""
    k, n = 256, 200_000
    held = np.concatenate([np.full(50_000, 3.0), np.full(40_000, 77.0), np.full(30_000, 200.0)])
    held = np.concatenate([held, np.arange(n - len(held)) % k])[:, None]
    truth = np.bincount(held[:, 0].astype(int), minlength=k) / n
    mechanism = make("hadamard-cascade", epsilon_local=1.0, finer=(2.0,), categories=k)
    for level in (0, 1):
        estimate = played(mechanism, held, 5, level)
        threshold = 0.04 + radius(mechanism.view(level).span, k, n, beta=1e-7)
        found = heavy_hitters(estimate, threshold)
        assert found.tolist() == [3, 77, 200]
        assert scores(found, truth, threshold) == (1.0, 1.0)
    assert scores(np.array([], np.int64), truth, 0.9) == (1.0, 1.0)
