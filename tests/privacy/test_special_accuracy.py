"""How far binomial weights and tails may be off: what the bounds charge for rounding rests on it.

The true values are log-gammas of 60 digits, and tails as sums of ratios in integers of 120 bits.
"""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import betainc, betaincc

from raydp_sim.privacy.curves.binomials import log_binomial

TRIALS = [
    *range(1, 41), 100, 200, 500, 1000, 1074, 2000, 5000, 10**4, 10**5, 10**6, 10**7, 10**8,
]  # fmt: skip
_BITS = 120
# Below, a double has lost its digits, or scipy has: see the last test.
_LEAST = mpmath.mpf("1e-250")


def charge(trials: int) -> float:
    """The largest relative error allowed."""
    return 1e-13 + 1e-14 * math.sqrt(trials)


def log_weight(m: int, p: float, k: int) -> mpmath.mpf:
    """Return log Pr[Bin(m, p) = k], where p is the double itself."""
    with mpmath.workdps(60):
        choose = mpmath.loggamma(m + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(m - k + 1)
        return choose + k * mpmath.log(mpmath.mpf(p)) + (m - k) * mpmath.log1p(-mpmath.mpf(p))


def log_tail(m: int, p: float, k: int) -> mpmath.mpf:
    """Return log Pr[Bin(m, p) >= k] for k above the mean."""
    with mpmath.workdps(60):
        odds = int(mpmath.mpf(p) / (1 - mpmath.mpf(p)) * 2**_BITS)
        term, total, i = 1 << _BITS, 0, k
        while term > total >> 80 and i <= m:
            total += term
            term = (term * (m - i) // (i + 1)) * odds >> _BITS
            i += 1
        return log_weight(m, p, k) + mpmath.log(mpmath.mpf(total) / 2**_BITS)


def places(m: int, p: float, low: float) -> list[int]:
    """Return values of k from `low` to 37 standard deviations above the mean, and the end."""
    sd = math.sqrt(m * p * (1.0 - p))
    reach = np.concatenate([np.linspace(low, 3.0, 13), np.linspace(3.0, 37.0, 18)])
    found = {min(m, max(0, round(m * p + float(z) * sd))) for z in reach} | {m}
    return sorted(found)


def relative(value: float, log_true: mpmath.mpf) -> float:
    with mpmath.workdps(60):
        return abs(float(mpmath.mpf(value) / mpmath.exp(log_true) - 1))


@pytest.mark.parametrize("m", TRIALS)
def test_tails_of_fair_coins(m):
    for k in places(m, 0.5, 0.0):
        k = max(k, m // 2 + 1)
        true = log_tail(m, 0.5, k)
        if true > mpmath.log(_LEAST):
            assert relative(betainc(float(k), m - k + 1.0, 0.5), true) <= charge(m), k


@pytest.mark.parametrize("m", TRIALS)
def test_tails_of_clones(m):
    # Upper tails of Bin(m, p), and the same as lower tails of Bin(m, 1 - p), p and 1 - p doubles.
    for p in (0.5**7, 0.125, 0.375, 0.875):
        for k in places(m, p, 0.1):
            if k > m * p and (true := log_tail(m, p, k)) > mpmath.log(_LEAST):
                assert relative(betainc(float(k), m - k + 1.0, p), true) <= charge(m), (p, k)
                below = betaincc(m - k + 1.0, float(k), 1.0 - p)
                assert relative(below, true) <= charge(m), (p, k)


@pytest.mark.parametrize("p", [0.5, math.exp(-1.0), 0.99, 1e-3, math.exp(-12.0)])
@pytest.mark.parametrize("m", TRIALS)
def test_binomial_weights(m, p):
    k = np.array(places(m, p, -37.0), dtype=np.float64)
    for value, at in zip(log_binomial(float(m), p, k), k, strict=True):
        true = log_weight(m, p, int(at))
        if true > mpmath.log(_LEAST):
            assert abs(float(mpmath.mpf(float(value)) - true)) <= charge(m), at


def test_tails_of_fair_coins_that_are_lost():
    # For m from 1075 on 2^-m underflows within scipy, and tails of fewer than 40 terms come out as
    # 0. None of these is as large as the least that the tests above ask for.
    for m in range(1060, 1300, 5):
        for k in range(m - 40, m + 1):
            if betainc(float(k), m - k + 1.0, 0.5) == 0.0:
                assert log_tail(m, 0.5, k) < mpmath.log(_LEAST), (m, k)
