"""The closed forms behind the floors agree with exact arithmetic and enclose it."""

import ast
import decimal
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from raydp_sim.privacy.floors import questions, tails
from raydp_sim.privacy.floors.questions import ROUNDING, Questions, answers, counted, shifted

DIGITS = decimal.Context(prec=40)
# 1/2 log(2 pi), from a table, to the 40 digits that Decimal has no function for.
HALF_LOG_2_PI = Decimal("0.9189385332046727417803297364056176398613974736378")


def log_factorial(k):
    """Return log k! to more than 25 digits: exact below 60, beyond that by Stirling's series."""
    if k < 60:
        return Decimal(math.factorial(k)).ln(DIGITS)
    n = Decimal(k)
    series = [(1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156)]
    rest = sum(Decimal(a) / (Decimal(b) * n ** (2 * i + 1)) for i, (a, b) in enumerate(series))
    return DIGITS.add((n + Decimal("0.5")) * n.ln(DIGITS) - n + HALF_LOG_2_PI, rest)


def probability(k, trials, p):
    """Return Pr[Bin(trials, p) = k] to more than 20 digits; p a float, taken as it is."""
    with decimal.localcontext(DIGITS):
        p = Decimal(p)
        ways = log_factorial(trials) - log_factorial(k) - log_factorial(trials - k)
        return (ways + k * p.ln() + (trials - k) * (1 - p).ln()).exp()


def tail(m, trials, p):
    """Return Pr[Bin(trials, p) >= m], adding up until nothing is left."""
    with decimal.localcontext(DIGITS):
        odds = Decimal(p) / (1 - Decimal(p))
        term, total, k = probability(m, trials, p), Decimal(0), m
        while k <= trials and (k < trials * p or term > total * Decimal("1e-25")):
            total += term
            term = term * (trials - k) / (k + 1) * odds
            k += 1
        return total


def grid(seed, points):
    """Draw trials up to 10^10, probabilities and counts, with few enough terms to add up."""
    rng = np.random.default_rng(seed)
    while points:
        trials = int(10 ** rng.uniform(0.0, 10.0)) + 1
        p = float(10 ** rng.uniform(-9.0, math.log10(0.5)))
        spread = math.sqrt(trials * p * (1.0 - p))
        if spread > 300.0:
            continue
        m = round(trials * p + rng.uniform(-4.0, 9.0) * spread + rng.uniform(0.0, 3.0))
        if 1 <= m <= trials:
            points -= 1
            yield trials, p, m


def test_tails_and_probabilities_are_far_within_what_is_allowed_for_rounding():
    for trials, p, m in grid(1, 150):
        count = np.array([float(m)])
        found, rest = tails.tails(count, trials, np.array([p]), np.array([1.0 - p]))
        exact = tail(m, trials, p)
        assert float(abs(Decimal(float(found[0])) / exact - 1)) < ROUNDING / 1000
        assert float(rest[0]) == pytest.approx(float(1 - exact), rel=ROUNDING / 1000)
        one = tails.binomial(count, trials, np.array([p]))
        exact = probability(m, trials, p)
        assert float(abs(Decimal(float(one[0])) / exact - 1)) < ROUNDING / 1000


def bernoulli(trials, p):
    """Return the exact law of Bin(trials, p) for a fraction p."""
    return [math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]


def enclose(found, index, base, other):
    """Check one question's intervals against exact probabilities of yes under Q and P."""
    # Below the least normal number nothing has digits; what follows takes 1e-300 for less.
    assert found.yes_least[index] * (1 - 1e-12) <= base <= max(found.yes_most[index], 1e-300)
    assert found.no_least[index] <= 1 - base <= found.no_most[index]
    assert 1 - other <= found.missed[index]
    assert found.gain[index] <= max(other - base, 1e-300)
    assert found.gain[index] >= (other - base) * Fraction(1 - 1e-6) - Fraction(1e-30)


@pytest.mark.parametrize("yes", [Fraction(1, 3), Fraction(1, 64), Fraction(1, 2**30)])
@pytest.mark.parametrize("messages", [1, 2, 7, 30])
def test_counting_a_batch_encloses_the_exact_probabilities(yes, messages):
    for lift in (1 - 2 * yes, (1 - yes) / 1000, Fraction(1, 2**50)):
        yes, lift = Fraction(float(yes)), Fraction(float(lift))  # as they are handed over
        miss = 1 - yes - lift
        found = counted(float(yes), float(lift), float(miss), messages)
        alone, others = bernoulli(messages, yes), bernoulli(messages - 1, yes)
        for index in range(messages):
            c = index + 1
            base = sum(alone[c:])
            other = sum(others[c:]) + others[c - 1] * (yes + lift)
            enclose(found, index, base, other)


@pytest.mark.parametrize("times", [2, 3, 20])
@pytest.mark.parametrize("lift", [Fraction(1, 2), Fraction(1, 100), Fraction(1, 2**40)])
def test_asking_again_encloses_the_exact_probabilities(times, lift):
    yes = Fraction(1, 8)
    lift = Fraction(float(lift))
    one = answers(float(yes), float(lift), float(1 - yes - lift))
    every = Questions(*(np.repeat(values, times) for values in one._values()))
    found = every._at_least(np.arange(1.0, times + 1.0), times)
    base, other = bernoulli(times, yes), bernoulli(times, yes + lift)
    for m in range(1, times + 1):
        q, p = sum(base[m:]), sum(other[m:])
        assert found.yes_least[m - 1] <= q <= found.yes_most[m - 1]
        assert found.no_least[m - 1] <= 1 - q <= found.no_most[m - 1]
        assert 1 - p <= found.missed[m - 1]
        assert found.gain[m - 1] <= p - q
        # The difference of the tails, or the integral's lesser end, is never far off.
        assert found.gain[m - 1] >= (p - q) * Fraction(999, 1000)


def test_sampling_scales_the_gain_and_mixes_what_is_missed():
    base, rate = answers(0.25, 0.5, 0.25), 0.01
    found = base.sampled(rate)
    assert found.gain[0] == pytest.approx(rate * 0.5, rel=1e-7)
    assert found.missed[0] == pytest.approx(0.99 * 0.75 + 0.01 * 0.25, rel=1e-7)
    assert found.missed[0] >= 0.99 * 0.75 + 0.01 * 0.25
    assert found.gain[0] <= rate * 0.5


@pytest.mark.parametrize("distance", [1e-6, 0.1, 1.0, 5.0, 30.0, 60.0])
def test_shifted_noise_has_the_analytic_epsilon(distance):
    # Balle & Wang 2018, Theorem 8: delta = Phi(d/2 - e/d) - e^e Phi(-d/2 - e/d).
    def phi(x):
        return 0.5 * math.erfc(-x / math.sqrt(2.0))

    for share in (0.5, 1.0, 2.0):
        epsilon = share * max(distance, 0.5 * distance * distance)
        first, second = 0.5 * distance - epsilon / distance, -0.5 * distance - epsilon / distance
        delta = phi(first) - math.exp(epsilon) * phi(second) if epsilon < 700 else 0.0
        if not 1e-12 < delta < 0.999:
            continue
        found = shifted(distance).epsilon(delta)
        assert epsilon * 0.99 - 1e-9 <= found <= epsilon * (1 + 1e-6)


def test_nothing_that_computes_upper_bounds_is_used():
    for module, allowed in ((questions, {"raydp_sim.privacy.floors.tails"}), (tails, set())):
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        names = {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert {name for name in names if name.startswith("raydp_sim")} == allowed
