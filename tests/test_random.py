"""Counter-based randomness: published vectors, independence of the call, and distributions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from raydp_sim.kernels.plain.threefry import threefry2x32
from raydp_sim.random import ClientStream, Stream

ALPHA = 1e-8
# A correlation of n independent pairs is nearly N(0, 1/n): 6 of these are passed with chance 2e-9.
SIGMAS = 6.0


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_published_vectors_of_threefry(counter, key, expected):
    x0, x1 = (np.full(3, word, np.uint32) for word in counter)
    threefry2x32(x0, x1, key, np.empty(3, np.uint32))
    assert x0.tolist() == [expected[0]] * 3 and x1.tolist() == [expected[1]] * 3


def words(ids, draws=3, stream=None):
    stream = stream or Stream(7).at("release", 3)
    return np.concatenate(stream.clients(np.asarray(ids)).words("flip", draws), axis=1)


@pytest.mark.parametrize("draws", [1, 5, 40_000])
def test_draws_do_not_depend_on_who_shares_the_call(draws):
    ids = np.random.default_rng(0).choice(2**32, 40 if draws < 100 else 3, replace=False)
    stream = Stream(7).at("release", 3).clients(ids)
    whole = stream.uniform("flip", draws)
    order = np.random.default_rng(1).permutation(len(ids))
    assert np.array_equal(stream.take(order).uniform("flip", draws), whole[order])
    for row in range(len(ids)):
        alone = stream.take(slice(row, row + 1)).uniform("flip", draws)
        assert np.array_equal(alone[0], whole[row])


@pytest.mark.parametrize("few", [1, 2, 1000, 32_768, 33_000])
def test_more_draws_begin_with_the_fewer(few):
    stream = Stream(1).at("x").clients(np.array([3, 2**32 - 1]))
    assert np.array_equal(stream.uniform("u", 70_000)[:, :few], stream.uniform("u", few))


def test_many_clients_cross_the_block_without_a_trace():
    ids = np.arange(100_000)
    whole = words(ids, 1)
    assert np.array_equal(whole[32_760:32_780], words(ids[32_760:32_780], 1))
    assert len(np.unique(whole[:, 0].astype(np.uint64) << np.uint64(32) | whole[:, 1])) == 100_000


def test_wide_draws_are_those_of_the_block_cipher():
    stream = Stream(1).at("x")
    high, low = stream.clients(np.array([9])).words("u", 40_000)
    x0, x1 = np.full(1, 9, np.uint32), np.full(1, 39_999, np.uint32)
    threefry2x32(x0, x1, stream.at("u").key(), np.empty(1, np.uint32))
    assert (high[0, -1], low[0, -1]) == (x0[0], x1[0])


def test_pairs_are_the_same_cipher():
    stream = Stream(1).at("x")
    ids = np.arange(40_000)
    x0, x1 = stream.pairs(ids, ids % 7)
    high, low = Stream(1).clients(ids[:7]).words("x", 7)
    assert np.array_equal(x0[:7], high[np.arange(7), np.arange(7)])
    assert np.array_equal(x1[:7], low[np.arange(7), np.arange(7)])


def test_uniforms_use_53_bits_of_the_words():
    stream = Stream(5).clients(np.arange(1000))
    high, low = stream.words("u", 2)
    bits = (high.astype(np.uint64) << np.uint64(21)) | (low >> np.uint32(11)).astype(np.uint64)
    assert np.array_equal(stream.uniform("u", 2), bits * 2.0**-53)


def test_a_purpose_has_the_key_of_its_place_however_often_it_is_asked_for():
    place = Stream(7).at("randomize", 3)
    for purpose in ("flip", "index", "flip"):
        assert place.clients(np.arange(2)).key(purpose) == place.at(purpose).key()
        assert place.key_below(purpose) == Stream(7).at("randomize", 3, purpose).key()
    assert place == Stream(7).at("randomize", 3)


def test_every_place_has_its_own_key():
    places = [
        Stream(1),
        Stream(2),
        Stream(1).at("a", 1),
        Stream(1).at("a", "1"),
        Stream(1).at("a1"),
        Stream(1).at("a", "b"),
        Stream(1).at("b", "a"),
        Stream(1).at("ab"),
        Stream(1).at("a", 1, 1),
        Stream(1).at("a", 11),
        Stream(11).at("a"),
        Stream(1).at("a', 'b"),
        Stream(1).at("a", ""),
        Stream(1).at("a"),
        Stream(-1).at("a"),
    ]
    assert len({place.key() for place in places}) == len(places)
    assert len({place.generator().integers(2**63) for place in places}) == len(places)
    assert Stream(1).at("a").at("b").key() == Stream(1).at("a", "b").key()


@given(st.lists(st.one_of(st.text(max_size=3), st.integers(-3, 3)), max_size=4))
def test_a_longer_path_is_another_place(path):
    assert Stream(0).at(*path).key() != Stream(0).at(*path, "x").key()


@pytest.mark.parametrize("kind", ["uniform", "normal", "laplace"])
def test_distributions(kind):
    """Kolmogorov-Smirnov on 200,000 draws, over clients and over one client's draws: 1e-8 each."""
    law = {"uniform": stats.uniform, "normal": stats.norm, "laplace": stats.laplace}[kind]
    for ids, draws in ((np.arange(200_000), 1), (np.array([5]), 200_000)):
        drawn = getattr(Stream(3).at(kind).clients(ids), kind)("draw", draws).ravel()
        assert stats.kstest(drawn, law.cdf).pvalue > ALPHA
        assert np.isfinite(drawn).all()


