"""What is counted of a release, for whoever scores it."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from raydp_sim.mechanisms.base import Counts, Mechanism
from raydp_sim.mechanisms.randomizer import Clipped
from raydp_sim.metrics.streams import simulation_only, unknown_as_null
from raydp_sim.privacy.ledger.views import Guarantee
from raydp_sim.schedule.batch import Timing
from raydp_sim.tasks.base import Estimate, Setting, Task


class Grouped(NamedTuple):
    """The population's groups: device classes or regions.

    Attributes:
        names: of the groups.
        clients: in each.
        truths: `Task.truth` of each, one row per group.
    """

    names: tuple[str, ...]
    clients: Counts
    truths: Counts


@dataclass(frozen=True, eq=False)
class Tally:
    """What the driver counted during a release, with the truth that only the analyst may know.

    `groups` has the reports of each of the population's groups, where it has any.
    """

    repetition: int
    release: int
    timing: Timing
    reports: int
    messages: int
    duplicates: int
    clipped: Clipped
    truth: Counts
    seen: Counts | None
    groups: Counts | None = None

    @property
    def place(self) -> dict[str, int]:
        """The key of its rows."""
        return {"repetition": self.repetition, "release": self.release}


def release_row(
    tally: Tally,
    mechanism: Mechanism,
    participants: int,
    spent: tuple[Guarantee, float | None] | None,
) -> dict[str, Any]:
    """Return what is public of a release; epsilon is null where it was not worked out."""
    timing = tally.timing
    guarantee, seeds = (None, None) if spent is None else spent
    values = tally.messages // mechanism.messages_per_report
    return {
        **tally.place,
        "time": timing.closed,
        "opened": timing.opened,
        "participants": participants,
        "batch_size": tally.reports,
        "messages": tally.messages,
        "asked": timing.asked,
        "missing": timing.missing,
        "dropped": timing.dropped,
        "late": timing.late,
        "repeated": timing.repeated,
        "staleness": timing.staleness,
        "stalest": timing.stalest,
        "discarded": timing.discarded,
        "bits": mechanism.bits * values,
        "wire_bytes": -(-mechanism.bits // 8) * values,
        "epsilon_local": mechanism.epsilon_of_report,
        "epsilon": guarantee and guarantee.epsilon,
        "delta": guarantee and guarantee.delta,
        "epsilon_median": guarantee and guarantee.median,
        "epsilon_seed": seeds,
        "bound": guarantee and guarantee.bound,
    }


def clipping_row(tally: Tally) -> dict[str, Any]:
    """Return what clipping did to the values of a release."""
    clipped = tally.clipped
    counts = {"clipped": clipped.inside, "outside": clipped.rows}
    return {**tally.place, **counts, "outside_share": clipped.mean_share}


def withheld_row(tally: Tally) -> dict[str, Any]:
    """Return what is public of a batch that was too small to be released."""
    timing = tally.timing
    return {
        **tally.place,
        "time": timing.closed,
        "opened": timing.opened,
        "reports": tally.reports,
        "asked": timing.asked,
        "dropped": timing.dropped,
        "late": timing.late,
    }


def group_rows(
    task: Task, setting: Setting, found: Estimate | None, groups: Grouped, reports: Counts
) -> pa.RecordBatch:
    """Return who took part in a release, and how far the estimate is from each group's own truth.

    The error against a group is null where the group is empty or the task knows none.
    """
    errors = np.full(len(groups.names), np.nan)
    for place in np.flatnonzero(groups.clients):
        own = task.estimand(setting, groups.truths[place])
        if found is not None and own is not None and len(own) == len(found.values):
            errors[place] = ((found.values - own) ** 2).sum()
    counts = {"group": np.array(groups.names), "clients": groups.clients, "reports": reports}
    return simulation_only({**counts, "squared_error": unknown_as_null(errors)})
