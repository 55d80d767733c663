"""The sampled likelihood-ratio test: its bounds, its events, and how often it errs."""

import math

import numpy as np
import pytest
from scipy import stats

from raydp_sim.check.events import learned
from raydp_sim.check.sampled import clopper_pearson, far_apart
from raydp_sim.check.subject import Subject
from raydp_sim.mechanisms import make


@pytest.mark.parametrize(("hits", "samples"), [(0, 50), (1, 50), (25, 50), (49, 50), (50, 50)])
def test_bounds_are_those_of_the_binomial(hits, samples):
    """At the bound, so many hits or more (or fewer) have probability exactly alpha."""
    alpha = 1e-6
    bounds = clopper_pearson(hits, hits, samples, alpha)
    if hits > 0:
        assert stats.binom.sf(hits - 1, samples, bounds.least) == pytest.approx(alpha, rel=1e-6)
    else:
        assert bounds.least == 0.0
    if hits < samples:
        assert stats.binom.cdf(hits, samples, bounds.most) == pytest.approx(alpha, rel=1e-6)
    else:
        assert bounds.most == 1.0


def largest(samples, alpha=1e-8):
    found = list(learned(samples))
    return max(clopper_pearson(e.hits, e.others, e.samples, alpha).epsilon(0.0) for e in found)


def test_laws_that_are_equal_are_not_told_apart():
    """300 pairs at alpha 1e-2 for each of two bounds of two events: 12 false alarms at most on
    average, and more than 35 with probability below 1e-7 (Poisson)."""
    random, wrong = np.random.default_rng(1), 0
    for _ in range(300):
        samples = [random.normal(size=(400, 3)) for _ in range(2)]
        wrong += largest(samples, alpha=1e-2) > 0.0
    assert wrong <= 35


@pytest.mark.parametrize("columns", [1, 5, 40])
def test_two_normals_are_told_apart_nearly_as_well_as_can_be(columns):
    """One coordinate, shifted by 2: the best event is a half-line, whose ratio is known."""
    random = np.random.default_rng(2)
    samples = [random.normal(size=(20_000, columns)) for _ in range(2)]
    samples[1][:, -1] += 2.0
    # At the threshold 3 the probabilities are about 0.16 and 0.0013.
    possible = math.log(stats.norm.sf(1.0) / stats.norm.sf(3.0))
    assert 0.7 * possible < largest(samples) < possible


def test_a_loss_spread_over_many_messages_adds_up():
    """Ten bits, each flipped for epsilon 0.4 of 4 in all; one bit alone would show 0.4."""
    random, flip = np.random.default_rng(3), 1.0 / (1.0 + math.exp(0.4))
    samples = [(random.uniform(size=(40_000, 10)) < p).astype(float) for p in (flip, 1.0 - flip)]
    assert 2.0 < largest(samples) < 4.0


def test_a_value_that_repeats_is_seen_among_many_that_do_not():
    random = np.random.default_rng(4)
    samples = [random.normal(size=(20_000, 3)) for _ in range(2)]
    samples[0][random.uniform(size=20_000) < 0.05] = 0.123
    assert largest(samples) > 2.0


def test_events_are_tested_on_samples_they_were_not_learned_from():
    """Rows that repeat only in the first half must not count."""
    random = np.random.default_rng(5)
    samples = [random.normal(size=(4000, 2)) for _ in range(2)]
    samples[0][:2000] = 1.0
    (first, *_) = learned(samples)
    assert first.hits == 0 and first.samples == 2000


def test_inputs_that_are_compared_lie_far_apart():
    chosen = far_apart(Subject(make("linf", epsilon_local=1.0, radius=2.0, dimension=2)))
    assert np.array_equal(chosen[0], -chosen[1]) and np.abs(chosen[:2]).min() == 2.0
    assert len(np.unique(chosen, axis=0)) == 4
