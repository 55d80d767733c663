"""Composition of (epsilon, delta) guarantees: basic, Dwork et al., Kairouz-Oh-Viswanath."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from raydp_sim.privacy.curves.binomials import (
    bernstein,
    log_binomial,
    log_tail_above,
    log_tail_below,
    rounding,
)

Kind = Literal["basic", "dwork", "kov", "kov_exact"]


def compose(epsilon: float, times: int, slack: float, kind: Kind = "kov") -> float:
    """Return the epsilon of `times` adaptive uses of an epsilon-DP mechanism, at delta `slack`.

    basic: T epsilon. dwork: 000 Lemma 2.1.2. kov: 004 Theorem 3.3.3. kov_exact: the smallest of all
    (Kairouz, Oh & Viswanath 2015, Theorem 3.3). exact <= kov <= dwork. `total_delta` has the delta.

    Args:
        epsilon: of one use, >= 0.
        times: T >= 0.
        slack: delta' in (0, 1); not used by basic.
        kind: which theorem.

    Example:
        >>> round(compose(0.1, 100, 1e-6, "kov"), 6)
        5.756106
    """
    if kind == "kov_exact":
        return kov_exact(epsilon, times, slack)
    return compose_unequal([(epsilon, times)], slack, kind)


def compose_unequal(uses: Sequence[tuple[float, int]], slack: float, kind: Kind = "kov") -> float:
    """Return the epsilon of different mechanisms, each used some times.

    Kairouz, Oh & Viswanath 2015, Theorem 3.5 for kov; the same sums for dwork.

    Args:
        uses: (epsilon >= 0, times >= 0) each.
        slack: delta' in (0, 1).
        kind: basic, dwork or kov.

    Example:
        >>> round(compose_unequal([(0.1, 50), (0.1, 50)], 1e-6), 6)
        5.756106
    """
    if kind != "basic" and not 0.0 < slack < 1.0:
        raise ValueError(f"slack is {slack}; it must lie in (0, 1)")
    for epsilon, times in uses:
        _check(epsilon, times)
    total = math.fsum(epsilon * times for epsilon, times in uses)
    if kind == "basic" or total == 0.0:
        return total
    squares = math.fsum(times * epsilon**2 for epsilon, times in uses)
    spread = math.sqrt(-2.0 * squares * math.log(slack))
    if kind == "dwork":
        return spread + math.fsum(times * epsilon * math.expm1(epsilon) for epsilon, times in uses)
    if kind != "kov":
        raise ValueError(f"kind is {kind!r}; choose one of basic, dwork, kov")
    drift = math.fsum(times * epsilon * math.tanh(epsilon / 2.0) for epsilon, times in uses)
    other = math.sqrt(2.0 * squares * math.log(math.e + math.sqrt(squares) / slack))
    return min(total, drift + other, drift + spread)


def kov_exact(epsilon: float, times: int, slack: float) -> float:
    """Return the least epsilon of T-fold composition, rounded up by about 1e-9 of itself.

    Kairouz, Oh & Viswanath 2015, Theorem 3.3: T uses of randomized response are the worst case. The
    sum is over counts around the mean, beyond which by Bernstein's inequality about e^-40 slack is
    left; smaller counts have smaller losses, so they are charged at the least loss that is summed,
    or left out where that is negative; larger ones at a delta of 1. `rounding(T)` of the sum is
    added.

    Example:
        >>> round(kov_exact(0.1, 100, 1e-6), 6)
        4.774568
    """
    _check(epsilon, times)
    if not 0.0 < slack < 1.0:
        raise ValueError(f"slack is {slack}; it must lie in (0, 1)")
    if epsilon == 0.0 or times == 0:
        return 0.0
    stays = 1.0 / (1.0 + math.exp(-epsilon))
    reach = bernstein(times, stays, 40.0 - math.log(slack))
    first = max(0, math.floor(times * stays - reach))
    last = min(times, math.ceil(times * stays + reach))
    l = np.arange(first, last + 1, dtype=np.float64)  # noqa: E741, the theorem's letter
    losses = (2.0 * l - times) * epsilon
    masses = np.exp(log_binomial(float(times), stays, l))
    masses[0] += math.exp(log_tail_below(first, times, stays))
    above = math.exp(log_tail_above(last, times, stays))
    kept = losses > 0.0
    losses, masses = losses[kept], masses[kept] * (1.0 + rounding(times))

    def delta(epsilon: float) -> float:
        start = int(np.searchsorted(losses, epsilon, side="right"))
        return float(masses[start:] @ -np.expm1(epsilon - losses[start:])) + above

    low, high = 0.0, min(times * epsilon, compose(epsilon, times, slack, "kov"))
    if delta(low) <= slack:
        return 0.0
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if delta(middle) <= slack:
            high = middle
        else:
            low = middle
    return high * (1.0 + 1e-13)


def total_delta(uses: Sequence[tuple[float, int]], slack: float = 0.0) -> float:
    """Return 1 - (1 - slack) prod (1 - delta)^times, the delta that goes with kov.

    Example:
        >>> round(total_delta([(1e-9, 1000)], 1e-6), 12)
        1.999999e-06
    """
    if any(delta >= 1.0 for delta, times in uses if times) or slack >= 1.0:
        return 1.0
    return -math.expm1(math.fsum(times * math.log1p(-d) for d, times in uses) + math.log1p(-slack))


def _check(epsilon: float, times: int) -> None:
    if not 0.0 <= epsilon < math.inf:
        raise ValueError(f"epsilon is {epsilon}; it must be finite and >= 0")
    if times < 0 or times != int(times):
        raise ValueError(f"times is {times}; it must be a whole number >= 0")
