"""Published numbers of the level budgets, and the printed forms that were wrong."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raydp_sim.mechanisms.parts.blocks import Blocks, recommended
from raydp_sim.mechanisms.parts.budget import message_losses
from raydp_sim.mechanisms.parts.levels import columns, level, shares, split, weights


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (1, [1.0]),
        (2, [0.5, 0.5]),
        (3, [0.442493, 0.278753, 0.278753]),
        (4, [0.412599, 0.259921, 0.163740, 0.163740]),
        (6, [0.385834, 0.243060, 0.153118, 0.096458, 0.060765, 0.060765]),
    ],
)
def test_published_shares(levels, expected):
    assert shares(levels) == pytest.approx(expected, abs=6e-7)


@pytest.mark.parametrize(
    ("levels", "constant"),
    [(1, 1.0), (2, 2.0), (3, 2.885492), (4, 3.559227), (6, 4.352512), (8, 4.697390)],
)
def test_published_privacy_constant(levels, constant):
    w, f = weights(levels), shares(levels)
    assert (w ** (2 / 3)).sum() ** 3 == pytest.approx(constant, abs=6e-7)
    assert (w**2 / f**2).sum() == pytest.approx(constant, abs=6e-7)


def test_privacy_constant_has_the_published_limit():
    assert (weights(50) ** (2 / 3)).sum() ** 3 == pytest.approx((4 ** (1 / 3) - 1) ** -3, rel=1e-9)


@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_no_other_allocation_has_less_noise_at_the_same_sum(levels, seed):
    w, f = weights(levels), shares(levels)
    other = f * np.exp(0.3 * np.random.default_rng(seed).normal(size=levels))
    other /= other.sum()
    assert (w**2 / f**2).sum() <= (w**2 / other**2).sum() * (1 + 1e-12)


def test_no_other_allocation_has_less_noise_at_the_same_sum_of_squares():
    w, f = weights(5), shares(5, "rdp")
    f = f / np.sqrt((f**2).sum())
    other = f * np.exp(0.3 * np.random.default_rng(0).normal(size=(1000, 5)))
    other /= np.sqrt((other**2).sum(axis=1, keepdims=True))
    assert ((w**2 / other**2).sum(axis=1) >= (w**2 / f**2).sum()).all()


def test_the_printed_last_budget_costs_half_as_much_again():
    w = weights(4)
    printed = 4.0 ** (-np.array([1, 2, 3, 5]) / 3)
    printed /= printed.sum()
    assert (w**2 / printed**2).sum() == pytest.approx(5.423, abs=6e-4)
    assert (w**2 / shares(4) ** 2).sum() == pytest.approx(3.559, abs=6e-4)


def test_the_printed_quantiser_gives_no_bit_at_the_upper_end():
    assert math.floor(2 * 1.0) == 2
    for levels in (1, 2, 3, 50):
        bits = [float(level(np.array([1.0]), k, levels)[0]) for k in range(levels)]
        assert bits == [1.0] * levels
        assert (weights(levels) * bits).sum() == 1.0


@given(st.floats(0, 1), st.integers(1, 50))
def test_levels_add_up_to_the_number(z, levels):
    bits = np.array([float(level(np.array([z]), k, levels)[0]) for k in range(levels)])
    assert set(bits[:-1]) <= {0.0, 1.0} and 0.0 <= bits[-1] <= 1.0
    assert (weights(levels) * bits).sum() == pytest.approx(z, abs=1e-15)
    assert columns(np.full((1, levels), z), levels)[0].tolist() == bits.tolist()


@pytest.mark.parametrize("z", [0.0, 0.25, 0.5, 0.75])
def test_dyadic_numbers_leave_nothing_to_round(z):
    prefix, rest = split(np.array([z]), 3)
    assert prefix[0] == 4 * z and rest[0] == 0.0


@given(
    st.floats(1e-4, 50.0),
    st.integers(1, 8),
    st.integers(1, 30),
    st.sampled_from(["seed", "equal", "rdp"]),
)
def test_tight_uses_the_whole_budget_and_seed_no_more_than_it(epsilon, levels, count, allocation):
    share = shares(levels, allocation)
    tight = message_losses(epsilon, share, count, count, "tight")
    seed = message_losses(epsilon, share, count, count, "seed")
    assert count * tight.sum() == pytest.approx(epsilon, rel=1e-9)
    assert count * tight.sum() <= epsilon
    assert count * seed.sum() <= epsilon
    assert (seed <= tight * (1 + 1e-9)).all()
    # Level by level they are the message losses of one v, in the ratio of the shares.
    v = 2 * count * np.sinh(tight / 2) / share
    assert v == pytest.approx(np.full(levels, v[0]), rel=1e-6)
    assert seed == pytest.approx(2 * np.arcsinh(share * epsilon / (2 * count)), rel=1e-12)


def test_no_epsilon_is_too_large():
    losses = message_losses(1e5, shares(3), 1, 1, "tight")
    assert losses.sum() == pytest.approx(1e5, rel=1e-9)


@given(st.integers(1, 60), st.integers(1, 60))
def test_blocks_cover_every_coordinate_once(dimension, count):
    count = min(count, dimension)
    balanced, padded = Blocks(dimension, count, balanced=True), Blocks(dimension, count)
    assert balanced.lengths.sum() == dimension and np.ptp(balanced.lengths) <= 1
    assert (np.diff(balanced.lengths) <= 0).all() and not balanced.padded
    assert padded.lengths.sum() >= dimension and padded.width == math.ceil(dimension / count)
    assert padded.filled == sum(start < dimension for start in padded.starts)
    for blocks in (balanced, padded):
        assert blocks.factors.shape == (dimension,)


@pytest.mark.parametrize(
    ("epsilon", "expected"), [(0.1, 1), (1.0, 1), (1.2, 2), (3 * 1.1, 4), (99, 10)]
)
def test_recommended_coordinates(epsilon, expected):
    assert recommended(epsilon, 10) == expected
