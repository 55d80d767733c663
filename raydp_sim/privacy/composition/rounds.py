"""(epsilon, delta) of one sampled round: two-stage sampling, and clients who join by coins."""

import math

from raydp_sim.privacy.bound import check_delta
from raydp_sim.privacy.composition.runs import SHAPES, Amplifier
from raydp_sim.privacy.curves.sampling import subsample
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import CldpRound, SelfSampledShuffle


def cldp_round(event: CldpRound, delta: float, amplify: Amplifier) -> tuple[float, float]:
    """Return (epsilon, delta) of a round whose shuffle is given `delta`.

    001 Lemma 7 = 000 Lemma 4.3.1. One point per client: (log(1 + q (e^eps - 1)), q delta) with
    q = k s/(m r). Several: epsilon is amplified by the points' rate s/r only.

    Args:
        event: the round.
        delta: of the shuffle of its k s messages.
        amplify: the bound on one shuffle; silent: (epsilon0, 0).

    Example:
        >>> from raydp_sim.privacy.bounds.closed_forms import balle
        >>> epsilon, delta = cldp_round(CldpRound(1.0, 60_000, 1, 5000, 1), 1e-8, balle)
        >>> round(epsilon, 6)
        0.010723
    """
    check_delta(delta)
    messages, rate, delta_rate = SHAPES[CldpRound](event)
    epsilon, shuffle_delta = event.epsilon0, 0.0
    try:
        epsilon, shuffle_delta = amplify(event.epsilon0, messages, delta), delta
    except NotApplicable:
        pass
    return subsample(epsilon, 0.0, rate)[0], delta_rate * shuffle_delta


def self_sampled_round(
    event: SelfSampledShuffle, delta: float, amplify: Amplifier, points: int = 1
) -> tuple[float, float]:
    """Return (epsilon, delta) of a round that clients join by their own coins.

    000 Theorem 4.4.1 in the explicit form of (C.21)-(C.30) with c = 1/2: between qn/2 and 3qn/2
    clients join except with probability 2 e^(-qn/12), whose factor e^epsilon0 is the source's
    slack. delta >= 1 says nothing. `poisson_mixture` is sharper.

    Args:
        event: the round.
        delta: of the shuffle of the messages.
        amplify: the bound on one shuffle; silent: epsilon0.
        points: of each client, of which it uses one.

    Example:
        >>> from raydp_sim.privacy.curves.clones import clones_epsilon
        >>> event = SelfSampledShuffle(1.0, 60_000, 1 / 6)
        >>> round(self_sampled_round(event, 1e-9, clones_epsilon)[0], 9)
        0.028286406
    """
    check_delta(delta)
    mean = event.probability * event.clients
    # At least mean/2 join, a whole number: the floor, even a little above, is no more than that.
    fewest, most = math.floor(mean / 2.0 * (1.0 + 1e-12)), 1.5 * event.probability
    epsilon = event.epsilon0
    if fewest >= 1:
        try:
            epsilon = amplify(event.epsilon0, fewest, delta)
        except NotApplicable:
            pass
    epsilon = math.log1p(most / points * math.expm1(epsilon))
    return epsilon, event.probability / points * delta + self_sampled_tail(event)


def self_sampled_tail(event: SelfSampledShuffle) -> float:
    """Return 2 e^(epsilon0 - qn/12), the delta of a round that too few or too many join.

    Example:
        >>> round(self_sampled_tail(SelfSampledShuffle(1.0, 600, 0.5)) * 1e11, 3)
        7.55
    """
    return 2.0 * math.exp(min(event.epsilon0 - event.probability * event.clients / 12.0, 700.0))
