"""Batches whose clients differ in epsilon0, and batches in which some clients collude.

Mixed batches. Let client j run randomizer R_j, and let client i with its laws P0, P1 be the victim.
The arguments of clones.py and blanket.py need of every other client j only a measure that it draws
from whatever its input is, so each may have its own probability g_j of doing so; the number that
hides the victim is then a sum of independent coins. What g_j may be:

* named "2rr", "krr" or "rbin" (one alphabet, different epsilon0): the least probability of R_j is
  that of its blanket, uniform over the alphabet for all clients, so g_j is that of variation.py at
  epsilon0_j and the victim's classes are those at epsilon0_i.
* any randomizers that are jointly private: R_i(x) <= e^max(epsilon0_i, epsilon0_j) R_j(x') for all
  inputs. Then R_j >= e^-max (P0 + P1)/2 and g_j = e^-max(epsilon0_i, epsilon0_j). This is an
  assumption about the set of randomizers, not implied by each being epsilon0_j-LDP: Laplace noise
  of two scales has unbounded ratios, and two randomizers may use different messages. Hence
  `jointly_private=True` must be said. It holds for k-RR of different epsilon0: the largest ratio,
  e^a (e^b + k - 1)/(e^a + k - 1), is at most e^max(a, b).

The sum of coins with probabilities g_j is stochastically at least Bin(s, g), g the geometric mean
of any s of them (Boland, Singh & Cukic 2002, "Stochastic orders in partition and random testing of
software": Bin(s, g) is below the sum if and only if g is at most the geometric mean). A divergence
does not increase with the number that hides, so the s clients with the largest g_j are used, s
chosen for the largest mean s g.

Collusion. Clients who share their messages with the observer hide nobody. With `honest_fraction` h
only floor(h n) clients, never rounded up and at least the victim, count.
"""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

from raydp_sim.privacy.curves.binomials import binomial_buckets
from raydp_sim.privacy.curves.clones import check_batch, clone_pair
from raydp_sim.privacy.curves.tilted import TiltedCoins
from raydp_sim.privacy.curves.variation import blanket_of
from raydp_sim.privacy.errors import Unsupported

_COMMON_BLANKET = ("2rr", "krr", "rbin")


def honest_clients(n: int, honest_fraction: float) -> int:
    """Return how many of n clients may be taken to hide the victim, itself included.

    Args:
        n: clients of the batch, >= 1.
        honest_fraction: in [0, 1]; read as the decimal it is written as, so 0.7 of 10 is 7.

    Example:
        >>> honest_clients(1001, 0.5)
        500
    """
    check_batch(0.0, n)
    if not 0.0 <= honest_fraction <= 1.0:
        raise ValueError(f"honest_fraction is {honest_fraction}; it must be in [0, 1]")
    return max(1, math.floor(Fraction(repr(float(honest_fraction))) * int(n)))


def fewest(probabilities: Iterable[tuple[float, int]]) -> tuple[int, float]:
    """Return (s, g) such that Bin(s, g) is stochastically below the sum of all the coins.

    Whichever s is taken is valid, and g is rounded down.

    Args:
        probabilities: pairs of a coin's probability in [0, 1] and the number of such coins.

    Example:
        >>> s, g = fewest([(0.5, 100), (0.001, 3)])
        >>> (s, round(g, 6))
        (100, 0.5)
    """
    best, count, logs, kinds = (0, 0.0), 0, 0.0, 0
    for g, number in sorted(probabilities, reverse=True):
        if g <= 0.0 or number == 0:
            continue
        count += number
        logs += number * math.log(g)
        kinds += 1
        # Rounding must not lift the geometric mean: every sum rounds at 1e-16 of the last.
        error = 4e-16 * (kinds + 4) * (1.0 - logs / count)
        mean = math.exp(logs / count) * (1.0 - error)
        if count * mean > best[0] * best[1]:
            best = (count, mean)
    return best


def mixed_pair(
    epsilon0: float,
    others: Mapping[float, int],
    randomizer: str | None = None,
    alphabet: int | None = None,
    jointly_private: bool = False,
) -> TiltedCoins:
    """Return the dominating pair of one victim among others of different epsilon0.

    Args:
        epsilon0: of the victim, >= 0.
        others: number of other honest clients per epsilon0.
        randomizer: "2rr", "krr" or "rbin", which all clients run; None: see `jointly_private`.
        alphabet: of that randomizer.
        jointly_private: for randomizer None: the ratio between any two clients' laws is at most
            e^max of their two epsilon0 (see the module).

    Example:
        >>> round(mixed_pair(1.0, {1.0: 500, 3.0: 499}, "2rr").epsilon(1e-6), 4)
        0.2154
    """
    for value, number in others.items():
        check_batch(value, number + 1)
    check_batch(epsilon0, 1)
    if randomizer is None:
        if not jointly_private:
            raise Unsupported(
                "clients of different epsilon0 need a named randomizer or jointly_private=True: "
                "separate local guarantees do not imply that one client hides another"
            )
        coins = [(math.exp(-max(epsilon0, e)), number) for e, number in others.items()]
        return clone_pair(float(epsilon0), *fewest(coins))
    if randomizer not in _COMMON_BLANKET:
        raise Unsupported(
            f"mixed batches are not proved for {randomizer}, whose blankets differ with epsilon0; "
            f"they are for {', '.join(_COMMON_BLANKET)}"
        )
    coins = [(blanket_of(randomizer, e, alphabet).mass, number) for e, number in others.items()]
    victim = blanket_of(randomizer, float(epsilon0), alphabet)
    count, mean = fewest(coins)
    if victim.share == 0.5:
        return clone_pair(float(epsilon0), count, mean)
    return victim.pair_given(binomial_buckets(count, mean, 60, growth=1.3))


def mixed_epsilon(
    clients: Mapping[float, int],
    delta: float,
    randomizer: str | None = None,
    alphabet: int | None = None,
    jointly_private: bool = False,
    honest_fraction: float = 1.0,
) -> dict[float, float]:
    """Return the epsilon of the clients of each epsilon0; that of the batch is the largest.

    Args:
        clients: number of clients per epsilon0, in one shuffled batch.
        delta: in (0, 1).
        randomizer: see `mixed_pair`.
        alphabet: see `mixed_pair`.
        jointly_private: see `mixed_pair`.
        honest_fraction: of the batch; which clients collude is not known, so those that hide best
            are taken to.

    Example:
        >>> found = mixed_epsilon({1.0: 5000, 3.0: 5000}, 1e-6, "2rr")
        >>> [round(found[e], 3) for e in (1.0, 3.0)]
        [0.063, 0.129]
    """
    found = {}
    for epsilon0, number in clients.items():
        check_batch(epsilon0, max(1, number))
        if number == 0:
            continue
        others = dict(clients) | {epsilon0: number - 1}
        hiding = _without(others, sum(clients.values()), honest_fraction)
        pair = mixed_pair(epsilon0, hiding, randomizer, alphabet, jointly_private)
        found[epsilon0] = pair.epsilon(delta)
    return found


def _without(others: Mapping[float, int], n: int, honest_fraction: float) -> dict[float, int]:
    """Drop the colluding clients, smallest epsilon0 (best hiding) first."""
    drop = n - honest_clients(n, honest_fraction)
    kept = {}
    for epsilon0 in sorted(others):
        gone = min(drop, others[epsilon0])
        drop -= gone
        kept[epsilon0] = others[epsilon0] - gone
    return kept
