"""Categories: published numbers, exact enumeration of what is drawn, and the corrected RAPPOR."""

import itertools
import math
from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.linalg import hadamard
from scipy.special import expit

from raydp_sim.kernels import plain as in_numpy
from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.parts.categories import coin, step_up
from raydp_sim.mechanisms.parts.eight_coins import EightCoins
from raydp_sim.mechanisms.wires.bitmaps import Bitmaps
from raydp_sim.privacy.curves.variation import blanket_of, hadamard_blocks
from raydp_sim.random import Stream

from .support import ALPHA, SERVER, exact_moments, folded, inputs, losses, reports

ONE_SYMBOL = ("krr", "hadamard-response", "hadamard-bit")
ALL = (*ONE_SYMBOL, "rappor")


def entropy(law):
    """Bits of the first row of probabilities."""
    return float(-(law[0] * np.log2(law[0])).sum())


# Published numbers.


@pytest.mark.parametrize(
    ("categories", "krr", "response", "rappor", "printed_rappor"),
    [(100, 6.62988, 6.82977, 95.629, 83.994), (1000, 9.96435, 9.82977, 956.29, 839.94)],
)
def test_published_randomness_per_client(categories, krr, response, rappor, printed_rappor):
    zero = np.zeros((1, 1))
    made = {kind: make(kind, epsilon_local=1.0, categories=categories) for kind in ALL}
    assert entropy(made["krr"].laws(zero)[0]) == pytest.approx(krr, abs=5e-6)
    assert entropy(made["hadamard-response"].laws(zero)[0]) == pytest.approx(response, abs=5e-6)
    # The column is public; only the sign is the client's own randomness.
    bit = entropy(made["hadamard-bit"].laws(zero)[0]) - math.log2(made["hadamard-bit"].columns)
    assert bit == pytest.approx(0.83994, abs=5e-6)
    flip = made["rappor"].flip
    assert categories * entropy(np.array([[flip, 1 - flip]])) == pytest.approx(rappor, rel=5e-6)
    flip = expit(-1.0)
    printed = categories * entropy(np.array([[flip, 1 - flip]]))
    assert printed == pytest.approx(printed_rappor, rel=1e-5)


