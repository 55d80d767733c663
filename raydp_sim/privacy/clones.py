"""Amplification by shuffling through clones, evaluated numerically for any epsilon0-LDP randomizer.

Theorem (Feldman, McMillan & Talwar 2021, "Hiding among the clones", Theorem 3.1 and its proof).
Let n clients each send one message of an epsilon0-LDP randomizer and let the messages be shuffled.
With E = e^epsilon0, C ~ Bin(n-1, 1/E), A ~ Bin(C, 1/2) and D ~ Bern(E/(E+1)), every divergence
that obeys the data-processing inequality is, between neighbours that replace one client's data, at
most that of P = (A + D, C - A + 1 - D) and Q = (A + 1 - D, C - A + D).

Argument. Let P0, P1 be the laws of the victim's message under its two inputs. Then Q0 = (E P0 -
P1)/(E-1) and Q1 = (E P1 - P0)/(E-1) are laws, P0 = (E Q0 + Q1)/(E+1), P1 = (Q0 + E Q1)/(E+1) and
Q0 + Q1 = P0 + P1. Every other client's law R_i is at least e^-epsilon0 (P0 + P1)/2, so it is a
mixture that draws from (Q0 + Q1)/2 with probability `g` = 1/E (it is then a clone) and from a rest
otherwise. Given the numbers N0, N1 of draws from Q0 and Q1, the multiset of messages is N0 draws of
Q0, N1 of Q1 and one rest draw for each client of a uniform subset of n - N0 - N1 others: the same
kernel under both inputs. The argument uses of g only that g (P0 + P1)/2 <= R_i, so a larger g
is allowed exactly where that is shown; `variation.py` and `mixed.py` do so.

With m = C + 1, N0 ~ Bin(m, 1/2) =: R, t = (2 N0 - m)/m and h = tanh(epsilon0/2), the pair is
P = R (1 + h t), Q = R (1 - h t) given C, symmetric in the two directions, and its divergence does
not increase with C: a bucket of values of C may stand at its least element.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc

from raydp_sim.privacy.binomials import Buckets, Floats, binomial_buckets, log_binomial

# Rounding of the special functions is charged to the bound, relatively.
_ROUNDING = 1e-11
# What may underflow in the sums over C and N0 is charged to delta.
_UNDERFLOW = 1e-305
# Charged to sums over N0, whose terms of both signs cancel.
_SERIES = 1e-9


def check_batch(epsilon0: float, n: int) -> None:
    """Raise ValueError unless epsilon0 >= 0 is finite and n >= 1 is an integer."""
    if not 0.0 <= epsilon0 < math.inf:
        raise ValueError(f"epsilon0 is {epsilon0}; it must be finite and >= 0")
    if n < 1 or n != int(n):
        raise ValueError(f"n is {n}; it must be an integer >= 1")


@lru_cache(maxsize=64)
def _counted(n: int, g: float) -> Buckets:
    """Return the law of C for delta: relative error of epsilon below 5e-7."""
    return binomial_buckets(n - 1, g, count=6000, relative=1e-6)


def delta_of_counts(counts: Buckets, epsilon0: float, epsilon: float) -> float:
    """Return an upper bound on delta(epsilon) of the clone pair with C distributed as `counts`.

    Given m = C + 1 the best event is N0 >= k with k the first value at which P > e^epsilon Q, and
    sum over x >= k of R(x) t = (k/m) R(k), hence

        delta_m = h (1 + e^epsilon) (k/m) R(k) - (e^epsilon - 1) Pr[N0 >= k].
    """
    if epsilon >= epsilon0:
        return 0.0
    h = math.tanh(0.5 * epsilon0)
    m = counts.low + 1.0
    k = np.floor(0.5 * m * (1.0 + math.tanh(0.5 * epsilon) / h)) + 1.0
    # k = m + 1 only by rounding, at epsilon close to epsilon0, where the exact term is below 1e-15.
    k = np.minimum(k, m)
    at_k = np.exp(log_binomial(m, 0.5, k))
    tail = betainc(k, m - k + 1.0, 0.5)
    gain = h * (2.0 + math.expm1(epsilon)) * (k / m) * at_k
    value = gain * (1.0 + _ROUNDING) - math.expm1(epsilon) * tail * (1.0 - _ROUNDING)
    total = float(np.exp(counts.log_mass) @ np.maximum(value, 0.0))
    return min(1.0, total * (1.0 + _ROUNDING) + _UNDERFLOW)


def epsilon_of_counts(counts: Buckets, epsilon0: float, delta: float) -> float:
    """Return the least epsilon (rounded up) at which `delta_of_counts` is at most delta."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta}; it must be in (0, 1)")
    if epsilon0 == 0.0 or delta_of_counts(counts, epsilon0, 0.0) <= delta:
        return 0.0
    target = math.log(delta)

    def excess(epsilon: float) -> float:
        value = delta_of_counts(counts, epsilon0, epsilon)
        return (math.log(value) if value > 0.0 else -800.0) - target

    high = epsilon0
    while excess(0.5 * high) <= 0.0:
        high *= 0.5
    low = 0.5 * high
    if high == epsilon0 and excess(high * (1.0 - 1e-9)) > 0.0:
        return epsilon0
    root = float(brentq(excess, low, high, xtol=1e-10 * high, rtol=1e-10))
    while excess(root) > 0.0:
        root = min(epsilon0, root * (1.0 + 1e-9))
    return root


