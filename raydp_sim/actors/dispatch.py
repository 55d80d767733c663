"""What the driver knows of a release under way, and of the clock."""

import json
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from raydp_sim.actors.answers import Receipt
from raydp_sim.actors.backend import Ref
from raydp_sim.actors.scoring import Tally
from raydp_sim.mechanisms import MECHANISMS
from raydp_sim.mechanisms.randomizer import nothing_clipped
from raydp_sim.schedule.batch import Timing
from raydp_sim.tasks.base import Arrays, Ask


class Asked(NamedTuple):
    """An ask as the driver knows it: what is public and small, and where its broadcast is.

    Attributes:
        head: what is public and small.
        sent: the same as it came, to be passed on without being packed again.
        broadcast: where that is.
    """

    head: Ask
    sent: Ref
    broadcast: Ref


@dataclass
class Dispatch:
    """What is known of one release while it is under way."""

    release: int
    time: float
    asked: Any = None  # Asked, once the lead reader has said what is asked for
    cohort: Any = None
    timing: Timing | None = None
    versions: dict[int, Asked] = field(default_factory=dict)
    receipts: dict[int, Receipt] = field(default_factory=dict)
    # Of those who were asked and whose batches are not on their way yet; None: not made yet.
    batches: dict[int, list[Ref] | None] = field(default_factory=dict)
    acknowledged: dict[int, int] = field(default_factory=dict)
    counts: dict[int, dict[str, Any]] = field(default_factory=dict)
    participants: list[Ref] = field(default_factory=list)
    charged: Ref = None
    # Whether all of it is being collected in one call, and what it was asked for with then.
    gathering: bool = False
    span: "Span | None" = None
    # What clients answer who were asked before it was known that they would be.
    made: dict[int, tuple[Ref, ...]] = field(default_factory=dict)
    spent: Ref = None
    chunks: deque[tuple[int, int]] = field(default_factory=deque)
    folding: int = 0

    @property
    def head(self) -> Ask:
        """What is public of the ask."""
        head: Ask = self.asked.head
        return head

    def asks(self) -> list[Ref]:
        """Return what is public of the asks that its reports may answer, then their broadcasts."""
        known = self.versions.values()
        return [*(asked.sent for asked in known), *(asked.broadcast for asked in known)]

    def total(self, name: str) -> int:
        """Add up one of the collectors' counts."""
        return sum(counts[name] for counts in self.counts.values())

    def slots(self) -> tuple[int, ...] | None:
        """Add up the collectors' reports per slot, if there are slots."""
        if self.head.slots is None:
            return None
        return tuple(np.sum([counts["slots"] for counts in self.counts.values()], axis=0).tolist())

    def batch(self) -> dict[str, Any]:
        """Return what is known of the batch besides who is in it; see `charging.Formed`."""
        assert self.timing is not None
        receipts = self.receipts.values()
        return {
            "values": self.total("messages") // self.head.mechanism.messages_per_report,
            "fewest": min((receipt.fewest for receipt in receipts), default=1),
            "most": max((receipt.most for receipt in receipts), default=1),
            "weight": self.timing.weight,
            "slots": self.slots(),
        }

    def tally(self, repetition: int) -> Tally:
        """Return what is counted of the release, with the truth that only the analyst may know."""
        receipts = [self.receipts[source] for source in sorted(self.receipts)]
        timing = self.timing
        assert timing is not None
        if timing.asked is None:
            timing = replace(timing, asked=sum(receipt.reports for receipt in receipts))
        clipped = nothing_clipped(self.head.mechanism)
        if receipts:
            clipped = replace(receipts[0].clipped)
        for receipt in receipts[1:]:
            clipped.add(receipt.clipped)
        groups = [receipt.groups for receipt in receipts if receipt.groups is not None]
        seen = [receipt.seen for receipt in receipts if receipt.seen is not None]
        return Tally(
            repetition=repetition,
            release=self.release,
            timing=timing,
            reports=self.total("reports"),
            messages=self.total("messages"),
            duplicates=self.total("duplicates"),
            clipped=clipped,
            # Where nobody was asked there is nothing to add, whatever the truth's length.
            truth=sum((receipt.truth for receipt in receipts), start=np.zeros(1, np.int64)),
            seen=np.sum(seen, axis=0) if seen else None,
            groups=np.sum(groups, axis=0) if groups else None,
        )


@dataclass
class Span:
    """Releases that one call carries each time: asked for, collected, paid for and made together.

    Attributes:
        dispatches: of the releases, in order; of one alone if it depends on the one before.
        made: what each placement answers: receipts, and batches.
        epochs: of the placements when they were asked.
        whole: the batches, where whoever collects hands them on.
        times: when those that are to be charged so far were closed.
        permits: what the ledger returns once all are paid for.
        charged, earlier, spent: to how many each was charged; what was proved after each but the
            last, and after the last.
    """

    dispatches: list[Dispatch]
    made: dict[int, tuple[Ref, ...]]
    epochs: dict[int, int]
    whole: list[Ref] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    permits: Ref = None
    charged: Ref = None
    earlier: Ref = None
    spent: Ref = None

    @property
    def releases(self) -> list[int]:
        """Their numbers."""
        return [dispatch.release for dispatch in self.dispatches]


_MECHANISM = "mechanism"


def clock(due: float, asks: dict[int, Ask]) -> Arrays:
    """Return, for a checkpoint, when the next release is due and what older asks were."""
    saved: Arrays = {"due": np.asarray(due)}
    for version, ask in asks.items():
        saved[f"{version}/{_MECHANISM}"] = np.array(json.dumps(MECHANISMS.dump(ask.mechanism)))
        for name, array in ask.broadcast.items():
            saved[f"{version}/broadcast/{name}"] = array
    return saved


def older_asks(saved: Arrays) -> dict[int, Ask]:
    """Read the asks of older versions back; see `clock`.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> ask = Ask(make("2rr", epsilon_local=1.0), {"model": np.zeros(2)})
        >>> sorted(older_asks(clock(3.0, {4: ask}))[4].broadcast)
        ['model']
    """
    asks: dict[int, Ask] = {}
    for key, array in saved.items():
        version, _, name = key.partition("/")
        if name == _MECHANISM:
            asks[int(version)] = Ask(MECHANISMS.parse(json.loads(str(array))))
    for key, array in saved.items():
        version, _, name = key.partition("/broadcast/")
        if name:
            asks[int(version)].broadcast[name] = array
    return asks
