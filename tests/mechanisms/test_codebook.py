"""The codebook: what its nearest codeword means, that blocks are exact, and how well it does."""

import math

import numpy as np
import pytest

from raydp_sim.errors import InputError
from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.parts.nearest_direction import nearest
from raydp_sim.random import Stream

from .support import ALPHA


def codebook(**more):
    settings = {"epsilon_local": 5.0, "dimension": 60, "radius": 1.0, "coordinates": 16}
    return make("codebook", **{**settings, **more})


@pytest.mark.parametrize(("size", "directions"), [(1, 4), (2, 1), (2, 8), (16, 16), (32, 64)])
def test_the_nearest_direction_is_as_high_as_the_integral_says(size, directions):
    """200,000 draws; false alarms below 1e-6, by the normal limit at 5 standard errors."""
    draws = np.random.default_rng(3).standard_normal((200_000 // directions, directions, size))
    unit = np.abs(draws[..., 0]) / np.linalg.norm(draws, axis=-1)
    height, found = unit.max(axis=1), nearest(size, directions)
    for power, stated in ((1, found.mean), (2, found.square)):
        sample = height**power
        room = 5.0 * sample.std() / math.sqrt(len(sample)) + 1e-12
        assert abs(sample.mean() - stated) <= room


def test_a_block_is_the_same_as_in_the_whole_rotation():
    mechanism, rng = codebook(), np.random.default_rng(1)
    values, block = rng.standard_normal((7, 60)), rng.integers(0, 4, 7)
    whole = mechanism._rotation.rotate(values).reshape(7, 4, 16)
    assert mechanism._blocks(values, block) == pytest.approx(whole[np.arange(7), block], abs=1e-12)


def test_without_lies_the_mean_of_many_reports_is_the_vector():
    """Given the codebooks it is off by 1/(height sqrt(codebooks)); the noise is what `mse` says.

    By Chebyshev a squared error of 40 times its mean has a chance below 1e-3 over seeds; the seed
    is fixed.
    """
    mechanism = codebook(epsilon_local=20.0, level=2.0)
    x = np.zeros((40_000, 60))
    x[:, :3] = 0.5, -0.3, 0.6
    ids = Stream(1).at("codebook").clients(np.arange(len(x)))
    counts = mechanism.fold(mechanism.zero(), None, mechanism.randomize(x, ids).payload)
    error = float(((mechanism.decode(counts, Stream(0)) - x[0]) ** 2).sum())
    assert error < 4.0 * float(mechanism.mse(x[:1])[0]) / len(x)
    assert error < 0.01


def test_long_blocks_are_cut_and_counted_and_the_bound_holds():
    mechanism = codebook(level=0.5)
    x = np.vstack([np.eye(60)[:1], mechanism._rotation.back(np.eye(64)[:1])[:, :60]])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    ids = Stream(1).at("codebook").clients(np.arange(2))
    assert mechanism.randomize(x, ids).clipped > 0
    assert mechanism.bias and not codebook(level=2.0).bias
    assert (mechanism.mse(x) <= mechanism.worst_mse()).all()


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 6.0])
def test_with_the_best_number_of_codewords_it_is_close_to_privunit(epsilon):
    shape = {"epsilon_local": epsilon, "dimension": 1000, "radius": 1.0}
    mechanism = make("codebook", **shape)
    assert mechanism.worst_mse() < 1.3 * make("privunit", **shape).worst_mse()
    more = make("codebook", **shape, codewords=2 * mechanism.wire.codewords)
    assert mechanism.worst_mse() < more.worst_mse()


def test_thirty_bits_err_little_more_than_the_best_that_is_known():
    """At the size of a small network PrivUnit errs least of all, with 877,184 bits."""
    shape = {"epsilon_local": 5.0, "dimension": 13_706, "radius": 1.0}
    mechanism, best = make("codebook", **shape), make("privunit", **shape)
    assert mechanism.bits == 30
    assert mechanism.worst_mse() < 1.3 * best.worst_mse()
    assert make("sqkr", **shape).worst_mse() > 5.0 * mechanism.worst_mse()


def test_the_loss_is_that_of_the_response():
    mechanism = codebook(epsilon_local=3.0, codewords=8)
    nearest_one = mechanism.other + mechanism.kept
    assert math.log(nearest_one / mechanism.other) == pytest.approx(3.0, abs=1e-9)
    assert 3.0 - 1e-9 < mechanism.event().epsilon <= 3.0
    assert (mechanism.randomizer(), mechanism.alphabet()) == ("krr", 8)


def test_codewords_are_sent_as_often_as_the_response_says():
    """40,000 reports of one vector; at the edge a false alarm has the chance `ALPHA`."""
    from scipy import stats

    mechanism = codebook(epsilon_local=2.0, codewords=8, level=1e-3)
    x = np.tile(np.eye(60)[:1], (40_000, 1))
    ids = Stream(5).at("codebook").clients(np.arange(len(x)))
    sent = mechanism.randomize(x, ids).payload[:, 0]
    certain = codebook(epsilon_local=25.0, codewords=8, level=1e-3)
    same = int((sent == certain.randomize(x, ids).payload[:, 0]).sum())
    edge = stats.binom.isf([1 - ALPHA / 2, ALPHA / 2], len(x), mechanism.other + mechanism.kept)
    assert edge[0] <= same <= edge[1]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("codewords", 12, "power of two"),
        ("coordinates", 24, "power of two"),
        ("coordinates", 128, "has 64"),
        ("codebooks", 1000, "power of two"),
    ],
)
def test_numbers_that_do_not_fit_are_refused_by_name(field, value, words):
    with pytest.raises((InputError, ValueError), match=words) as refused:
        codebook(**{field: value})
    assert field in str(refused.value)
