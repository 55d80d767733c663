"""Several levels of privacy: exact laws of all views and coalitions, published numbers, errors."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.linalg import hadamard

from raydp_sim.errors import InputError
from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.parts.entropy import h2, law_entropy, rarer
from raydp_sim.mechanisms.parts.hadamard_sign import HadamardSign
from raydp_sim.mechanisms.parts.lower_bounds import distribution_lower_bound
from raydp_sim.mechanisms.wires.key_columns import aligned, pack_keys, unpack_keys
from raydp_sim.random import Stream

from .support import ALPHA, SERVER, folded, losses, reports

LEVELS = ((1.0, 0.5), (2.0, 1.0, 0.25), (2.0, 1.0, 0.5), (math.inf, 1.0, 0.1), (2.0, 1.8, 1.7, 1.6))


def cascade(levels, categories=4):
    return make(
        "hadamard-cascade", epsilon_local=levels[-1], finer=levels[:-1], categories=categories
    )


def every_coin(coins):
    """All outcomes of the coins, with their probabilities."""
    for shown in itertools.product((0, 1), repeat=len(coins)):
        chance = math.prod(q if u else 1.0 - q for u, q in zip(shown, coins, strict=True))
        yield shown, chance


def joint_view(coins, bit, readers):
    """The exact law of the public bit and the keys of some readers, by (7.37) and (7.38)."""
    d, law = len(coins), {}
    for shown, chance in every_coin(coins):
        public = (bit + sum(shown)) % 2
        keys = tuple(sum(shown[level + 1 :]) % 2 for level in readers)
        law[public, keys] = law.get((public, keys), 0.0) + chance
    assert len(readers) == 0 or max(readers) < d
    return law


def loss_of(one, other):
    return max(
        math.log(one.get(seen, 0.0) / other[seen]) if other.get(seen, 0.0) else math.inf
        for seen in one
        if one[seen] > 0.0
    )


# Point 8: marginals, decoding, views and coalitions, exactly.


@pytest.mark.parametrize("levels", LEVELS, ids=str)
def test_every_coalition_sees_the_level_of_its_least_private_member(levels):
    coins, d = cascade(levels).coins, len(levels)
    for size in range(d + 1):
        for readers in itertools.combinations(range(d), size):
            laws = [joint_view(coins, bit, readers) for bit in (0, 1)]
            assert sum(laws[0].values()) == pytest.approx(1.0)
            wanted = levels[min(readers)] if readers else levels[-1]
            found = max(loss_of(*laws), loss_of(*laws[::-1]))
            if math.isinf(wanted):
                assert math.isinf(found)
            else:
                assert found == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("levels", LEVELS, ids=str)
def test_releases_follow_the_enumerated_law_of_the_bit_and_all_keys(levels):
    """Chi-square over 2^d outcomes of 100,000 reports; false alarm 1e-8 for each case."""
    mechanism, n = cascade(levels), 100_000
    stream = Stream(3).clients(np.arange(n))
    for category in (0, 3):
        payload, keys = mechanism.released(np.full((n, 1), float(category)), stream)
        column, bit = payload[:, 0] >> 1, payload[:, 0] & 1
        truth = (hadamard(4)[category, column] > 0).astype(np.uint8)
        # The bit relative to the sign, so that all columns have one law.
        rows = np.column_stack([bit ^ truth, keys[:, :-1]])
        law = joint_view(mechanism.coins, 0, range(len(levels) - 1))
        seen = np.array([(rows == (public, *held)).all(axis=1).sum() for public, held in law])
        expected = np.array([*law.values()]) * n
        assert seen[expected == 0.0].sum() == 0
        kept = expected > 20
        statistic = ((seen - expected)[kept] ** 2 / expected[kept]).sum()
        assert stats.chi2.sf(statistic, kept.sum() - 1) > ALPHA


@pytest.mark.parametrize("levels", LEVELS, ids=str)
def test_a_level_is_hadamard_bit_at_its_loss(levels):
    mechanism = cascade(levels, 6)
    values = np.arange(6.0)[:, None]
    for level, epsilon in enumerate(levels):
        view = mechanism.view(level)
        if math.isinf(epsilon):
            assert (view.up, view.down) == (1.0, 0.0)
            continue
        alone = make("hadamard-bit", epsilon_local=epsilon, categories=6)
        assert view.laws(values)[0] == pytest.approx(alone.laws(values)[0], rel=1e-12)
        assert view.mse(values) == pytest.approx(alone.mse(values), rel=1e-12)
        assert losses(view.laws(values)).max() <= mechanism.event_at(level).epsilon <= epsilon
        counts = np.random.default_rng(1).integers(0, 50, (1, 16))
        assert view.decode(counts) == pytest.approx(alone.decode(counts, SERVER))


@pytest.mark.parametrize(
    ("levels", "coins", "proposed", "trivial"),
    [
        ((1.0, 0.5), (0.268941421370, 0.235003712202), 1.626573969032, 1.796228077364),
        (
            (2.0, 1.0, 0.25),
            (0.119202922022, 0.196611933241, 0.365452948654),
            2.189281982900,
            2.355823271637,
        ),
        ((math.inf, 1.0, 0.1), (0.0, 0.268941421370, 0.445946201983), None, None),
        (
            (2.0, 1.8, 1.7, 1.6),
            (0.119202922022, 0.029737810750, 0.017610271799, 0.019558597757),
            0.986899604382,
            2.390100881314,
        ),
    ],
)
def test_published_coins_and_entropies(levels, coins, proposed, trivial):
    mechanism = cascade(levels)
    assert mechanism.coins == pytest.approx(coins, abs=5e-12)
    if proposed is not None:
        assert mechanism.key_entropy == pytest.approx(proposed, abs=5e-12)
        alone = [make("hadamard-bit", epsilon_local=level, categories=4) for level in levels]
        assert sum(one.entropy for one in alone) == pytest.approx(trivial, abs=5e-12)
        # What is drawn, by the law of all coins: they are independent, so entropies add up.
        drawn = np.array([[chance for _, chance in every_coin(mechanism.coins)]])
        assert law_entropy(drawn)[0] == pytest.approx(mechanism.key_entropy)


def test_a_promotion_is_the_one_bit_between_two_levels():
    mechanism = cascade((3.0, 2.0, 1.0, 0.5))
    stream = Stream(5).at("release", 7).clients(np.arange(1000))
    _, keys = mechanism.released(np.zeros((1000, 1)), stream)
    for held, wanted in itertools.combinations(range(3, -1, -1), 2):
        more = mechanism.promotion(stream, held, wanted)
        assert np.array_equal(keys[:, held] ^ more, keys[:, wanted])
        assert set(np.unique(more)) == {0, 1}
    # A later release has keys of its own.
    later = Stream(5).at("release", 8).clients(np.arange(1000))
    assert not np.array_equal(mechanism.keys(later), keys)


# Point 9: unbiased, and the exact error, at every level.


@pytest.mark.parametrize(
    ("randomness", "whole", "first"),
    [(1.0, 0.008715388754, 0.005447117971), (0.5, 0.138865612734, 0.086791007959)],
)
def test_published_error_of_the_estimate_by_groups(randomness, whole, first):
    share, n = np.array([0.5, 0.2, 0.15, 0.1, 0.05]), 4000
    mechanism = make("hadamard-bit", epsilon_local=1.0, categories=5, randomness=randomness)
    each = mechanism.sign.grouped_variance(share, n)
    assert (8 * each, 5 * each) == pytest.approx((whole, first), abs=5e-12)
    # Far below what is printed as a bound, 2k e^(2 epsilon) / (n q^2 (e^epsilon - 1)^2).
    q = mechanism.sign.up
    assert 8 * each < 2 * 8 * math.e**2 / (n * q**2 * (math.e - 1) ** 2)


def test_published_errors_of_three_levels():
    mechanism = cascade((2.0, 1.0, 0.5))
    found = [
        4 * mechanism.view(level).grouped_variance(np.array([0.4, 0.3, 0.2, 0.1]), 4000)
        for level in range(3)
    ]
    assert found == pytest.approx([0.001424061661, 0.004382694377, 0.016370792356], abs=5e-12)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("hadamard-bit", {"epsilon_local": 1.0}),
        ("hadamard-bit", {"epsilon_local": 1.0, "randomness": 0.5}),
        ("hadamard-cascade", {"epsilon_local": 0.5, "finer": (2.0, 1.0)}),
    ],
)
def test_both_estimates_have_the_exact_error_by_monte_carlo(kind, parameters):
    """400 runs of 4,000 i.i.d. values: bias within 6 and error within 6 standard errors, which
    by the normal limit is a false alarm with probability below 1e-7 for all entries together."""
    share, n, runs = np.array([0.4, 0.3, 0.2, 0.1]), 4000, 400
    mechanism = make(kind, categories=4, **parameters)
    keyed = kind == "hadamard-cascade"
    views = [mechanism.view(level) for level in range(3)] if keyed else [mechanism.sign]
    random = np.random.default_rng(4)
    found = np.empty((len(views), 2, runs, 4))
    for run in range(runs):
        values = random.choice(4, n, p=share)[:, None].astype(float)
        stream = Stream(run).clients(np.arange(n))
        if keyed:
            payload, keys = mechanism.released(values, stream)
        else:
            payload = mechanism.messages(values, stream).payload
        for level, view in enumerate(views):
            seen = mechanism.opened(payload, keys[:, level], level) if keyed else payload
            counts = folded(mechanism, seen)
            held = np.bincount(values[:, 0].astype(int), minlength=4) / n
            found[level, 0, run] = view.grouped(counts) - share
            found[level, 1, run] = view.decode(counts) - held
    for level, view in enumerate(views):
        wanted = (view.grouped_variance(share, n) * 4, view.variance(share, n).sum())
        for errors, exact in zip(found[level], wanted, strict=True):
            off = errors.mean(axis=0) / (errors.std(axis=0) / math.sqrt(runs))
            assert np.abs(off).max() < 6
            square = (errors**2).sum(axis=1)
            # Groups are drawn, so their sizes vary by a few per cent, which adds a per mille.
            room = 6 * square.std() / math.sqrt(runs) + 2e-3 * exact
            assert abs(square.mean() - exact) < room


def test_the_budget_of_randomness_is_kept_and_the_errors_grow_like_its_inverse():
    before = None
    for bits in (1.0, 0.84, 0.8, 0.5, 0.1, 0.01, 1e-4):
        mechanism = make("hadamard-bit", epsilon_local=1.0, categories=16, randomness=bits)
        sign = mechanism.sign
        assert mechanism.entropy <= bits * (1 + 1e-9)
        assert sign.loss <= 1.0
        if bits < h2(1 / (1 + math.e)):
            assert mechanism.entropy == pytest.approx(bits, rel=1e-9)
            assert sign.up == pytest.approx(rarer(bits), rel=1e-12)
            # Sharper than what is printed: linear in 1/q, and attained where all hold category 0.
            limit = 4 * 16 * math.e**2 * (1 - sign.up) / (sign.up * (math.e - 1) ** 2)
            assert 16 * sign.grouped_variance(np.eye(16)[0], 1) == pytest.approx(limit)
            assert 16 * sign.grouped_variance(np.full(16, 1 / 16), 1) < limit
            assert sign.worst_mse() <= limit + 16
        assert before is None or sign.worst_mse() >= before
        before = sign.worst_mse()
    free = make("hadamard-bit", epsilon_local=1.0, categories=16)
    assert make("hadamard-bit", epsilon_local=1.0, categories=16, randomness=2.0).sign == free.sign


# The corrected lower bound.


def test_no_error_is_below_the_corrected_lower_bound_and_some_are_below_the_printed_one():
    for k in (2, 16, 256, 1024):
        for n in (100, 10**4, 10**6, 10**9, 10**12):
            for epsilon in (0.1, 0.5, 1.0, 2.0):
                for bits in (0.02, 0.5, 0.8, 1.0):
                    sign = make(
                        "hadamard-bit", epsilon_local=epsilon, categories=k, randomness=bits
                    ).sign
                    # Nothing is further off than the best guess without any report.
                    reached = min(sign.worst_mse() / n, 1.0)
                    assert distribution_lower_bound(k, n, epsilon, bits) <= reached
    sign = make("hadamard-bit", epsilon_local=1.0, categories=1024, randomness=0.02).sign
    q, n = rarer(0.02), 1e12
    printed = 1024 * math.e / (16 * n * q**2 * (math.e - 1) ** 2)
    assert printed == pytest.approx(1.616e-5, rel=1e-3)
    # The worst truth for the estimate by groups puts every group's bit as near to 1/2 as can be.
    assert sign.grouped_variance(np.eye(1024)[0], n) * 1024 < printed
    assert sign.worst_mse() / n < printed


@pytest.mark.parametrize(("epsilon", "bits"), [(1.0, 0.5), (1.0, 1.0), (0.3, 0.7), (2.0, 0.2)])
def test_the_information_of_a_report_is_the_largest_of_the_feasible_pairs(epsilon, bits):
    grid = np.linspace(0.0005, 0.9995, 1999)
    a, b = np.meshgrid(grid, grid)
    entropy = -(grid * np.log2(grid) + (1 - grid) * np.log2(1 - grid))
    fits = (entropy[None] <= bits) & (entropy[:, None] <= bits)
    fits &= (np.abs(np.log(a / b)) <= epsilon) & (np.abs(np.log((1 - a) / (1 - b))) <= epsilon)
    told = (a - b) ** 2 / (a + b) + (a - b) ** 2 / (2 - a - b)
    best = told[fits].max()
    # Back from the bound, for so many clients that what is known beforehand does not matter.
    k, n = 2, 1e18
    v = (k / 2) ** 2 / distribution_lower_bound(k, n, epsilon, bits) / (n * k * math.exp(epsilon))
    assert best <= v * (1 + 1e-9)
    assert best == pytest.approx(v, rel=0.05)


# Rounding.


@pytest.mark.parametrize(
    "levels",
    [
        (2.0, 1.0, 0.5),
        (1.0, 1e-3, 1e-6),
        (1e-6 * (1 + 1e-12), 1e-6),
        (40.0, 30.0, 20.0, 1.0),
        tuple(np.linspace(3.0, 1e-6, 64).tolist()),
        tuple((1.0 + 1e-13 * np.arange(20, -1, -1)).tolist()),
    ],
    ids=lambda levels: f"{len(levels)} from {levels[0]:g} to {levels[-1]:g}",
)
def test_no_level_loses_more_than_it_states_in_exact_arithmetic(levels):
    """Coins are dyadic: every level's flips are rational, and its loss is known to 50 digits."""
    mechanism = cascade(levels)
    flip = Fraction(0)
    for level, coin in enumerate(mechanism.coins):
        flip += Fraction(coin) * (1 - 2 * flip)
        with mpmath.workdps(50):
            exact = mpmath.log(mpmath.mpf(1) / (mpmath.mpf(flip.numerator) / flip.denominator) - 1)
            assert exact <= mechanism.event_at(level).epsilon <= levels[level]
            if levels[level] < 30.0:
                assert exact >= levels[level] * (1 - 1e-7)