def clones_delta(epsilon0: float, n: int, epsilon: float) -> float:
    """Return an upper bound on delta at `epsilon` of n shuffled epsilon0-LDP messages.

    Proved for every epsilon0-LDP randomizer and replace-one neighbours (see the module). Buckets of
    C stand at their least element and no tail is dropped, so the value errs upwards.

    Args:
        epsilon0: >= 0.
        n: shuffled messages, >= 1.
        epsilon: >= 0.

    Example:
        >>> round(clones_delta(1.0, 1000, 0.1), 8)
        0.00035277
    """
    check_batch(epsilon0, n)
    if not epsilon >= 0.0:
        raise ValueError(f"epsilon is {epsilon}; it must be >= 0")
    return delta_of_counts(_counted(int(n), math.exp(-epsilon0)), epsilon0, epsilon)


def clones_epsilon(epsilon0: float, n: int, delta: float) -> float:
    """Return an epsilon such that n shuffled epsilon0-LDP messages are (epsilon, delta)-DP.

    Args:
        epsilon0: >= 0.
        n: shuffled messages, >= 1.
        delta: in (0, 1), down to 1e-300.

    Example:
        >>> round(clones_epsilon(4.0, 100_000, 1e-6), 9)
        0.169769747
    """
    check_batch(epsilon0, n)
    return epsilon_of_counts(_counted(int(n), math.exp(-epsilon0)), epsilon0, delta)


def _moment_terms(m: float, h: float, alpha: float) -> tuple[Floats, Floats]:
    """Return log R(x) and log((1+ht)^alpha (1-ht)^(1-alpha)) on the x that matter, and no fewer.

    Away from the ends the sum over x is taken with a step of sd/8: by Poisson summation the
    trapezoidal sum of a weight with the binomial's local width, at least 0.43 sd where x <= 0.95 m,
    errs by less than e^-200, relatively.
    """
    sd = 0.5 * math.sqrt(m)
    # Past t = sqrt(2 (B + 60)/m) the whole tail is below e^-60 of 1, B the largest exponent.
    reach = math.ceil(0.5 * math.sqrt(2.0 * m * (_largest(h, alpha) + 60.0)))
    low, high = max(0.0, math.floor(0.5 * m) - reach), min(m, math.ceil(0.5 * m) + reach)
    step = max(1, math.floor(sd / 8.0)) if high <= 0.95 * m else 1
    x = np.arange(low, high + 1.0, step)
    u = np.clip(h * (2.0 * x - m) / m, -h, h)
    exponent = alpha * np.log1p(u) - (alpha - 1.0) * np.log1p(-u)
    return log_binomial(m, 0.5, x) + math.log(step), exponent


def _largest(h: float, alpha: float) -> float:
    """Return log phi(1), the most a value of C can contribute."""
    return (alpha - 1.0) * 2.0 * math.atanh(h) + math.log1p(h)


def rdp_of_counts(counts: Buckets, epsilon0: float, alpha: float) -> float:
    """Return an upper bound on the order-alpha Renyi divergence of the clone pair.

    It is log(1 + E_C sum_x R(x) (phi(t) - 1))/(alpha - 1), phi(t) = (1+ht)^alpha (1-ht)^(1-alpha).
    A bucket of C is replaced by its largest value phi(1) only where that is e^-40 of the rest.
    """
    h = math.tanh(0.5 * epsilon0)
    largest = _largest(h, alpha)
    bracket = -math.inf
    for i in np.argsort(-counts.log_mass):
        log_mass = float(counts.log_mass[i])
        if log_mass + largest <= bracket - 40.0:
            bracket = float(np.logaddexp(bracket, log_mass + largest))
            continue
        weight, exponent = _moment_terms(float(counts.low[i]) + 1.0, h, alpha)
        top = float(np.max(weight + exponent))
        if float(exponent.max()) < 600.0:
            value = float(np.exp(weight) @ np.expm1(exponent))
            log_value = math.log(max(value, 0.0) * (1.0 + _SERIES) + 1e-300)
        else:
            log_value = top + math.log(float(np.exp(weight + exponent - top).sum()))
        bracket = float(np.logaddexp(bracket, log_mass + log_value))
    value = float(np.logaddexp(0.0, bracket)) / (alpha - 1.0)
    return min(value * (1.0 + _SERIES), epsilon0)


@lru_cache(maxsize=64)
def _coarse(n: int, g: float) -> Buckets:
    return binomial_buckets(n - 1, g, count=400)


@lru_cache(maxsize=4096)
def clones_rdp(alpha: float, epsilon0: float, n: int) -> float:
    """Return an upper bound on the order-alpha RDP of n shuffled epsilon0-LDP messages.

    The Renyi divergence of the clone pair, for every epsilon0-LDP randomizer and replace-one
    neighbours. All values of C count, down to 0: at large orders the mass moves far below the mean.

    Args:
        alpha: real, > 1.
        epsilon0: >= 0.
        n: shuffled messages, >= 1.

    Example:
        >>> round(clones_rdp(5, 1.0, 100), 9)
        0.058493693
    """
    check_batch(epsilon0, n)
    if not 1.0 < alpha < math.inf:
        raise ValueError(f"alpha is {alpha}; it must be finite and > 1")
    if epsilon0 == 0.0:
        return 0.0
    return rdp_of_counts(_coarse(int(n), math.exp(-epsilon0)), epsilon0, float(alpha))