@pytest.mark.parametrize("high", [1, 2, 3, 7, 1000])
def test_integers_are_uniform(high):
    """Chi-square on 200,000 draws: 1e-8."""
    drawn = Stream(4).clients(np.arange(100_000)).integers("index", high, 2)
    assert drawn.min() >= 0 and drawn.max() < high
    seen = np.bincount(drawn.ravel(), minlength=high)
    if high > 1:
        assert stats.chisquare(seen).pvalue > ALPHA


@pytest.mark.parametrize(
    "kind",
    [
        "laplace",
        "normal",
    ],
)
def test_the_ends_of_the_unit_interval_are_finite(kind, monkeypatch):
    ends = np.array([[0.0, 0.5, 1.0 - 2.0**-53]])
    monkeypatch.setattr(ClientStream, "uniform", lambda *_: ends.copy())
    drawn = getattr(Stream(0).clients(np.array([0])), kind)("n", 3)
    assert np.isfinite(drawn).all() and drawn[0, 0] < drawn[0, 1] < drawn[0, 2]
    assert abs(drawn[0, 1]) < 1e-15


def correlation(x, y):
    return float(np.corrcoef(x.ravel(), y.ravel())[0, 1])


@pytest.mark.parametrize("what", ["clients", "draws", "releases", "purposes", "seeds", "squares"])
def test_neighbours_are_uncorrelated(what):
    """100,000 pairs each; a correlation beyond 6 / sqrt(n) has chance 2e-9."""
    n = 100_000
    ids = np.arange(n + 1)
    base = Stream(8).at("release", 0).clients(ids).uniform("a", 2)
    pairs = {
        "clients": (base[:-1, 0], base[1:, 0]),
        "draws": (base[:, 0], base[:, 1]),
        "releases": (base, Stream(8).at("release", 1).clients(ids).uniform("a", 2)),
        "purposes": (base, Stream(8).at("release", 0).clients(ids).uniform("b", 2)),
        "seeds": (base, Stream(9).at("release", 0).clients(ids).uniform("a", 2)),
        "squares": ((base[:-1, 0] - 0.5) ** 2, (base[1:, 0] - 0.5) ** 2),
    }
    x, y = pairs[what]
    assert abs(correlation(x, y)) < SIGMAS / math.sqrt(x.size)


def test_every_bit_of_a_word_is_fair_and_the_bits_are_uncorrelated():
    """64 means and 2,016 pairs of bits of 100,000 clients at 6.5 sigma: below 2e-7 in all."""
    high, low = Stream(2).clients(np.arange(100_000)).words("w")
    octets = np.concatenate([high, low], axis=1).astype(">u4").view(np.uint8)
    bits = np.unpackbits(octets, axis=1).astype(float) - 0.5
    moments = bits.T @ bits / (len(bits) * 0.25)
    limit = 6.5 / math.sqrt(len(bits))
    assert (np.abs(bits.mean(axis=0)) * 2 < limit).all()
    assert (np.abs(moments[np.triu_indices(64, 1)]) < limit).all()


def test_wide_normals_are_a_client_s_own_and_normal():
    """Kolmogorov-Smirnov at 1e-8, and no draw depends on who shares the call."""
    stream = Stream(3).at("noise").clients(np.arange(200))
    wide = stream.wide_normal("x", 500)
    assert stats.kstest(wide.ravel(), "norm").pvalue > 1e-8
    assert np.array_equal(stream.take(slice(7, 9)).wide_normal("x", 500), wide[7:9])
    assert not np.array_equal(stream.wide_normal("y", 500)[0], wide[0])
    correlation = np.corrcoef(wide[:-1].ravel(), wide[1:].ravel())[0, 1]
    assert abs(correlation) < 5.73 / np.sqrt(wide[1:].size)
