"""How large the local loss of a report may be, so that a shuffled batch is (epsilon, delta)-DP.

The learner assigns slots s = 1, ..., n with actions a_s, which depend on earlier batches; a secret
uniform permutation gives each client a slot, and the reports are released in the order of slots.
This is a permutation of the clients' data (what each would earn with every action) followed by a
fixed sequence of epsilon0-LDP randomizers, one per slot: "earn with a_s, clip, add noise". That is
what Feldman, McMillan and Talwar 2021, Theorem 3.1, is stated for: its randomizers may differ from
slot to slot and depend on earlier outputs.

Why the numerical bound `pld-clones` holds here, whose proof speaks of a multiset of messages of one
law (`privacy.curves.clones`): let P0_s, P1_s be the laws of the victim's report in slot s under its
two inputs, and with E = e^epsilon0 let Q0_s, Q1_s be the laws with P0_s = (E Q0_s + Q1_s)/(E+1) and
P1_s = (Q0_s + E Q1_s)/(E+1). Whoever else is in slot s has a law of at least (P0_s + P1_s)/(2E) =
(Q0_s + Q1_s)/(2E) there: a mixture that draws from Q0_s or Q1_s with probability 1/(2E) each, *the
same for every slot and client*, and from a rest otherwise. So who is a clone of which kind can be
drawn before slots are assigned, and given the numbers N0, N1 of either kind (the victim is one of
them) the assignment makes every choice of N0 and N1 slots equally likely, and of the others for the
rest. From (N0, N1) on, the reports in the order of slots are drawn alike under both inputs, and
(N0, N1) has the laws of the clone pair. Of all bounds for `Shuffle(epsilon0, n)` with an unnamed
randomizer its exact delta is the least for one shuffle. Bounds that know one law of all messages do
not hold: slots have different laws, and the slot tells which.

Actions of later batches are functions of earlier outputs, and their clients are others: given what
was released before, each batch is such a shuffle, and the victim is in one of them.

A slot may stay empty; then n is the number of those filled. It rests on clients staying away
without regard to the slot that they were given.
"""

import math
from functools import lru_cache
from typing import Literal

from raydp_sim.errors import bad_field
from raydp_sim.privacy.accountant import calibrate
from raydp_sim.privacy.bound import find_run
from raydp_sim.privacy.bounds.closed_forms import fmt_closed
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import Shuffle
from raydp_sim.tasks.bandits.checks import check_delta, check_epsilon

Amplification = Literal["clones", "closed"]
_BOUND = "pld-clones"
_LARGEST = 20.0


@lru_cache(maxsize=4096)
def batch_epsilon(epsilon0: float, n: int, delta: float) -> float:
    """Return an epsilon such that a batch of n slots is (epsilon, delta)-DP; never above epsilon0.

    Example:
        >>> round(batch_epsilon(1.0, 1000, 1e-6), 6)
        0.182412
    """
    if math.isinf(epsilon0):
        return math.inf
    if epsilon0 > _LARGEST:
        return epsilon0  # nothing is gained, and nothing has to be computed
    return min(epsilon0, find_run(_BOUND).epsilon([(Shuffle(epsilon0, n), 1)], delta).epsilon)


@lru_cache(maxsize=4096)
def epsilon0_for_batch(epsilon: float, n: int, delta: float, by: Amplification = "clones") -> float:
    """Return the local loss of reports whose batch of n slots is (epsilon, delta)-DP.

    Never below epsilon: the batch is a function of epsilon0-LDP reports. Early batches of a few
    clients gain nothing.

    Args:
        epsilon: > 0 of the batch.
        n: reports that the batch surely has, >= 1.
        delta: in (0, 1).
        by: `clones`, numerically; `closed`, the inverse of 000 (6.10), which the text uses without
            its condition epsilon0 <= log(n/(16 log(2/delta))), beyond which it is false.

    Example:
        >>> round(epsilon0_for_batch(0.1, 10_000, 1e-6, "closed"), 12)
        0.528080767379
        >>> round(epsilon0_for_batch(0.1, 10_000, 1e-6), 4)
        1.5239
    """
    check_epsilon(epsilon)
    check_delta(delta)
    if by == "closed":
        return max(epsilon, _closed_inverse(epsilon, n, delta))
    if by != "clones":
        raise bad_field("amplification", by, "choose clones or closed")
    if epsilon >= _LARGEST:
        return epsilon
    try:
        found = calibrate(epsilon, delta, lambda loss: Shuffle(loss, n), 1, _BOUND, _LARGEST)
    except NotApplicable:  # below the least loss that the search tries
        return epsilon
    return max(epsilon, found)


def closed_epsilon(epsilon0: float, n: int, delta: float) -> float:
    """Return f(epsilon0) of 000 (6.10) where its condition holds, epsilon0 elsewhere.

    Example:
        >>> round(closed_epsilon(1.0, 1000, 1e-5), 12)
        0.53198744136
    """
    try:
        return min(epsilon0, fmt_closed(epsilon0, n, delta))
    except NotApplicable:
        return epsilon0


def _closed_inverse(epsilon: float, n: int, delta: float) -> float:
    """Return the largest epsilon0 within the condition with f(epsilon0) <= epsilon; 0: none."""
    cap = math.log(n / (16.0 * (math.log(2.0) - math.log(delta))))
    if cap <= 0.0:
        return 0.0
    if fmt_closed(cap, n, delta) <= epsilon:
        return cap
    low, high = 0.0, cap
    while high - low > 1e-13 * high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if fmt_closed(middle, n, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low
