"""Bounds on the estimate of a mean gradient and on the last iterate: values, and that they hold."""

import itertools
import math

import numpy as np
import pytest

from raydp_sim.mechanisms import make
from raydp_sim.tasks.learning.moments import (
    inverse_number,
    last_gap,
    of_lengths,
    printed_moment,
    second_moment,
)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ((1.0, 1.0, 100), 2.87308),
        ((2.0, 1.0, 100), 7.55577),
        ((math.inf, 1.0, 100), 28.73078),
        ((4.0, 2.0, 50), 18.42777),
    ],
)
def test_the_bound_of_the_source_has_its_values(given, value):
    p, epsilon0, number = given
    assert printed_moment(1.0, p, 10, epsilon0, number) == pytest.approx(value, abs=5e-6)


@pytest.mark.parametrize(
    ("clients", "probability", "value"),
    [
        (10, 0.2, 0.514884),
        (100, 0.1, 0.111524),
        (1000, 0.1, 0.01009176),
        (60_000, 1 / 6, 1.0000833e-4),
    ],
)
def test_the_mean_of_one_over_the_number_of_those_who_came(clients, probability, value):
    found = inverse_number(clients, probability)
    assert found == pytest.approx(value, rel=1e-5)
    # 000 Lemma 4.4.2 has qN in its place, its proof 2/(qN) and what is lost if few come.
    expected = clients * probability
    assert 1.0 / expected < found <= 2.0 / expected + 2.0 * math.exp(-expected / 12.0)


def test_with_coins_the_constant_of_the_lemma_is_too_small_for_many_clients():
    """000 (4.12): E[1/K] is beyond 1/(qN) by more than e^(-c' q N) for every c' of the proof."""
    assert inverse_number(10_000, 0.1) == pytest.approx(1.0009017e-3, rel=1e-6)
    assert inverse_number(10_000, 0.1) > 1e-3 + math.exp(-1000.0 / 24.0)


@pytest.mark.parametrize(
    ("kind", "p", "more"),
    [("rinf", math.inf, {}), ("r1", 1.0, {}), ("privunit", 2.0, {}), ("rp", 3.0, {"power": 3.0})],
)
@pytest.mark.parametrize("number", [1, 4, 100])
def test_ours_holds_at_the_worst_vectors_and_is_below_that_of_the_source(kind, p, more, number):
    """What is exact: |x|^2 + mse(x)/number for `number` reports of one vector x."""
    mechanism = make(kind, epsilon_local=2.0, dimension=8, radius=1.0, **more)
    corners = np.array([[1.0] * 8, [1.0] + [0.0] * 7, [0.5] * 4 + [0.0] * 4])
    corners /= np.linalg.norm(corners, ord=p, axis=1)[:, None]
    exact = (corners**2).sum(axis=1) + mechanism.mse(corners) / number
    found = second_moment(1.0, p, 8, mechanism.worst_mse(), number)
    assert (exact <= found * (1 + 1e-12)).all()
    assert found <= printed_moment(1.0, p, 8, 2.0, number)
    if p > 2.0 and number == 100:
        # Without the norm's share, as 000 Lemma 4.3.2 has it, it is none.
        assert exact.max() > 1.0 + mechanism.worst_mse() / number


def test_no_vector_of_a_ball_is_longer_than_said():
    for p, d in itertools.product((1.0, 1.5, 2.0, 3.0, math.inf), (1, 2, 7)):
        rows = np.random.default_rng(d).normal(size=(400, d))
        rows = np.vstack([rows, np.ones((1, d)), np.eye(d)[:1]])
        rows /= np.linalg.norm(rows, ord=p, axis=1)[:, None]
        most = (rows**2).sum(axis=1).max()
        assert most == pytest.approx(of_lengths(p, d))


def test_the_gap_falls_with_the_rounds():
    assert last_gap(2.0, 3.0, 100) == pytest.approx(7.9262, abs=5e-5)
    assert last_gap(2.0, 3.0, 10_000) < last_gap(2.0, 3.0, 100)
