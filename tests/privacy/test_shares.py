"""The distance of mixed shares from ideal ones, against enumeration and an exact count."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest

from raydp_sim.privacy.curves.shares import least_messages, log_distance


def histogram(symbols, q):
    counts = [0] * q
    for symbol in symbols:
        counts[symbol] += 1
    return tuple(counts)


def report_law(value, messages, q):
    """The law of the histogram of one client's shares."""
    law = Counter()
    for free in itertools.product(range(q), repeat=messages - 1):
        law[histogram((*free, (value - sum(free)) % q), q)] += q ** -(messages - 1)
    return law


def mixed_law(reports):
    """The law of the histogram of all clients' shares: what the server sees."""
    law = Counter({tuple([0] * len(next(iter(reports[0])))): 1.0})
    for report in reports:
        added = Counter()
        for one, chance in law.items():
            for other, more in report.items():
                added[tuple(a + b for a, b in zip(one, other, strict=True))] += chance * more
        law = added
    return law


def ideal_law(total, numbers, q):
    """The law of the histogram of uniform numbers with a given sum."""
    law = {}
    for parts in itertools.combinations(range(numbers + q - 1), q - 1):
        bars = (-1, *parts, numbers + q - 1)
        counts = tuple(b - a - 1 for a, b in itertools.pairwise(bars))
        if sum(symbol * count for symbol, count in enumerate(counts)) % q == total % q:
            ways = math.factorial(numbers) // math.prod(math.factorial(c) for c in counts)
            law[counts] = ways / q ** (numbers - 1)
    return law


def distance(one, other):
    return 0.5 * sum(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in {*one, *other})


TINY = [(2, 3, 2), (2, 4, 3), (2, 6, 2), (3, 3, 2), (3, 4, 2), (3, 4, 3), (3, 5, 4), (4, 4, 2)]


@pytest.mark.parametrize(("n", "messages", "q"), TINY)
def test_no_values_are_told_from_ideal_ones_better_than_proved(n, messages, q):
    """Every multiset of values, enumerated."""
    laws = [report_law(value, messages, q) for value in range(q)]
    bound = math.exp(log_distance(n, messages, math.log(q)))
    worst = 0.0
    for values in itertools.combinations_with_replacement(range(q), n):
        seen = mixed_law([laws[value] for value in values])
        assert sum(seen.values()) == pytest.approx(1.0)
        worst = max(worst, distance(seen, ideal_law(sum(values), n * messages, q)))
    assert 0.0 < worst <= bound
    if (n, messages, q) in [(3, 4, 2), (3, 5, 4), (4, 4, 2), (2, 6, 2)]:
        assert bound < 0.5, "a bound that says nothing proves nothing"


def test_two_shares_tell_more_than_the_sum_and_every_further_one_hides_it():
    """Why nothing is claimed below three shares: three clients' values are often distinguished."""
    found = []
    for messages in (2, 3, 4):
        laws = [report_law(value, messages, 8) for value in range(8)]
        same, other = mixed_law([laws[0]] * 3), mixed_law([laws[1], laws[1], laws[6]])
        found.append(distance(same, other))
    assert found[0] > 0.8 and found[2] < 0.5 * found[1] < 0.25 * found[0]
    with pytest.raises(ValueError, match="messages is 2"):
        log_distance(3, 2, math.log(8))


def components(n, edges):
    """Count the components of a graph by merging its vertices."""
    name = list(range(n))
    for a, b in edges:
        name = [name[a] if x == name[b] else x for x in name]
    return len(set(name))


def expected_power(n, k, q):
    """E q^c exactly: n!/(nk)! times the coefficient of x^n in (sum (jk)!/j! x^j)^q."""
    a = [Fraction(math.factorial(j * k), math.factorial(j)) for j in range(n + 1)]
    power = [Fraction(1)]
    for i in range(1, n + 1):  # the power of a series, term by term
        terms = ((q * j - (i - j)) * a[j] * power[i - j] for j in range(1, i + 1))
        power.append(sum(terms, Fraction(0)) / i)
    return power[n] / a[n]


@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 2), (2, 3), (4, 2)])
def test_the_exact_count_of_components_is_right(n, k):
    """All (nk)! ways to match the ends, enumerated."""
    found = Counter()
    for ends in itertools.permutations(range(n * k)):
        found[components(n, [(i // k, end // k) for i, end in enumerate(ends)])] += 1
    ways = math.factorial(n * k)
    assert sum(found.values()) == ways
    for q in (2, 7):
        mean = sum(Fraction(times * q**c, ways) for c, times in found.items())
        assert mean == expected_power(n, k, q)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 20, 60])
@pytest.mark.parametrize("messages", [3, 4, 7, 12])
@pytest.mark.parametrize("q", [2, 1024, 2**40])
def test_the_sum_over_components_is_above_the_exact_count_and_close(n, messages, q):
    exact = expected_power(n, messages - 1, q) / q - 1
    truth = 0.5 * math.sqrt(min(4, exact))
    bound = math.exp(log_distance(n, messages, math.log(q)))
    assert bound >= truth
    if truth < 0.01 and q > 2:
        # The factor 5/2 is 2 for the two ends of three clients and more, and 1 for two clients.
        assert bound <= (1.6 if n == 2 else 1.2) * truth


def test_one_client_shows_its_sum_and_nothing_else():
    assert log_distance(1, 3, 100.0) == -math.inf
    assert least_messages(1, 100.0, -100.0, 10) == 3


def test_more_clients_and_more_messages_hide_better():
    values = [log_distance(n, 8, 20.0) for n in (10, 100, 1000, 10**4, 10**6)]
    assert values == sorted(values, reverse=True)
    values = [log_distance(100, messages, 20.0) for messages in range(5, 20)]
    assert values == sorted(values, reverse=True)
    assert log_distance(2**18, 8, 20.0) == log_distance(2**25, 8, 20.0)


@pytest.mark.parametrize("n", [2, 30, 5000])
def test_the_fewest_messages_are_enough_and_one_fewer_is_not(n):
    log_q, allowed = 20 * math.log(2), math.log(1e-9)
    fewest = least_messages(n, log_q, allowed, 200)
    assert log_distance(n, fewest, log_q) <= allowed < log_distance(n, fewest - 1, log_q)
    assert least_messages(n, log_q, allowed, fewest - 1) is None