# Bad input.


@pytest.mark.parametrize(
    ("finer", "epsilon", "said"),
    [
        ((1.0,), 2.0, "finer ends with 1, but epsilon_local, the public level, is 2"),
        ((1.0,), 1.0, "it must be the least of all levels, and differ"),
        ((1.0, 2.0), 0.5, "finer holds 2 after 1; write them falling"),
        ((2.0, 2.0), 1.0, "name it once"),
        ((2.0, math.inf), 1.0, "only the first may be infinite"),
        ((math.nan,), 1.0, "give a number"),
        ((2.0, -1.0), 0.5, "at least 1e-06"),
        ((2.0,), 1e-7, "at least 1e-06"),
        ((2.0,), 0.0, "greater than 0"),
    ],
)
def test_levels_that_are_none_are_refused(finer, epsilon, said):
    with pytest.raises(ValueError, match=said):
        make("hadamard-cascade", epsilon_local=epsilon, finer=finer, categories=4)


def test_keys_that_do_not_fit_the_records_are_refused():
    mechanism = cascade((2.0, 1.0, 0.5))
    stream = Stream(1).clients(np.arange(10))
    payload, keys = mechanism.released(np.zeros((10, 1)), stream)
    with pytest.raises(InputError, match="one key for each report"):
        mechanism.opened(payload, keys[:9, 0], 0)
    with pytest.raises(InputError, match="there are 3"):
        mechanism.opened(payload, keys[:, 0], 3)
    with pytest.raises(InputError, match="there are 3"):
        mechanism.view(-1)
    with pytest.raises(InputError, match="held already"):
        mechanism.promotion(stream, 1, 1)
    packed = pack_keys(keys[:, 0], 1)
    assert len(packed) == 2
    with pytest.raises(InputError, match="17 public records of 1 bits each make 3"):
        unpack_keys(packed, 1, 17)


