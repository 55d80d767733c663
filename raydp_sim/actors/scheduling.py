"""What the first collector does besides collecting: it plans who is in each batch."""

from typing import Any

import numpy as np

from raydp_sim.random import Ids
from raydp_sim.scenario import Scenario
from raydp_sim.schedule.schedule import Schedule
from raydp_sim.schedule.world import Mask
from raydp_sim.tasks.base import Arrays


class Scheduling:
    """Plans batches without looking at anyone's data; the aggregator never learns a cohort."""

    scenario: Scenario
    repetition: int

    def plan(self, saved: Arrays | None, absent: Mask | None) -> None:
        """Start the schedule of the repetition, or take it up again."""
        root = self.scenario.stream(self.repetition)
        self.schedule = Schedule(self.scenario, root, absent, saved)
        self.unused: dict[int, Ids] = {}  # whose reports of a release come, but are not in it

    def choose(self, release: int, time: float, share: int, able: Mask | None) -> tuple[Any, Any]:
        """Plan the batch of a release.

        Returns:
            For the driver, when it closes, how many were asked, and which placements of `share`
            clients hold somebody of it, or None if the run ends; for the clients, the cohort.
        """
        found = self.schedule.plan(release, time, able)
        if found is None:
            return None, None
        cohort, timing = found
        if self.scenario.trust == "local":
            self.unused[release] = cohort.unused
        return (timing, np.unique(cohort.ids // np.uint32(share)).tolist()), cohort

    def scheduled(self, finished: int) -> Arrays:
        """Return the schedule as it was after so many releases, for a checkpoint."""
        return self.schedule.saved(finished)
