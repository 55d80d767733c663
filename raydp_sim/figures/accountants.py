"""How the seeds' figures find the local loss that a release behind a shuffler allows."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

import numpy as np

from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.mechanisms.shuffled import (
    calibrated_for,
    largest_loss,
    shuffled_event,
    unamplified,
    with_loss,
)
from raydp_sim.privacy.bound import merge
from raydp_sim.privacy.bounds.clones import Clones
from raydp_sim.privacy.bounds.linear import Constant, linear_calibration
from raydp_sim.privacy.bounds.upper1 import Upper1
from raydp_sim.privacy.composition.conversion import rdp_to_dp
from raydp_sim.privacy.composition.search import largest_within
from raydp_sim.privacy.curves.clones import clones_epsilon
from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import Shuffle
from raydp_sim.privacy.floors.floors import refuse_below

Losses = tuple[tuple[float, int], ...]
"""Losses of messages and how many messages have each."""

# c of the closed forms, with C of the linear divergence, and whether it is as printed.
CLOSED: dict[str, tuple[Constant, bool]] = {
    "closed-432": (48, False),
    "closed-6912": (768, False),
    "printed-144": (48, True),
    "printed-2304": (768, True),
}


class Orders:
    """The orders at which divergences are added, and no others: the references' own grids."""

    thm531: ClassVar[Array] = np.arange(2.0, 257.0)
    clones: ClassVar[Array] = np.array(
        [2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256], dtype=np.float64
    )


@lru_cache(maxsize=4096)
def _thm531(loss: float, n: int) -> Array:
    event = Shuffle(loss, n)
    return np.minimum(Upper1().rdp_vector(event, Orders.thm531), loss)


@lru_cache(maxsize=4096)
def _clones(loss: float, n: int) -> Array:
    return np.minimum(Clones().rdp_vector(Shuffle(loss, n), Orders.clones), loss)


def _divergences(
    one: Callable[[float, int], Array], orders: Array
) -> Callable[[Losses, int, float], float]:
    """Return the cost of messages by adding divergences, each at most the message's own loss."""

    def epsilon(losses: Losses, n: int, delta: float) -> float:
        total = sum((times * one(loss, n) for loss, times in losses), np.zeros(len(orders)))
        return min(
            rdp_to_dp(float(rdp), float(order), delta)
            for rdp, order in zip(total, orders, strict=True)
        )

    return epsilon


def _sms(losses: Losses, n: int, delta: float) -> float:
    """Return epsilon of one message by the delta of the pair itself."""
    ((loss, times),) = losses
    if times != 1:
        raise NotApplicable("'sms' is for one message per report")
    return clones_epsilon(loss, n, delta)


COSTS: dict[str, Callable[[Losses, int, float], float]] = {
    "thm531": _divergences(_thm531, Orders.thm531),
    "clones": _divergences(_clones, Orders.clones),
    "sms": _sms,
}


@lru_cache(maxsize=16384)
def cost(accountant: str, losses: Losses, n: int, delta: float) -> float:
    """Return epsilon of one shuffle of messages, at most the sum of their losses.

    Example:
        >>> round(cost("thm531", ((0.5, 1),), 1000, 1e-5), 4)
        0.1168
    """
    pure = math.fsum(loss * times for loss, times in losses)
    return min(COSTS[accountant](losses, n, delta), pure)


def counted(mechanism: Mechanism, n: int, charge: str) -> Losses:
    """Return the losses of a report's messages; `all` also charges those that are only padding."""
    counts = merge([(shuffled_event(mechanism, n), 1)])
    losses = [(event.epsilon0, times) for event, times in counts if isinstance(event, Shuffle)]
    total = sum(times for _, times in losses)
    factor = mechanism.messages_per_report / total if charge == "all" else 1.0
    return tuple((loss, round(times * factor)) for loss, times in losses)


def calibrated(
    mechanism: Mechanism, accountant: str, n: int, epsilon: float, delta: float, charge: str
) -> Mechanism:
    """Return the mechanism with the largest local loss within (epsilon, delta), by an accountant.

    By a closed form, the one that it prescribes.

    Raises:
        NotApplicable: says why there is none.
        Contradiction: the accountant says less than the shuffles cost at least.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> m = make("linf", dimension=1, radius=0.5, levels=4, calibration="seed", epsilon_local=1)
        >>> round(calibrated(m, "thm531", 1000, 0.5, 1e-5, "data").need_epsilon(), 4)
        2.5612
    """
    if accountant == "best":
        return calibrated_for(mechanism, n, epsilon, delta).mechanism
    if mechanism.normal:
        raise NotApplicable(f"'{mechanism.kind}' has an approximate local guarantee, no pure loss")
    if why := unamplified(mechanism):
        raise NotApplicable(f"shuffling gains nothing for '{mechanism.kind}': {why}")
    if accountant in CLOSED:
        constant, printed = CLOSED[accountant]
        messages = getattr(mechanism, "coordinates", None) or 1
        v = linear_calibration(epsilon, delta, messages, n, constant, printed)
        return with_loss(mechanism, v)

    def spent(epsilon_local: float) -> float:
        losses = counted(with_loss(mechanism, epsilon_local), n, charge)
        return cost(accountant, losses, n, delta)

    largest = largest_loss(mechanism)
    found = largest_within(spent, epsilon, 1e-6 * largest, largest)
    if found == 0.0:
        raise NotApplicable(f"{accountant} allows no loss at epsilon {epsilon:g}, delta {delta:g}")
    losses = counted(with_loss(mechanism, found), n, charge)
    shuffles = [(Shuffle(loss, n), times) for loss, times in losses]
    refuse_below(accountant, cost(accountant, losses, n, delta), shuffles, delta)
    return with_loss(mechanism, found)