def test_keys_are_put_in_the_order_of_the_records_or_refused():
    random = np.random.default_rng(1)
    records = random.choice(2**60, 1000, replace=False)
    keys, order = random.integers(0, 2, 1000), random.permutation(1000)
    assert np.array_equal(aligned(records, records[order], keys[order]), keys)
    assert len(aligned(records[:0], records[:0], keys[:0])) == 0
    for named, given, said in (
        (records[:999], keys[:999], "1 of 1000 public records have no key"),
        (records[:0], keys[:0], "1000 of 1000 public records have no key"),
        (records[:999], keys, "1000 keys for 999 record ids"),
        (np.append(records[:999], records[0]), keys, "comes twice"),
    ):
        with pytest.raises(InputError, match=said):
            aligned(records, named, given)
    with pytest.raises(InputError, match="comes twice"):
        aligned(np.append(records, records[0]), records, keys)
    with pytest.raises(InputError, match="for no public record"):
        aligned(records[1:], records, keys)


def test_too_few_clients_for_the_groups_are_refused_and_drawn_columns_do_without():
    mechanism = make("hadamard-bit", epsilon_local=1.0, categories=64)
    counts = folded(mechanism, reports(mechanism, np.zeros((40, 1))))
    with pytest.raises(InputError, match="of 64 groups have no report"):
        mechanism.sign.grouped(counts)
    assert np.isfinite(mechanism.sign.decode(counts)).all()


@pytest.mark.parametrize("bits", [0.0, -1.0, 1e-12])
def test_a_budget_that_leaves_no_estimate_is_refused(bits):
    with pytest.raises(ValueError, match="randomness"):
        make("hadamard-bit", epsilon_local=1.0, categories=4, randomness=bits)


def test_large_levels_neither_overflow_nor_lose_more_than_they_say():
    mechanism = cascade((5000.0, 800.0, 1.0))
    assert all(0.0 < flip <= 0.5 for flip in mechanism.flips)
    assert [mechanism.event_at(level).epsilon for level in range(3)] < [5000.0, 800.0, 1.1]
    assert isinstance(mechanism.view(0), HadamardSign)
