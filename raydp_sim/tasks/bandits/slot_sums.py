"""The sums of a batch's rewards, slot by slot, from reports in any order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Counts, Mechanism
from raydp_sim.random import Stream
from raydp_sim.tasks.bandits.checks import Floats, Ints


def empty_sums(mechanism: Mechanism, slots: int) -> Counts:
    """Return an accumulator of the mechanism for each slot, one per row."""
    return np.stack([mechanism.zero()] * slots)


def fold_slots(
    mechanism: Mechanism, sums: Counts, slot: NDArray[Any], payload: NDArray[Any]
) -> Counts:
    """Add reports to the accumulators of their slots.

    Args:
        mechanism: of the reports, of one message each.
        sums: so far.
        slot: of every report.
        payload: the reports.
    """
    order = np.argsort(slot, kind="stable")
    numbers, starts = np.unique(slot[order], return_index=True)
    after = sums.copy()
    for number, rows in zip(numbers, np.split(order, starts[1:]), strict=True):
        index = np.broadcast_to(np.int64(0), len(rows))
        after[number] = mechanism.fold(sums[number], index, payload[rows])
    return after


def sums_of_slots(mechanism: Mechanism, sums: Counts, counts: Ints, stream: Stream) -> Floats:
    """Return the sum of each slot's values, with whatever noise the mechanism has.

    Clients have added theirs before; a trusted reader draws its own here, anew for each slot.

    Args:
        mechanism: of the reports.
        sums: accumulators of the slots.
        counts: reports of each slot.
        stream: of the reader's noise.
    """
    means = [
        float(mechanism.decode(each, stream.at("slot", slot))[0]) for slot, each in enumerate(sums)
    ]
    return np.asarray(counts * np.array(means))
