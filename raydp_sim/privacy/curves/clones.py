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

Given C this is the tilted coin pair (tilted.py) with m = C + 1 coins and h = tanh(epsilon0/2). Its
divergence does not increase with C, so a bucket of values of C may stand at its least element.
"""

import math
from functools import lru_cache

import numpy as np

from raydp_sim.privacy.curves.binomials import binomial_buckets
from raydp_sim.privacy.curves.tilted import TiltedCoins


def check_batch(epsilon0: float, n: int) -> None:
    """Raise ValueError unless epsilon0 >= 0 is finite and n >= 1 is an integer."""
    if not 0.0 <= epsilon0 < math.inf:
        raise ValueError(f"epsilon0 is {epsilon0}; it must be finite and >= 0")
    if not (n >= 1 and n == int(n)):
        raise ValueError(f"n is {n}; it must be an integer >= 1")


@lru_cache(maxsize=64)
def clone_pair(epsilon0: float, others: int, g: float, count: int = 6000) -> TiltedCoins:
    """Return the clone pair of a victim among `others` that are clones with probability g each.

    Only for those who have shown g (P0 + P1)/2 <= R_i, see the module; others use `clones_*`.

    Args:
        epsilon0: of the victim, >= 0.
        others: other clients, >= 0.
        g: clone probability.
        count: buckets of C around its mean; 6000 resolve epsilon to 5e-7, 750 to about 1e-5.

    Example:
        >>> len(clone_pair(1.0, 9, math.exp(-1.0)).coins)
        10
    """
    growth = 1.02 if count > 200 else 1.3
    counts = binomial_buckets(others, g, count, relative=1e-6, growth=growth)
    tilt = np.full_like(counts.low, math.tanh(0.5 * epsilon0))
    return TiltedCoins(counts.low + 1.0, tilt, counts.log_mass, epsilon0)


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
    return clone_pair(float(epsilon0), int(n) - 1, math.exp(-epsilon0)).delta(epsilon)


def clones_epsilon(epsilon0: float, n: int, delta: float) -> float:
    """Return an epsilon such that n shuffled epsilon0-LDP messages are (epsilon, delta)-DP.

    Args:
        epsilon0: >= 0.
        n: shuffled messages, >= 1.
        delta: in (0, 1), down to 1e-300.

    Example:
        >>> round(clones_epsilon(4.0, 100_000, 1e-6), 9)
        0.169769748
    """
    check_batch(epsilon0, n)
    return clone_pair(float(epsilon0), int(n) - 1, math.exp(-epsilon0)).epsilon(delta)


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
    pair = clone_pair(float(epsilon0), int(n) - 1, math.exp(-epsilon0), count=750)
    return pair.rdp(float(alpha))
