"""How well split-and-mix hides everything but the sum, with proof and explicit constants.

n clients hold x_1..x_n in Z_q. Each splits its number into m shares, uniform given that they add up
to it, and one shuffler mixes all n m shares. For every x the mixed shares are within the distance
below of uniform numbers with the same sum (Ishai, Kushilevitz, Ostrovsky & Sahai 2006; the argument
is that of Balle, Bell, Gascon & Nissim 2020, with the components of the graph counted closely).

1. From any x to a random one. Let r_i be client i's first share, uniform, and give the observer all
   r in order, which only helps. What is left are k = m - 1 shares of y = x - r, and y is uniform.
   So the distance is at most the mean over uniform y of that of k mixed shares of y from uniform
   numbers W with the sum of y.

2. From distance to collisions. Choosing y and its shares is choosing W in Z_q^(nk) uniformly and,
   apart from it, a random assignment of its entries to clients, k each; y is then a function of
   both. The mean over y of the distance of W is the mean over W of the distance of y from uniform
   on the q^(n-1) vectors with that sum, at most sqrt(q^(n-1) P - 1) / 2 by Cauchy and Jensen, where
   P is the probability that two independent assignments of one W give the same y. Draw an edge per
   entry from its first to its second client: a graph with k edges out of and into every vertex,
   matched uniformly. The assignments agree if W, as a flow on the edges, is balanced at every
   vertex. For a graph with c components that is n - c independent conditions over any Z_q, so
   P = E q^(c-n), and the distance is at most sqrt(E q^(c-1) - 1) / 2.

3. Few components. With a_j = (jk)! / j!, the chance of c components is at most the sum over j_1 +
   ... + j_c = n of a_(j_1) ... a_(j_c) / (c! a_n). For k >= 2 the a_j are log-convex, so for c = 2
   the two end terms are a_1 a_(n-1) each, and each of the n - 3 between is at most a_2 a_(n-2),
   which is at most (n-1)/2 (2/(n-1))^k times a_1 a_(n-1). All together: at most L a_1 a_(n-1) with
   L = 4 for k = 2 and L = 5/2 for k >= 3. By induction over c, the sum of the products of c parts
   is at most (L a_1)^(c-1) a_(n-c+1), so

       E q^(c-1) - 1 <= sum over c >= 2 of (L q)^(c-1) / c! prod_(i=n-c+2..n) i / binomial(ik, k).

More clients only add shares that do not depend on these, so a bound for n holds for every larger n.
"""

import math
from functools import lru_cache

import numpy as np
import scipy

# A bound for so many clients serves for more; it is already small with few messages.
_MOST_CLIENTS = 1 << 18
# The logarithm of a factorial errs by less than this share of it.
_ROUNDING = 1e-15


@lru_cache(maxsize=256)
def log_distance(n: int, messages: int, log_q: float) -> float:
    """Return a bound on the log of the statistical distance of mixed shares from ideal ones.

    Args:
        n: clients that follow the protocol, >= 1.
        messages: shares of each, >= 3.
        log_q: natural logarithm of the modulus.

    Example:
        >>> round(log_distance(10_000, 7, 21 * math.log(2.0)) / math.log(2.0), 2)
        -26.57
    """
    if messages < 3:
        raise ValueError(f"messages is {messages}; nothing is proved for fewer than 3")
    n, k = min(n, _MOST_CLIENTS), messages - 1
    if n == 1:
        return -math.inf  # one client's mixed shares are uniform given their sum
    # Every factor is rounded up by what its factorials may err by.
    rounding = 1e-5 + 4.0 * _ROUNDING * math.lgamma(n * k + 1.0)
    factor = math.log(4.0 if k == 2 else 2.5) + log_q + rounding
    i = np.arange(n, 1, -1, dtype=np.float64)
    choices = (
        scipy.special.gammaln(i * k + 1.0)
        - scipy.special.gammaln(i * k - k + 1.0)
        - scipy.special.gammaln(k + 1.0)
    )
    terms = np.cumsum(factor + np.log(i) - choices) - scipy.special.gammaln(np.arange(3.0, n + 2.0))
    return min(0.0, 0.5 * float(scipy.special.logsumexp(terms)) - math.log(2.0))


def least_messages(n: int, log_q: float, log_allowed: float, most: int) -> int | None:
    """Return the fewest messages, up to `most`, that keep the distance within what is allowed.

    Example:
        >>> least_messages(10_000, 21 * math.log(2.0), math.log(1e-7), 100)
        7
    """
    for messages in range(3, most + 1):
        # The first term is quick to ask, and without it the sum need not be.
        possible = n == 1 or _first_term(n, messages, log_q) <= log_allowed
        if possible and log_distance(n, messages, log_q) <= log_allowed:
            return messages
    return None


def _first_term(n: int, messages: int, log_q: float) -> float:
    """Return what two components alone contribute to the bound."""
    i, k = float(min(n, _MOST_CLIENTS)), messages - 1
    choices = math.lgamma(i * k + 1.0) - math.lgamma(i * k - k + 1.0) - math.lgamma(k + 1.0)
    two = math.log(4.0 if k == 2 else 2.5) + log_q + math.log(i) - choices - math.log(2.0)
    return 0.5 * two - math.log(2.0)
