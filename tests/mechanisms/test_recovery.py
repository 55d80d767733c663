"""Recovery by a key: least entropies, exact recovery, fresh keys, and why the theorem failed."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import circulant, hadamard

from raydp_sim.errors import InputError
from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.parts.additive_key import AdditiveKey
from raydp_sim.mechanisms.parts.entropy import law_entropy
from raydp_sim.mechanisms.parts.heavy_keys import (
    difference_set,
    fewest_bits,
    key_entropy,
    relaxed_entropy,
    spread_keys,
)
from raydp_sim.mechanisms.sequences import KeyBook, release_sequence, sequence_keys
from raydp_sim.random import Stream

from .support import folded, losses

KINDS = ("ldp-rec", "recoverable-hadamard")
GRID = [(k, e) for k in (2, 3, 4, 7, 10, 50) for e in (0.3, 0.6, 1.0, 2.0, 4.0, 6.0)]


# Point 10: the least entropy of a key, and the gains.


@pytest.mark.parametrize(
    ("k", "epsilon", "heavy", "bits"),
    [
        (10, 0.5, 4, 3.27706),
        (10, 1.0, 3, 3.14539),
        (10, 2.0, 2, 2.63758),
        (10, 3.0, 1, 1.87339),
        (10, 5.0, 1, 0.49736),
        (100, 1.0, 34, 6.46597),
        (100, 2.0, 21, 5.95944),
        (100, 3.0, 11, 5.19058),
        (100, 5.0, 3, 3.15971),
        (1000, 1.0, 339, 9.78790),
        (1000, 3.0, 113, 8.51226),
        (1000, 5.0, 27, 6.47784),
        (1000, 8.0, 2, 2.87827),
    ],
)
def test_published_least_entropies(k, epsilon, heavy, bits):
    assert fewest_bits(k, epsilon) == heavy
    assert key_entropy(k, heavy, epsilon) == pytest.approx(bits, abs=5e-6)
    mechanism = make("ldp-rec", epsilon_local=epsilon, categories=k)
    assert mechanism.key_entropy == pytest.approx(bits, abs=5e-6)


@pytest.mark.parametrize(("k", "gain"), [(2, 0.9420), (4, 0.9141), (10, 0.8503)])
def test_published_gains_over_a_uniform_key(k, gain):
    bits = key_entropy(k, fewest_bits(k, 5.0), 5.0)
    assert 1 - bits / math.log2(k) == pytest.approx(gain, abs=5e-5)


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 300), st.floats(1e-6, 20.0))
def test_no_number_of_heavy_keys_takes_less(k, epsilon):
    best = key_entropy(k, fewest_bits(k, epsilon), epsilon)
    assert all(best <= key_entropy(k, s, epsilon) + 1e-9 for s in range(1, k))
    assert best <= math.log2(k) + 1e-12
    assert relaxed_entropy(k, epsilon) <= best + 1e-9


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_no_law_of_a_key_takes_less(epsilon):
    """Vertices of all laws on 5 keys whose ratios are at most e^epsilon."""
    k = 5
    for s in range(k + 1):
        law = np.full((1, k), 1.0)
        law[0, :s] = math.exp(epsilon)
        bits = law_entropy(law / law.sum())[0]
        assert bits >= key_entropy(k, fewest_bits(k, epsilon), epsilon) - 1e-12
        if 0 < s < k:
            assert bits == pytest.approx(key_entropy(k, s, epsilon))


# Exact laws, exact recovery.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("k", "epsilon"), GRID)
def test_recoverable_private_and_unbiased_exactly(kind, k, epsilon):
    mechanism = make(kind, epsilon_local=epsilon, categories=k)
    law = mechanism.laws(np.arange(float(k))[:, None])[0]
    assert law.sum(axis=1) == pytest.approx(np.ones(k))
    # What recovery takes: no output is likelier than certain, over all categories.
    assert law.sum(axis=0).max() <= 1.0 + 1e-12
    assert epsilon - 1e-9 <= losses([law]).max() <= mechanism.event().epsilon <= epsilon
    share = np.random.default_rng(k).dirichlet(np.ones(k))
    units = np.eye(mechanism.key.size, dtype=np.int64)
    decoded = np.array([mechanism.key.decode(one[None]) for one in units])
    assert share @ law @ decoded == pytest.approx(share, abs=1e-9)
    # By the law itself, not by convolutions: the variance of every estimate at these shares.
    square = share @ law @ decoded**2
    assert mechanism.variance(share, 10) == pytest.approx((square - share) / 10, rel=1e-6)
    bits = law_entropy(mechanism.key.law[None])[0]
    assert mechanism.key_entropy == pytest.approx(bits)
    least = key_entropy(k, fewest_bits(k, epsilon), epsilon)
    assert least - 1e-9 <= bits <= least + 1.9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("k", "epsilon"), [(2, 1.0), (10, 1.0), (37, 2.0), (1000, 1.0), (100, 8.0)]
)
def test_the_holder_of_the_keys_has_every_record_exactly(kind, k, epsilon):
    n = 20_000
    mechanism = make(kind, epsilon_local=epsilon, categories=k)
    values = np.random.default_rng(1).integers(0, k, (n, 1))
    payload, keys = mechanism.released(values.astype(float), Stream(2).clients(np.arange(n)))
    assert np.array_equal(mechanism.recovered(payload, keys[:, 0]), values[:, 0])
    seen = mechanism.opened(payload, keys[:, 0], 0)
    assert mechanism.view(0).decode(folded(mechanism, seen)) == pytest.approx(
        np.bincount(values[:, 0], minlength=k) / n, abs=0
    )
    # And with any other keys nearly none but by chance.
    wrong = mechanism.recovered(payload, np.roll(keys[:, 0], 1))
    assert (wrong != values[:, 0]).any()


@pytest.mark.parametrize(("k", "epsilon"), [(10, 1.0), (37, 2.0), (1000, 0.7)])
def test_the_estimate_of_the_public_is_that_of_the_design(k, epsilon):
    """8.2: t/((s - l)(e^epsilon - 1)) (P(C_x) - l/s P(block) - (s - l N/s)/t)."""
    mechanism = make("recoverable-hadamard", epsilon_local=epsilon, categories=k)
    blocks, n = mechanism.key.blocks, mechanism.key.period
    d = mechanism.key.heavy
    s = len(d)
    twice = (s - 1) // 2 if n > 3 else 0
    p = math.exp(epsilon)
    t = s * p + blocks * n - s
    counts = np.random.default_rng(2).integers(0, 9, (1, blocks * n))
    seen = counts[0].reshape(blocks, n) / counts.sum()
    for x in range(k):
        own = seen[x % blocks, (x // blocks + d) % n].sum()
        block = seen[x % blocks].sum()
        found = t / ((s - twice) * (p - 1))
        found *= own - twice / s * block - (s - twice * n / s) / t
        assert mechanism.key.decode(counts)[x] == pytest.approx(found, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("degree", range(2, 22))
def test_m_sequences_are_difference_sets(degree):
    n, d = (1 << degree) - 1, difference_set(degree)
    assert len(d) == (1 << (degree - 1)) - 1
    here = np.zeros(n)
    here[d] = 1.0
    power = np.abs(np.fft.rfft(here)[1:]) ** 2
    # s - l at every frequency: each difference but 0 comes l = 2^(m-2) - 1 times.
    assert np.allclose(power, 2.0 ** (degree - 2), rtol=1e-6)


@pytest.mark.parametrize(("k", "epsilon", "total"), [(7, 0.6, 1.1299), (50, 2.0, 1.1559)])
def test_hadamard_response_itself_cannot_be_recovered(k, epsilon, total):
    """Theorem 7.5.2 as printed: the sum over categories exceeds 1, which recovery forbids."""
    response = make("hadamard-response", epsilon_local=epsilon, categories=k)
    law = response.laws(np.arange(float(k))[:, None])[0]
    assert law.sum(axis=0).max() == pytest.approx(total, abs=5e-5)
    # It is the row of ones: without it all is well.
    worst = int(np.argmax(law.sum(axis=0)))
    assert (hadamard(response.block)[worst % response.block] == 1).all()


def test_contiguous_heavy_keys_may_leave_the_public_nothing():
    law = np.ones(10)
    law[5:] = math.e
    assert np.linalg.matrix_rank(circulant(law / law.sum())) == 6
    key = AdditiveKey(10, 1, 10, spread_keys(10, 5), 1.0)
    assert np.linalg.matrix_rank(circulant(key.law)) == 10
    assert spread_keys(4, 2) is None
    assert len(make("ldp-rec", epsilon_local=0.5, categories=4).key.heavy) == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 400), st.floats(1e-5, 40.0), st.sampled_from(KINDS))
def test_what_is_drawn_has_exactly_its_law_at_the_ends_of_every_interval(k, epsilon, kind):
    key = make(kind, epsilon_local=epsilon, categories=k).key
    each, more, full = key.units
    s = len(key.heavy)
    assert each * key.size + full * more + (s - full) * (more - 1) == 1 << 53
    least, most = min(key.law), max(key.law)
    with mpmath.workdps(50):
        exact = mpmath.log(mpmath.mpf(float(most)) / mpmath.mpf(float(least)))
        assert exact <= make(kind, epsilon_local=epsilon, categories=k).event().epsilon <= epsilon
    starts = [each * j for j in range(key.size)]
    owners = list(range(key.size))
    place = each * key.size
    for j, heavy in enumerate(key.heavy.tolist()):
        length = more if j < full else more - 1
        if length:
            starts.append(place)
            owners.append(heavy)
        place += length
    ends = [*starts[1:], 1 << 53]
    for edge in (starts, [end - 1 for end in ends]):
        uniform = np.array([math.ldexp(step, -53) for step in edge])
        assert key.draw(uniform).tolist() == owners


@pytest.mark.parametrize("kind", KINDS)
def test_a_loss_at_which_nothing_is_told_is_refused(kind):
    with pytest.raises(ValueError, match="at least 1e-06"):
        make(kind, epsilon_local=1e-7, categories=10)


# Sequences, and point 11: keys are never used again.


@pytest.mark.parametrize(
    ("k", "samples", "bits"), [(2, 2, 1.679883076), (2, 3, 2.519824614), (3, 2, 2.814201245)]
)
def test_published_entropies_of_sequences(k, samples, bits):
    mechanism = make("ldp-rec", epsilon_local=1.0, categories=k)
    assert samples * mechanism.key_entropy == pytest.approx(bits, abs=5e-10)


def sequence_law(key_law, k, samples, reuse):
    """P(y_1..y_T | x_1..x_T) for additive keys, fresh for every sample or one for all."""
    sequences = list(itertools.product(range(k), repeat=samples))
    law = np.zeros((len(sequences), len(sequences)))
    for i, x in enumerate(sequences):
        for j, y in enumerate(sequences):
            keys = [(b - a) % k for a, b in zip(x, y, strict=True)]
            if reuse:
                law[i, j] = key_law[keys[0]] if len(set(keys)) == 1 else 0.0
            else:
                law[i, j] = math.prod(key_law[key] for key in keys)
    return sequences, law


@pytest.mark.parametrize(("k", "samples"), [(2, 2), (2, 3), (3, 2)])
def test_fresh_keys_protect_each_sample_and_one_key_for_all_protects_none(k, samples):
    mechanism = make("ldp-rec", epsilon_local=1.0, categories=k)
    sequences, law = sequence_law(mechanism.key.law, k, samples, reuse=False)
    changed = np.array(
        [[sum(a != b for a, b in zip(x, y, strict=True)) for x in sequences] for y in sequences]
    )
    found = losses([law])
    for count in range(1, samples + 1):
        assert found[changed == count].max() == pytest.approx(count * 1.0, rel=1e-9)
    _, reused = sequence_law(mechanism.key.law, k, samples, reuse=True)
    assert math.isinf(losses([reused])[changed == 1].max())


@pytest.mark.parametrize(
    "mechanism",
    [
        make("ldp-rec", epsilon_local=1.0, categories=10),
        make("recoverable-hadamard", epsilon_local=1.0, categories=10),
        make("hadamard-cascade", epsilon_local=0.5, finer=(2.0,), categories=10),
    ],
    ids=lambda mechanism: mechanism.kind,
)
def test_samples_of_a_client_have_keys_of_their_own(mechanism):
    n, samples = 500, 4
    values = np.random.default_rng(3).integers(0, 10, (n, samples)).astype(float)
    stream = Stream(4).at("release", 1).clients(np.arange(n))
    payload, keys = release_sequence(mechanism, values, stream)
    assert payload.shape == (n, samples)
    assert keys.shape == (n, samples, 2)
    assert np.array_equal(sequence_keys(mechanism, samples, stream), keys)
    for one, other in itertools.combinations(range(samples), 2):
        assert not np.array_equal(keys[:, one, 0], keys[:, other, 0])
    if mechanism.kind != "hadamard-cascade":
        for t in range(samples):
            assert np.array_equal(mechanism.recovered(payload[:, t], keys[:, t, 0]), values[:, t])


def test_the_book_refuses_a_key_that_was_used_and_counts_bits():
    mechanism = make("ldp-rec", epsilon_local=1.0, categories=10)
    book = KeyBook()
    book.use("release 1", np.arange(100), mechanism.key_entropy)
    book.use("release 2", np.arange(100), mechanism.key_entropy)
    book.deliver(0, 200, mechanism.key_bits)
    assert book.drawn == pytest.approx(200 * mechanism.key_entropy)
    assert book.delivered == {0: 800}
    with pytest.raises(InputError, match="client 99's key at release 1 was used before"):
        book.use("release 1", np.arange(99, 120), mechanism.key_entropy)
    with pytest.raises(InputError, match="client 7's key at release 3 was used before"):
        book.use("release 3", np.array([7, 7]), mechanism.key_entropy)
    # What was refused left nothing behind.
    book.use("release 1", np.arange(100, 120), mechanism.key_entropy)
    assert book.drawn == pytest.approx(220 * mechanism.key_entropy)
