"""Noisy epochs of which only the end is seen: privacy amplification by iteration."""

import math
from typing import Any

from raydp_sim.privacy.bound import RdpBound, Result, RunBound
from raydp_sim.privacy.curves.iteration import iterated_rdp
from raydp_sim.privacy.events import EpochRelease


class Pabi(RdpBound):
    """Return alpha/(2 z^2 tail) for the last private record of an epoch, real alpha > 1.

    The worst place of a record; steps after it must be non-expansive and noisy.

    Example:
        >>> Pabi().rdp(EpochRelease(1.0, steps=10, private=7), 8)
        1.0
    """

    name = "pabi"
    events = (EpochRelease,)
    source = "Feldman et al. 2018; Jiang 2025, Lemmas 4.5.2 and 4.6.2"
    real_orders = True
    streams = True

    def one(self, event: EpochRelease, alpha: float) -> float:
        """Return the divergence at one order."""
        return iterated_rdp(alpha, event.noise_multiplier, event.tail) if event.private else 0.0


class PabiRun(RunBound):
    """Add up divergences c alpha over epochs and convert as the text does, at the best real order.

    c + 2 sqrt(c log(1/delta)), from epsilon = c alpha + log(1/delta)/(alpha - 1) (Mironov 2017,
    Proposition 3). The order of the text's Table 4.3 is the best one less 1.

    Example:
        >>> event = EpochRelease(161.0921 / 20.0, steps=1000, private=1000)
        >>> round(PabiRun().epsilon([(event, 50)], 1e-6).epsilon, 5)
        5.0
    """

    name = "rdp-pabi"
    events = (EpochRelease,)
    source = "Jiang 2025, Lemmas 4.5.2 and 4.6.2, Proposition 4.3.4"

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return epsilon at the best real order."""
        total = math.fsum(times * Pabi().one(event, 1.0) for event, times in events)
        return Result(total + 2.0 * math.sqrt(total * -math.log(delta)))