@pytest.mark.parametrize("epsilon", [0.1, 0.6, 1.0, 2.0, 5.0, 9.0])
@pytest.mark.parametrize("categories", [2, 7, 10, 100])
def test_hadamard_response_is_that_of_its_definition(categories, epsilon):
    p = math.exp(epsilon)
    blocks = 2 ** (math.ceil(math.log2(min(p, 2 * categories))) - 1)
    block = 2 ** math.ceil(math.log2(categories / blocks + 1))
    outputs = blocks * block
    law = np.ones((categories, outputs))
    own, whole = (np.zeros((categories, outputs)) for _ in range(2))
    for x in range(categories):
        start = (x % blocks) * block
        whole[x, start : start + block] = 1.0
        own[x, start : start + block] = hadamard(block)[:, x // blocks + 1] > 0
    law[own == 1.0] = p
    law /= block / 2 * p + outputs - block / 2
    mechanism = make("hadamard-response", epsilon_local=epsilon, categories=categories)
    assert (mechanism.blocks, mechanism.block) == (blocks, block)
    assert mechanism.bits == math.log2(outputs)
    assert mechanism.laws(inputs(mechanism.domain))[0] == pytest.approx(law, rel=1e-11)
    # Its published estimator, on counts of any kind.
    counts = np.random.default_rng(1).integers(0, 50, (1, outputs))
    seen = counts[0] / counts.sum()
    published = 2 * (2 * blocks - 1 + p) / (p - 1) * (own @ seen - whole @ seen / 2)
    assert mechanism.decode(counts, SERVER) == pytest.approx(published, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("categories", "epsilon"), [(2, 1.0), (3, 0.2), (10, 1.0), (50, 4.0)])
def test_the_other_estimators_and_errors_are_those_of_their_definitions(categories, epsilon):
    p, k = math.exp(epsilon), categories
    made = {kind: make(kind, epsilon_local=epsilon, categories=k) for kind in ALL}
    counts = np.random.default_rng(1).integers(0, 50, (1, k))
    published = (counts[0] / counts.sum() * (p + k - 1) - 1) / (p - 1)
    assert made["krr"].decode(counts, SERVER) == pytest.approx(published)
    assert made["krr"].worst_mse() == pytest.approx((k - 1) * (2 * p + k - 2) / (p - 1) ** 2)
    c = (p + 1) / (p - 1)
    assert made["hadamard-bit"].worst_mse() == pytest.approx(c * c * k - 1)
    f = 1 / (math.exp(epsilon / 2) + 1)
    assert made["rappor"].worst_mse() == pytest.approx(k * f * (1 - f) / (1 - 2 * f) ** 2)
    counts = np.append(counts[0], 70)
    published = (counts[:-1] / 70 - f) / (1 - 2 * f)
    assert made["rappor"].decode(counts, SERVER) == pytest.approx(published)


def test_published_largest_error_of_one_hadamard_bit():
    """40 runs of 20,000 clients. Published: 0.0416 on average, bounded by 0.0498. One run deviates
    by 0.006, so that their mean misses 0.0416 +- 0.006 with probability below 1e-8."""
    k, n = 100, 20_000
    mechanism = make("hadamard-bit", epsilon_local=1.0, categories=k)
    random = np.random.default_rng(2)
    share = np.full(k, 0.5 / (k - 2))
    share[[0, 7]] = 0.3, 0.2
    worst = []
    for run in range(40):
        held = random.choice(k, n, p=share)[:, None].astype(float)
        estimate = mechanism.decode(folded(mechanism, reports(mechanism, held, seed=run)), SERVER)
        worst.append(np.abs(estimate - np.bincount(held[:, 0].astype(int), minlength=k) / n).max())
    assert np.mean(worst) == pytest.approx(0.0416, abs=0.006)
    c = (math.e + 1) / (math.e - 1)
    assert np.mean(worst) < c * math.sqrt(2 * math.log(2 * k) / n) < 0.0499


# The loss of RAPPOR: what is printed loses twice as much.


def bitmap_laws(flip, categories):
    """The probability of each of the 2^k reports, one row per category."""
    every = np.array(list(itertools.product([0, 1], repeat=categories)))
    return np.array(
        [np.prod(np.where(every == one, 1 - flip, flip), axis=1) for one in np.eye(categories)]
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("categories", [2, 3, 6])
def test_rappor_loses_epsilon_and_the_printed_flips_twice_that(categories, epsilon):
    mechanism = make("rappor", epsilon_local=epsilon, categories=categories)
    ours = losses([bitmap_laws(mechanism.flip, categories)]).max()
    assert epsilon - 1e-9 <= ours <= mechanism.event().epsilon <= epsilon
    printed = losses([bitmap_laws(1 / (math.exp(epsilon) + 1), categories)]).max()
    assert printed == pytest.approx(2 * epsilon)


def test_rappor_decodes_to_the_value_with_the_stated_error_by_enumeration():
    mechanism = make("rappor", epsilon_local=1.5, categories=5)
    every = np.array(list(itertools.product([0, 1], repeat=5)))
    decoded = np.array([mechanism.decode(np.append(bits, 1), SERVER) for bits in every])
    law = bitmap_laws(mechanism.flip, 5)
    mean = law @ decoded
    assert mean == pytest.approx(np.eye(5), abs=1e-12)
    square = law @ (decoded**2).sum(axis=1) - (mean**2).sum(axis=1)
    assert square == pytest.approx(mechanism.mse(inputs(mechanism.domain)), rel=1e-12)


def test_reports_of_rappor_follow_their_law():
    """Chi-square over all 2^6 reports for each category: 1e-8 for each."""
    mechanism, clients = make("rappor", epsilon_local=2.0, categories=6), 40_000
    for category, law in enumerate(bitmap_laws(mechanism.flip, 6)):
        values = np.full((clients, 1), float(category))
        payload = reports(mechanism, values, first=category * clients)
        assert not (payload & 0b11).any(), "spare bits stay 0"
        seen = np.bincount(payload[:, 0, 0] >> 2, minlength=64)
        statistic = ((seen - clients * law) ** 2 / (clients * law)).sum()
        assert (clients * law).min() > 5 and stats.chi2.sf(statistic, 63) > ALPHA


def test_the_bits_of_many_reports_are_counted_exactly():
    wire = Bitmaps(21)
    payload = np.random.default_rng(3).integers(0, 256, (20_000, 3), np.uint8)
    payload[:9000] = 0xFF  # sums of bytes would overflow here
    counts = wire.fold(wire.zero(), np.zeros(len(payload)), payload)
    expected = np.unpackbits(payload, axis=1)[:, :21].sum(axis=0, dtype=np.int64)
    assert np.array_equal(counts, np.append(expected, 20_000))


# Draws of exact probability.


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**53), st.integers(-3, 3))
@example(2**64 - 1, 2**53, 0)
@example(0, 0, 0)
def test_a_coin_is_the_comparison_of_53_bits(word, steps, near):
    for each in (word, min(max((steps + near) << 11, 0), 2**64 - 1)):
        high, low = (np.array([half], np.uint32) for half in divmod(each, 1 << 32))
        assert coin(high, low, steps / 2**53)[0] == (each >> 11 < steps)


