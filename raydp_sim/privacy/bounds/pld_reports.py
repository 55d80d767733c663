"""A run of clients that send several messages each, as if whole reports were shuffled."""

from typing import Any

from raydp_sim.privacy.bound import Result, RunBound
from raydp_sim.privacy.bounds.pld_clones import PldClones
from raydp_sim.privacy.composition.messages import whole
from raydp_sim.privacy.errors import NotApplicable
from raydp_sim.privacy.events import (
    MultiMessageShuffle,
    Release,
    Shuffle,
    SubsampledMultiMessage,
    SubsampledShuffle,
)

# Beyond, a shuffle of whole reports hides next to nothing, and the pure loss says as much.
_LARGEST = 12.0


class PldReports(RunBound):
    """Convolve the privacy losses of shuffling whole reports, each of the sum of its losses.

    The multisets of messages, one per index, are a function of the multiset of reports, so that
    what holds for those holds here (data processing). Any randomizer, replace-one neighbours;
    nothing is used of the messages but that a report's loss is at most the sum of theirs.

    Example:
        >>> event = SubsampledMultiMessage((1.0, 1.0), 10_000, 1000)
        >>> round(PldReports().epsilon([(event, 20)], 1e-6).epsilon, 3)
        0.242
    """

    name = "pld-reports"
    source = "data processing; Feldman et al. 2021, Theorem 3.1; Zhu, Dong & Wang 2022"
    events = (MultiMessageShuffle, SubsampledMultiMessage, Shuffle, SubsampledShuffle)

    def taken_apart(self, event: Release) -> list[Release]:
        """Return the event as it is: its messages stay together."""
        return [event]

    def compute(self, events: list[tuple[Any, int]], delta: float) -> Result:
        """Return the composed epsilon."""
        several = (MultiMessageShuffle, SubsampledMultiMessage)
        if not any(isinstance(event, several) for event, _ in events):
            raise NotApplicable("every report is one message; use pld-clones")
        whole_events = [
            (whole(event) if isinstance(event, several) else event, times)
            for event, times in events
        ]
        if max(event.epsilon0 for event, _ in whole_events) > _LARGEST:
            raise NotApplicable(f"pld-reports is computed up to a report's loss of {_LARGEST:g}")
        return PldClones().epsilon(whole_events, delta)
