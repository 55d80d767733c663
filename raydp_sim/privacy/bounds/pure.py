"""A run by adding up pure losses: the cap of every other bound."""

import math
from typing import Any

from raydp_sim.privacy.bound import Result, RunBound
from raydp_sim.privacy.bounds.rdp_best import RdpBest
from raydp_sim.privacy.curves.caps import pure_epsilon
from raydp_sim.privacy.errors import NotApplicable


class Pure(RunBound):
    """Add the events' pure epsilons; delta is not needed. 000 Lemma 2.1.2 without slack.

    Example:
        >>> from raydp_sim.privacy.events import Shuffle
        >>> Pure().epsilon([(Shuffle(0.5, 100), 4)], 1e-6).epsilon
        2.0
    """

    name = "pure"
    events = RdpBest.events
    source = "basic composition"

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return the sum."""
        total = math.fsum(times * pure_epsilon(event) for event, times in events)
        if math.isinf(total):
            raise NotApplicable("an event has no pure guarantee")
        return Result(total)