@given(st.integers(1, 2**53), st.integers(0, 2**53), st.integers(-1, 1))
def test_intervals_of_whole_steps_are_told_apart_without_rounding(width, number, near):
    """What 'krr' relies on: the quotient of doubles has the floor of the exact one."""
    edge = number // width * width + near
    for each in (number, min(max(edge, 0), 2**53 - 1)):
        assert int((each * 2.0**-53) / (width * 2.0**-53)) == each // width


class EveryWord:
    """Stands in for a stream: deals all values of a word's lowest 11 bits, with one upper half."""

    def __init__(self, high):
        self.ids = np.arange(2048)
        self.high = high

    def take(self, rows):
        return self

    def words(self, purpose):
        low = np.arange(2048, dtype=np.uint32)[:, None]
        return np.full_like(low, self.high), low


@pytest.mark.parametrize("kind", ["hadamard-response", "hadamard-bit"])
@pytest.mark.parametrize(("categories", "epsilon"), [(2, 1.0), (7, 0.3), (20, 2.0), (6, 5.0)])
def test_the_sampler_has_exactly_its_law(kind, categories, epsilon):
    """Every outcome of the spare bits, with the coin on either side."""
    mechanism = make(kind, epsilon_local=epsilon, categories=categories)
    # What the coin shows when the upper bits are all 0, and how likely that is.
    heads = mechanism._kept if kind == "hadamard-response" else 1.0 - mechanism.sign.down
    for category, law in enumerate(mechanism.laws(inputs(mechanism.domain))[0]):
        values = np.full((2048, 1), float(category))
        drawn = [
            np.bincount(
                mechanism.messages(values, EveryWord(high)).payload[:, 0], minlength=len(law)
            )
            for high in (0, 2**32 - 1)
        ]
        exact = (heads * drawn[0] + (1.0 - heads) * drawn[1]) / 2048
        assert exact == pytest.approx(law, rel=1e-12)


@pytest.mark.parametrize("kind", ["hadamard-response", "hadamard-bit"])
def test_more_outputs_than_spare_bits_take_a_second_draw(kind):
    """Chi-square of reports grouped by likelihood and by part of the alphabet: 1e-8 each."""
    mechanism, clients = make(kind, epsilon_local=2.0, categories=3000), 200_000
    value = np.array([[2741.0]])
    law = mechanism.laws(value)[0][0]
    assert len(law) > 2048
    symbols = reports(mechanism, np.tile(value, (clients, 1)))[:, 0].astype(int)
    group = (
        16 * (law > law.min() * 1.5)
        + np.arange(len(law)) % 4 * 4
        + np.arange(len(law)) * 4 // len(law)
    )
    expected = np.bincount(group, weights=law) * clients
    seen = np.bincount(group[symbols], minlength=len(expected))
    kept = expected > 0
    assert expected[kept].min() > 20 and not seen[~kept].any()
    statistic = ((seen - expected)[kept] ** 2 / expected[kept]).sum()
    assert stats.chi2.sf(statistic, kept.sum() - 1) > ALPHA


# Eight coins at a time.


def test_the_table_of_eight_coins_agrees_with_their_distribution():
    coins = EightCoins(int(0.37 * 2**64))
    assert len(coins.ends) == 255 and coins.ends[-1] == 2**512 - coins.ones**8
    decided = coins._table != 256
    assert 1 <= (~decided).sum() <= 255
    for cell in np.flatnonzero(decided)[::97].tolist():
        first, last = cell << 496, ((cell + 1) << 496) - 1
        byte = coins._table[cell]
        assert bisect_right(coins.ends, first) == byte == bisect_right(coins.ends, last)
    for end in coins.ends:
        assert coins._table[end >> 496] == 256


