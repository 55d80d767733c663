"""The divergence of a shuffle of a randomizer whose law is known."""

import math
from functools import lru_cache
from typing import Any

import numpy as np

from raydp_sim.privacy.bound import RdpBound, parts
from raydp_sim.privacy.bounds.pld_law import LARGEST, law_of_reports, law_round
from raydp_sim.privacy.composition.law_divergences import losses_of, renyi
from raydp_sim.privacy.composition.losses import Side
from raydp_sim.privacy.curves.numerics import Array
from raydp_sim.privacy.errors import NotApplicable, Unsupported
from raydp_sim.privacy.events import (
    MultiMessageShuffle,
    Release,
    Shuffle,
    SubsampledMultiMessage,
    SubsampledShuffle,
)


class OfLaw(RdpBound):
    """Integrate the divergences at all epsilons of the blanket of the named randomizer.

    laws.py has the laws, law_rounds.py the theorem on their hockey-stick divergences, for samples
    too, law_divergences.py the integral and why nothing is left out. Several messages per client:
    the least of adding the shuffles per index, which are independent given the data, and of whole
    reports ("rbin" and "2rr"), of which they are a function. Replace-one neighbours; every client
    runs that randomizer.

    Example:
        >>> event = Shuffle(1.0, 1000, "2rr")
        >>> round(OfLaw().rdp(event, 8), 5)
        0.00638
    """

    name = "law"
    events = (Shuffle, SubsampledShuffle, MultiMessageShuffle, SubsampledMultiMessage)
    source = "Sason & Verdu 2016 on Balle et al. 2019, Lemma 5.3, and law_rounds.py"
    by_name = True

    def worth(self, event: Any) -> bool:
        """Say whether the event names a randomizer whose law is known."""
        try:
            _ways(event)
        except (NotApplicable, Unsupported):
            return False
        return True

    def many(self, event: Any, orders: Array, strict: bool = False) -> Array:
        """Return the bound at ascending orders."""
        best = np.full(len(orders), math.inf)
        try:
            ways = _ways(event)
        except (NotApplicable, Unsupported) as silence:
            if strict:
                raise NotApplicable(str(silence)) from None
            return best
        for way in ways:
            total = np.zeros(len(orders))
            for side, times in way:
                total += times * renyi(side, orders)
            best = np.minimum(best, total)
        return best


@lru_cache(maxsize=256)
def _ways(event: Release) -> list[list[tuple[Side, int]]]:
    """Return the laws whose divergences add up to the event's, in one or two ways."""
    ways = []
    try:
        ways.append([(_losses(event), 1)])
    except (NotApplicable, Unsupported):
        if not isinstance(event, MultiMessageShuffle):
            raise
    if isinstance(event, MultiMessageShuffle):
        each = parts(event)
        ways.append([(_losses(one), each.count(one)) for one in dict.fromkeys(each)])
    return ways


@lru_cache(maxsize=256)
def _losses(event: Any) -> Side:
    one = law_round(law_of_reports(event), event, 1)
    if not one.messages.most <= LARGEST:
        raise NotApplicable(f"law is computed up to a loss of {LARGEST:g} per report")
    return losses_of(one)
