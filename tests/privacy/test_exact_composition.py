"""The oracle itself: against rational arithmetic, enumeration, its own brackets, dp_accounting."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from raydp_sim.privacy.events import Shuffle, SubsampledShuffle
from tests.privacy.enumeration import (
    hockey_stick,
    randomized_response,
    shuffle_pairs,
    subsampled_pairs,
)
from tests.privacy.exact_binomial import two_rr_bits
from tests.privacy.exact_composition import (
    Atoms,
    both_directions,
    compose,
    merged,
    power,
    product,
)
from tests.privacy.exact_rounds import blanket, clones, joined, k_rr, sampled, thinned, two_rr
from tests.privacy.soundness import clone_round, named_round, two_rr_round

Exact = list[tuple[Fraction, Fraction]]

# p = e^epsilon0 is a whole number in rational arithmetic; the oracle gets its logarithm.
E = 3
SMALL = math.log(E)


def exact_coins(
    weight: Fraction, m: int, heads: Fraction, tails: Fraction, plain: Fraction
) -> Exact:
    """Return atoms of m coins, weighed as in exact_rounds.py."""
    pair = []
    for a in range(m + 1):
        coin = weight * Fraction(math.comb(m, a), 2**m)
        up, down = (Fraction(a, m), Fraction(m - a, m)) if m else (Fraction(0), Fraction(0))
        pair.append(
            (
                coin * (heads * up + tails * down + plain),
                coin * (heads * down + tails * up + plain),
            )
        )
    return pair


def chances(n: int, g: Fraction) -> list[Fraction]:
    return [math.comb(n, c) * g**c * (1 - g) ** (n - c) for c in range(n + 1)]


def exact_clones(n: int, g: Fraction) -> Exact:
    head = Fraction(2 * E, E + 1)
    return [
        atom
        for c, weight in enumerate(chances(n - 1, g))
        for atom in exact_coins(weight, c + 1, head, 2 - head, Fraction(0))
    ]


def exact_blanket(n: int, k: int) -> Exact:
    g = Fraction(k, E + k - 1)
    pair: Exact = []
    for m, weight in enumerate(chances(n - 1, g)):
        for t, chance in enumerate(chances(m + 1, Fraction(2, k))):
            each = g * weight * chance / (m + 1)
            pair += exact_coins(each, t, Fraction(E * t), Fraction(t), Fraction(m + 1 - t))
    return pair


def exact_sampled(pair: Exact, rate: Fraction) -> Exact:
    some = [(p, q) for p, q in pair if p > q]
    lifted = [(rate * p + (1 - rate) * q, q) for p, q in some]
    rest = 1 - sum(p + q for p, q in lifted)
    return [*lifted, *((q, p) for p, q in lifted), (rest, rest)]


def exact_delta(rounds: list[Exact], ratio: Fraction) -> Fraction:
    """Return delta at epsilon = log ratio of the composition, by going through all outcomes."""
    total = Fraction(0)
    for atoms in itertools.product(*rounds):
        p = math.prod((atom[0] for atom in atoms), start=Fraction(1))
        q = math.prod((atom[1] for atom in atoms), start=Fraction(1))
        total += max(Fraction(0), p - ratio * q)
    return total


RATE = Fraction(3, 1000)
STRONGER = Fraction(2, E + 1)


@pytest.mark.parametrize(
    ("exact", "found"),
    [
        (exact_clones(3, Fraction(1, E)), clones(SMALL, 3)),
        (exact_clones(3, STRONGER), clones(SMALL, 3, stronger=True)),
        (exact_blanket(2, 3), blanket(SMALL, 2, 3)),
        (exact_sampled(exact_clones(3, Fraction(1, E)), RATE), sampled(clones(SMALL, 3), 3e-3)),
        (exact_sampled(exact_blanket(2, 5), RATE), sampled(blanket(SMALL, 2, 5), 3e-3)),
    ],
)
def test_composition_is_that_of_rational_arithmetic(exact, found):
    assert sum(p for p, _ in exact) == sum(q for _, q in exact) == 1
    for times in (1, 2, 3):
        pair = compose([(found, times)])
        assert pair.exact
        for ratio in (Fraction(1), Fraction(1001, 1000), Fraction(6, 5), Fraction(5, 2)):
            true = float(exact_delta([exact] * times, ratio))
            value = pair.delta(math.log(ratio))
            assert value <= true * (1 + 1e-14) + 1e-17
            assert value == pytest.approx(true, rel=1e-9, abs=1e-15)


def test_unequal_rounds_compose_as_in_rational_arithmetic():
    one, two = exact_clones(3, Fraction(1, E)), exact_sampled(exact_blanket(2, 3), RATE)
    found = compose([(clones(SMALL, 3), 2), (sampled(blanket(SMALL, 2, 3), 3e-3), 1)])
    for ratio in (Fraction(1), Fraction(6, 5), Fraction(4)):
        true = float(exact_delta([one, one, two], ratio))
        assert found.delta(math.log(ratio)) == pytest.approx(true, rel=1e-9)


def distances(pairs, laws: list[Atoms], epsilons=(0.0, 0.2, 0.7, 1.5)) -> list[tuple[float, float]]:
    """Return the largest delta of enumerated neighbours and of the laws, at each epsilon."""
    pairs = list(pairs)
    return [
        (
            max(hockey_stick(pair, epsilon) for pair in pairs),
            max(compose([(law, 1)]).delta(epsilon) for law in laws),
        )
        for epsilon in epsilons
    ]


@pytest.mark.parametrize("epsilon0", [0.5, 2.0])
@pytest.mark.parametrize(("clients", "n"), [(4, 4), (4, 2), (3, 1)])
def test_laws_of_randomized_response_are_among_those_enumerated(epsilon0, clients, n):
    rate = n / clients
    two = thinned(two_rr(epsilon0, n), rate)
    for symbols, laws in ((2, [two, two.reverse]), (3, [k_rr(epsilon0, n, 3, rate)])):
        channel = randomized_response(epsilon0, symbols)
        pairs = shuffle_pairs(channel, n) if n == clients else None
        pairs = subsampled_pairs(channel, clients, n) if pairs is None else pairs
        for worst, found in distances(pairs, laws):
            assert found <= worst + 1e-12
            # One of few datasets: it is not far from the worst.
            assert found >= 0.5 * worst - 1e-12


def test_dominating_pairs_are_not_below_actual_laws():
    for epsilon0, n, rate in ((1.0, 20, 0.1), (4.0, 50, 1.0), (8.0, 3, 1e-3)):
        law, pair = k_rr(epsilon0, n, 5, rate), sampled(blanket(epsilon0, n, 5), rate)
        stronger = sampled(clones(epsilon0, n, stronger=True), rate)
        weaker = sampled(clones(epsilon0, n), rate)
        two = thinned(two_rr(epsilon0, n), rate)
        for delta in (1e-3, 1e-6, 1e-9):
            values = [compose([(x, 2)]).epsilon(delta) for x in (law, pair, stronger, weaker)]
            assert values == sorted(values)
            assert compose([(two, 2)]).epsilon(delta) <= values[2]


def test_the_blanket_of_2rr_is_the_stronger_clone_pair():
    one, two = blanket(2.0, 30, 2), clones(2.0, 30, stronger=True)
    for epsilon in (0.0, 0.5, 1.9):
        found = compose([(one, 2)]).delta(epsilon)
        assert found == pytest.approx(compose([(two, 2)]).delta(epsilon), rel=1e-9)


def test_clients_that_always_join_are_a_shuffle():
    always, shuffle = joined(1.0, 5, 1.0 - 1e-12), two_rr(1.0, 5)
    assert always.p.sum() == pytest.approx(1.0)
    for epsilon in (0.0, 0.3):
        found = compose([(always, 1)]).delta(epsilon)
        assert found == pytest.approx(compose([(shuffle, 1)]).delta(epsilon), rel=1e-6)


EVENTS = [
    SubsampledShuffle(6.0, 10**6, 1000, "2rr"),
    SubsampledShuffle(3.0, 10**5, 100, "krr", 16),
    SubsampledShuffle(0.01, 10**9, 1000, "2rr"),
    SubsampledShuffle(12.0, 10**6, 10, "krr", 3),
    Shuffle(1.0, 1000, "2rr"),
    Shuffle(4.0, 60, "krr", 5),
]


@pytest.mark.parametrize("event", EVENTS, ids=str)
@pytest.mark.parametrize(("make", "times"), [(clone_round, 4), (clone_round, 10), (named_round, 4)])
def test_both_directions_agree_and_the_bracket_is_narrow(event, make, times):
    pair = make(event)
    assert pair.p.sum() == pytest.approx(1.0, abs=1e-12)
    assert pair.q.sum() == pytest.approx(1.0, abs=1e-12)
    down, back = compose([(pair, times)]), compose([(pair.reverse, times)])
    # From above it takes twice as many cells to be as near.
    up = compose([(pair, times)], "up", factor=1400, last=8000)
    for share in (0.5, 1e-3, 1e-6):
        delta = share * down.delta(0.0)
        low, high = down.epsilon(delta), up.epsilon(delta)
        assert 0.0 < low <= high <= 1.005 * low
        assert down.delta(low) > delta >= up.delta(high)
        assert back.epsilon(delta) == pytest.approx(low, rel=1e-6)


def test_merging_down_only_lowers_delta_and_up_only_raises_it():
    pair = power(clones(1.0, 12), 2)
    exact = compose([(pair, 1)], last=10**6)
    assert exact.exact
    for most in (20, 100, 400):
        low = compose([(merged(pair, most), 1)])
        high = compose([(merged(pair, most, "up"), 1)], "up")
        for epsilon in np.linspace(0.0, 1.9, 20):
            assert low.delta(epsilon) <= exact.delta(epsilon) * (1 + 1e-10)
            assert high.delta(epsilon) >= exact.delta(epsilon) * (1 - 1e-10)


# Found by others, by direct convolution, enumeration or a contour integral.
@pytest.mark.parametrize(
    ("event", "times", "delta", "pair", "law"),
    [
        (SubsampledShuffle(6.0, 10**6, 1000), 2, 1e-6, 0.338, 0.0029),
        (SubsampledShuffle(6.0, 10**4, 1), 3, 1e-8, 0.078, 0.078),
        (SubsampledShuffle(3.0, 10**5, 100), 2, 1e-5, 0.0177, None),
    ],
)
def test_values_that_others_found(event, times, delta, pair, law):
    digits = 1e-2
    found = compose([(clone_round(event), times)]).epsilon(delta)
    assert found == pytest.approx(pair, rel=digits)
    if law is not None:
        found = both_directions([(two_rr_round(event), times)], delta)
        assert found == pytest.approx(law, rel=digits)


@pytest.mark.parametrize(
    ("epsilon0", "n", "clients", "times", "delta", "law"),
    [
        (12.0, 1, 10**6, 10**5, 1e-3, 0.352),
        (14.0, 10, 10**6, 10**4, 1e-6, 3.05),
        (1e-6, 1, None, 10**10, 1e-3, 0.1975),
    ],
)
def test_values_of_long_runs_that_others_found(epsilon0, n, clients, times, delta, law):
    found = two_rr_bits(epsilon0, n, clients, times).epsilon(delta)
    assert found == pytest.approx(law, rel=2e-3)


def test_dp_accounting_agrees():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    pair = sampled(clones(4.0, 50), 0.05)
    logs = [dict(enumerate(np.log(mass).tolist())) for mass in (pair.p, pair.q)]
    theirs = pld.from_two_probability_mass_functions(
        logs[1], logs[0], pessimistic_estimate=True, value_discretization_interval=1e-5
    ).self_compose(3)
    for delta in (1e-2, 1e-4, 1e-6):
        found = compose([(pair, 3)]).epsilon(delta)
        assert found <= theirs.get_epsilon_for_delta(delta) <= found + 4e-5


def test_the_square_is_the_product():
    pair = two_rr(1.0, 5)
    by_hand = product(pair, pair)
    assert compose([(pair, 2)]).delta(0.3) == pytest.approx(
        compose([(by_hand, 1)]).delta(0.3), rel=1e-12
    )


def test_long_runs_of_bits_are_exact_where_they_can_be_multiplied_out():
    epsilon0, times = 2.0, 9
    bits = two_rr_bits(epsilon0, 1, 10, times)
    law = compose([(two_rr_round(SubsampledShuffle(epsilon0, 10, 1)), times)])
    for epsilon in (0.0, 0.1, 1.0, 3.0):
        assert bits.delta(epsilon) == pytest.approx(law.delta(epsilon), rel=1e-9)