@pytest.mark.parametrize("probability", [2.0**-64, 0.02, 0.3, 0.5])
def test_eight_coins_are_independent_and_of_their_probability(probability):
    """Chi-square over the 256 bytes of 300,000: 1e-8."""
    coins = EightCoins(int(math.ldexp(probability, 64)))
    thrown = coins.throw("test", Stream(3).clients(np.arange(60_000)), 5)
    law = np.array(
        [
            probability ** b.bit_count() * (1 - probability) ** (8 - b.bit_count())
            for b in range(256)
        ]
    )
    expected, seen = law * thrown.size, np.bincount(thrown.ravel(), minlength=256)
    rare = expected < 20
    expected = np.append(expected[~rare], expected[rare].sum())
    seen = np.append(seen[~rare], seen[rare].sum())
    kept = expected >= 20
    statistic = ((seen - expected)[kept] ** 2 / expected[kept]).sum()
    assert stats.chi2.sf(statistic, max(1, kept.sum() - 1)) > ALPHA
    if probability == 2.0**-64:
        assert not thrown.any()


def test_a_number_equal_to_an_end_so_far_is_settled_by_the_bits_that_follow(monkeypatch):
    """Moves one end so that a number really drawn ties with it, which is otherwise never seen."""
    coins, stream = EightCoins(int(0.37 * 2**64)), Stream(9).clients(np.arange(3000))
    known = []
    found = np.searchsorted

    def watched(ends, number, side):
        if len(number) < 1000:
            known.extend(number.tolist())
        return found(ends, number, side=side)

    monkeypatch.setattr(np, "searchsorted", watched)
    more = stream.stream.at("test", "more").key()
    in_numpy.coins(stream.key("test"), more, stream.ids, 8, coins.tables)
    plain = coins.throw("test", stream, 8)
    assert 20 < len(known) < 1000
    outcomes = set()
    for number in known[:30]:
        byte = bisect_right(coins.ends, number << 448)
        if byte == 0 or (coins.ends[byte - 1] >> 496) != number >> 48:
            continue
        for lower in (0, 2**448 - 1, 1 << 447):
            moved = EightCoins(coins.ones)
            ends = coins.ends.copy()
            ends[byte - 1] = number << 448 | lower
            moved.__dict__["ends"] = sorted(ends)
            (changed,) = {*(moved.throw("test", stream, 8) - plain).ravel().tolist()} - {0} or {0}
            outcomes.add((lower, changed))
    # With the end at its lowest no number is below it, at its highest every one is.
    assert {change for lower, change in outcomes if lower == 0} == {0}
    assert {change for lower, change in outcomes if lower == 2**448 - 1} == {255}
    assert {change for lower, change in outcomes if lower == 1 << 447} == {0, 255}


# What is stated of the guarantee.


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(ONE_SYMBOL), st.integers(2, 40), st.floats(0.01, 9.0))
@example("hadamard-response", 2, 2 * math.log(2.0))
@example("hadamard-response", 16, 3 * math.log(2.0))
@example("hadamard-bit", 2, 0.01)
def test_every_size_is_unbiased_and_loses_what_is_stated(kind, categories, epsilon):
    mechanism = make(kind, epsilon_local=epsilon, categories=categories)
    values = inputs(mechanism.domain)
    mean, variance = exact_moments(mechanism, values)
    assert mean == pytest.approx(np.eye(categories), abs=1e-9)
    assert variance == pytest.approx(mechanism.mse(values), rel=1e-9)
    assert mechanism.mse(values).max() == pytest.approx(mechanism.worst_mse(), rel=1e-12)
    loss = losses(mechanism.laws(values)).max()
    stated = mechanism.event().epsilon
    # Logarithms of probabilities round by up to 2^-50.
    assert loss <= stated + 2.0**-50 and stated - 1e-9 <= loss and stated <= epsilon


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 30.0, 100.0, 2000.0])
def test_no_epsilon_is_too_small_or_too_large(kind, epsilon):
    mechanism = make(kind, epsilon_local=epsilon, categories=6)
    assert 0.9 * min(epsilon, 36.0) < mechanism.event().epsilon <= epsilon
    assert 0.0 <= mechanism.worst_mse() < math.inf
    if epsilon < 1e-5:
        return
    # Draws of 53 bits tell no more apart than their number does, and that is what is stated.
    assert mechanism.event().epsilon < 100.0
    values = np.arange(6.0)[:, None]
    estimate = mechanism.decode(folded(mechanism, reports(mechanism, values)), SERVER)
    if epsilon >= 30.0 and kind != "hadamard-bit":
        assert estimate == pytest.approx(np.full(6, 1 / 6), abs=1e-5)


