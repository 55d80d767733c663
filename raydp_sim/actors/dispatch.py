"""What the driver knows of a release under way, and of the clock."""

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from raydp_sim.actors.backend import Ref
from raydp_sim.actors.client import Receipt
from raydp_sim.actors.metrics import Tally
from raydp_sim.schedule.batch import Timing
from raydp_sim.tasks.base import Arrays, Ask


@dataclass
class Dispatch:
    """What is known of one release while it is under way."""

    release: int
    time: float
    ask: Any = field(default_factory=Ask)
    cohort: Any = None
    timing: Timing | None = None
    asks: dict[int, Any] = field(default_factory=dict)
    receipts: dict[int, Receipt] = field(default_factory=dict)
    acknowledged: dict[int, int] = field(default_factory=dict)
    counts: dict[int, dict[str, int]] = field(default_factory=dict)
    participants: list[Ref] = field(default_factory=list)
    charged: Ref = None
    chunks: deque[tuple[int, int]] = field(default_factory=deque)
    folding: int = 0

    def total(self, name: str) -> int:
        """Add up one of the collectors' counts."""
        return sum(counts[name] for counts in self.counts.values())

    def tally(self, repetition: int) -> Tally:
        """Return what is counted of the release, with the truth that only the analyst may know."""
        receipts = [self.receipts[source] for source in sorted(self.receipts)]
        timing = self.timing
        assert timing is not None
        if timing.asked is None:
            timing = replace(timing, asked=sum(receipt.reports for receipt in receipts))
        return Tally(
            repetition=repetition,
            release=self.release,
            timing=timing,
            reports=self.total("reports"),
            messages=self.total("messages"),
            duplicates=self.total("duplicates"),
            clipped=sum(receipt.clipped for receipt in receipts),
            truth=np.sum([receipt.truth for receipt in receipts], axis=0),
        )


def clock(due: float, told: dict[int, Ask]) -> Arrays:
    """Return, for a checkpoint, when the next release is due and what older asks told clients."""
    saved: Arrays = {"due": np.asarray(due)}
    for version, ask in told.items():
        for name, array in ask.broadcast.items():
            saved[f"{version}.{name}"] = array
    return saved


def older_asks(saved: Arrays) -> dict[int, Any]:
    """Read the asks of older versions back; see `clock`.

    Example:
        >>> sorted(older_asks(clock(3.0, {4: Ask({"model": np.zeros(2)})})))
        [4]
    """
    told: dict[int, Arrays] = {}
    for key, array in saved.items():
        version, _, name = key.partition(".")
        if name:
            told.setdefault(int(version), {})[name] = array
    return {version: Ask(broadcast) for version, broadcast in told.items()}
