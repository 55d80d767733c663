"""The enumerative code of signed histograms: exact, and as short as it can be."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raydp_sim.mechanisms.wires.mixed_reports import MixedReports
from raydp_sim.mechanisms.wires.signed_histogram import SignedHistogram


def thrown(dimension: int, reports: int, seed: int, chance: float = 1.0) -> np.ndarray:
    """Histograms of balls with fair signs; with chance < 1 some balls are missing."""
    random = np.random.default_rng(seed)
    rows = [
        np.bincount(
            random.integers(0, dimension, dimension),
            random.choice([-1, 1], dimension) * (random.random(dimension) < chance),
            dimension,
        )
        for _ in range(reports)
    ]
    dtype = SignedHistogram(dimension).dtype
    return np.array(rows).reshape(reports, 1, dimension).astype(dtype)


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_all_small_reports_have_numbers_of_their_own(dimension, dropped):
    wire = SignedHistogram(dimension, dropped)
    every = np.array(list(itertools.product(range(-dimension, dimension + 1), repeat=dimension)))
    missing = dimension - np.abs(every).sum(axis=1)
    # Balls cancel in pairs, so without missing balls an even number is absent.
    every = every[(missing >= 0) & (dropped | (missing % 2 == 0))]
    payload = every[:, None, :].astype(wire.dtype)
    ranks = wire.ranks(payload)
    assert len(set(ranks)) == len(ranks)
    assert 0 <= min(ranks) and max(ranks) < math.comb(wire.slots, dimension) <= 2**wire.bits
    assert np.array_equal(wire.unpack(wire.encode(payload)), payload)


@pytest.mark.parametrize("dropped", [False, True])
def test_every_number_is_a_report(dropped):
    wire = SignedHistogram(3, dropped)
    ranks = range(math.comb(wire.slots, 3))
    reports = wire.reports(list(ranks))
    assert (np.abs(reports).sum(axis=2) <= 3).all()
    # Without cancelled pairs the number comes back.
    full = np.abs(reports[:, 0]).sum(axis=1) == 3
    assert [rank for rank, kept in zip(ranks, full, strict=True) if kept] == wire.ranks(
        reports[full]
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 140), st.integers(0, 2**31), st.sampled_from([0.0, 0.5, 1.0]))
def test_reports_survive_the_wire(dimension, seed, chance):
    wire = SignedHistogram(dimension, chance < 1.0)
    payload = thrown(dimension, 3, seed, chance)
    packed = wire.encode(payload)
    assert packed.shape == (3, math.ceil(wire.bits / 8))
    back = wire.unpack(packed)
    assert back.dtype == payload.dtype and np.array_equal(back, payload)


def test_extreme_counts_fit_their_type():
    for dimension in (127, 128, 32767, 32768):
        wire = SignedHistogram(dimension)
        info = np.iinfo(wire.dtype)
        assert info.min <= -dimension and dimension <= info.max
    wire = SignedHistogram(128)
    payload = np.zeros((2, 1, 128), wire.dtype)
    payload[0, 0, 5], payload[1, 0, 127] = 128, -128
    assert np.array_equal(wire.unpack(wire.encode(payload)), payload)


def test_a_thousand_coordinates_survive_the_wire():
    wire, payload = SignedHistogram(1000), thrown(1000, 4, 0)
    packed = wire.encode(payload)
    assert packed.shape == (4, 344) and np.array_equal(wire.unpack(packed), payload)
    counts = wire.fold(wire.zero(), np.zeros(4, int), payload[:, 0])
    assert np.array_equal(counts[:-1], payload[:, 0].astype(int).sum(axis=0)) and counts[-1] == 4


def test_bits_by_logarithms_are_those_of_the_number():
    for dimension in [*range(1, 300), 1000, 4096]:
        for dropped in (False, True):
            wire = SignedHistogram(dimension, dropped)
            exact = (math.comb(wire.slots, dimension) - 1).bit_length()
            assert wire.bits == max(1, exact)


@pytest.mark.parametrize(
    ("dimension", "log2", "claimed"),
    [(2, 3.32, 4.89), (8, 18.90, 19.54), (64, 171.7, 156.3), (1000, 2748, 2443)],
)
def test_published_bits_are_too_few_in_high_dimension(dimension, log2, claimed):
    """Girgis et al. 2021 claim d (log2(e) + 1) bits in Lemmas 4 and 5, and in Theorem 6 and
    Corollary 1 print d log2(e) + 1: not even the former suffices from d = 9 on."""
    wire = SignedHistogram(dimension)
    exact = math.log2(math.comb(3 * dimension - 1, dimension))
    assert exact == pytest.approx(log2, rel=1e-3) and wire.bits == math.ceil(exact)
    assert wire.claimed_bits == pytest.approx(claimed, rel=1e-3)
    assert (wire.bits > wire.claimed_bits) == (dimension >= 9)
    # Histograms without signs fit the claim, but from d = 8 on not the other printed form.
    unsigned = math.log2(math.comb(2 * dimension - 1, dimension))
    assert unsigned < wire.claimed_bits
    assert (unsigned > dimension * math.log2(math.e) + 1) == (dimension >= 8)
    assert wire.naive_bits == dimension * (math.ceil(math.log2(dimension)) + 1)


def test_mixed_reports_tell_their_form_by_the_flag_and_not_by_their_length():
    wire = MixedReports(16, SignedHistogram(7), 0.5)
    payload = np.zeros((9, 1, 8), wire.dtype)
    payload[:5, 0, 1:] = thrown(7, 5, 1)[:, 0]
    payload[5:, 0, 0] = [1, 2, 15, 16]
    packed = wire.encode(payload)
    assert packed.shape == (9, math.ceil(wire.bits / 8))
    assert np.array_equal(wire.unpack(packed), payload)
    assert wire.bits == 1 + SignedHistogram(7).bits
    assert wire.expected_bits == 1 + 0.5 * 4 + 0.5 * SignedHistogram(7).bits
    assert MixedReports(16, SignedHistogram(7), 1.0).bits == 5