def test_krr_refuses_what_its_draws_cannot_express():
    with pytest.raises(ValueError, match="epsilon_local is 1e-06 with 1000000 categories"):
        make("krr", epsilon_local=1e-6, categories=1_000_000)
    assert make("krr", epsilon_local=1.0, categories=1_000_000).event().epsilon > 0.999
    small = {"epsilon_local": 1e-6, "categories": 1_000_000}
    assert make("hadamard-response", **small).event().epsilon == pytest.approx(1e-6, rel=1e-6)


def test_a_probability_is_rounded_towards_privacy():
    assert step_up(1e-300) == step_up(0.0) == 2.0**-53
    for probability in (0.1, 1 / 3, 1e-9):
        assert probability <= step_up(probability) < probability + 2.0**-53


@pytest.mark.parametrize("kind", ALL)
def test_wider_data_are_refused_with_both_sides_named(kind):
    with pytest.raises(ValueError, match=f"dimension is 3, but '{kind}' .* out of 10; .* 1 column"):
        make(kind, epsilon_local=1.0, categories=10, dimension=3)
    with pytest.raises(ValueError, match="categories"):
        make(kind, epsilon_local=1.0, categories=1)
    mechanism = make(kind, epsilon_local=1.0, categories=10)
    for wrong in (10.0, -1.0, 2.5):
        with pytest.raises(ValueError, match=f"client 1 holds {wrong:g} at index 0; .* 0 to 9"):
            reports(mechanism, np.array([[1.0], [wrong]]))


# What the accounting of shuffles is told.


@pytest.mark.parametrize("categories", [2, 3, 5, 8, 100, 1000, 5000])
def test_the_accounting_never_assumes_more_blocks_than_there_are(categories):
    for epsilon in (*np.linspace(0.05, 12.0, 60), *(m * math.log(2.0) for m in range(1, 12)), 40.0):
        mechanism = make("hadamard-response", epsilon_local=epsilon, categories=categories)
        assert mechanism.alphabet() == categories and mechanism.randomizer() == "hadamard"
        assert hadamard_blocks(mechanism.event().epsilon, categories) == mechanism.blocks
        assert mechanism.losses() == (mechanism.event().epsilon,)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("kind", ONE_SYMBOL)
def test_the_blanket_of_the_accounting_lies_under_every_law(kind, epsilon):
    for categories in (2, 5, 12):
        mechanism = make(kind, epsilon_local=epsilon, categories=categories)
        common = mechanism.laws(inputs(mechanism.domain))[0].min(axis=0).sum()
        stated = mechanism.event().epsilon
        blanket = blanket_of(mechanism.randomizer(), stated, mechanism.alphabet())
        assert blanket.mass <= common * (1 + 1e-11)


def test_a_hadamard_bit_is_a_message_of_rbin():
    """The bits are the category's row of signs, so what is proved for any bits covers it."""
    mechanism = make("hadamard-bit", epsilon_local=1.3, categories=11)
    rows = (hadamard(16)[:11] > 0).astype(float)
    rbin = make("rbin", epsilon_local=1.3, dimension=16, coordinates=1)
    ours = mechanism.laws(inputs(mechanism.domain))[0]
    assert ours == pytest.approx(rbin.laws(rows)[0], rel=1e-11)


def test_a_report_of_rappor_is_one_message_of_as_many_bits_as_categories():
    mechanism = make("rappor", epsilon_local=1.0, categories=21)
    assert (mechanism.messages_per_report, mechanism.bits) == (1, 21)
    assert mechanism.losses() == (mechanism.event().epsilon,) and mechanism.randomizer() == "rappor"
