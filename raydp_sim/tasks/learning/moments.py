"""How large the estimate of a mean gradient is, and how near the last iterate comes: bounds.

Where every gradient has an l_p norm of at most L, that is, where nothing is clipped, and a report
errs by at most `error` (`Mechanism.worst_mse`). Whoever takes `InverseRoot` steps needs G, the root
of `second_moment`.
"""

import math

import numpy as np

from raydp_sim.privacy.curves.binomials import log_binomial


def of_lengths(p: float, dimension: int) -> float:
    """Return max{d^(1 - 2/p), 1}: no squared l2 norm is larger where l_p norms are at most 1.

    Example:
        >>> of_lengths(math.inf, 8), of_lengths(1.0, 8)
        (8.0, 1.0)
    """
    return float(max(dimension ** (1.0 - 2.0 / p), 1.0))


def second_moment(length: float, p: float, dimension: int, error: float, number: float) -> float:
    """Return the bound on E||estimate||^2: L^2 max{d^(1 - 2/p), 1} + error/number.

    An average of vectors, plus independent errors of mean 0. 000 Lemma 4.3.2 leaves the maximum
    out, and is wrong for p > 2: eight equal entries of 1 and four reports are a counterexample.

    Args:
        length: L.
        p: of the norm.
        dimension: d.
        error: of one report.
        number: of reports, k s; where clients toss coins, 1/`inverse_number`.

    Example:
        >>> second_moment(1.0, math.inf, 8, 100.0, 4)
        33.0
    """
    return length**2 * of_lengths(p, dimension) + error / number


def printed_moment(length: float, p: float, dimension: int, epsilon0: float, number: int) -> float:
    """Return the bound of 001 (31): valid, and looser than `second_moment`.

    Example:
        >>> round(printed_moment(1.0, 2.0, 10, 1.0, 100), 5)
        7.55577
    """
    c0, c = 1.0 / math.tanh(0.5 * epsilon0), 4.0 if p in (1.0, math.inf) else 14.0
    return length**2 * of_lengths(p, dimension) * (1.0 + c * dimension * c0**2 / number)


def inverse_number(clients: int, probability: float) -> float:
    """Return E[1/K; K > 0] of the number K of clients whose coins let them join.

    Example:
        >>> round(inverse_number(10, 0.2), 6)
        0.514884
    """
    numbers = np.arange(1.0, clients + 1.0)
    chances = np.exp(log_binomial(float(clients), probability, numbers))
    return float((chances / numbers).sum())


def last_gap(diameter: float, gradient: float, rounds: int) -> float:
    """Return 2 D G (2 + log T)/sqrt T, which the last iterate's E F - F* is at most.

    Of convex F on a set of diameter D, by steps of D/(G sqrt t) (Shamir & Zhang 2013, Theorem 2).

    Example:
        >>> round(last_gap(2.0, 3.0, 100), 4)
        7.9262
    """
    return 2.0 * diameter * gradient * (2.0 + math.log(rounds)) / math.sqrt(rounds)
