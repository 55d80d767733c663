"""Releases of which only (epsilon, delta) is known, by composition that is exact for them."""

import math
from typing import Any

from raydp_sim.privacy.bound import Result, RunBound
from raydp_sim.privacy.composition.theorems import compose_unequal, kov_exact, total_delta
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import EnsembleRelease

# Room for rounding where the releases' own deltas are all of delta.
_ROUNDING = 1e-12


class GeneralComposition(RunBound):
    """Compose (epsilon_i, delta_i) releases at delta: Kairouz, Oh & Viswanath 2015.

    prod (1 - delta_i) (1 - slack) = 1 - delta. With the slack that is left, Theorem 3.3 if all
    releases are equal, 3.5 if not; without any, epsilons add up. Later releases may be chosen by
    the outcome of earlier ones.

    Example:
        >>> event = EnsembleRelease(0.2676, 0.0003)
        >>> round(GeneralComposition().epsilon([(event, 100)], 0.03).epsilon, 2)
        11.57
    """

    name = "general-composition"
    events = (EnsembleRelease,)
    source = "Kairouz, Oh & Viswanath 2015, Theorems 3.3 and 3.5"
    sharp = True

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return the composed epsilon."""
        spent = total_delta([(event.delta, times) for event, times in events])
        if spent > delta * (1.0 + _ROUNDING):
            raise NotApplicable(f"the releases' own deltas are {spent:.3g}, more than {delta:g}")
        # 1 - delta = (1 - spent) (1 - slack), rounded down.
        slack = (delta - spent) / (1.0 - spent) * (1.0 - _ROUNDING)
        uses = [(event.epsilon, times) for event, times in events if event.epsilon > 0.0]
        added = math.fsum(epsilon * times for epsilon, times in uses)
        if not uses or slack <= _ROUNDING * delta:
            return Result(added, None, "epsilons add up")
        if len({epsilon for epsilon, _ in uses}) == 1:
            whole = sum(times for _, times in uses)
            return Result(min(added, kov_exact(uses[0][0], whole, slack)))
        return Result(min(added, compose_unequal(uses, slack)))
