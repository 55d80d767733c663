"""The metrics actor: turns releases into rows and writes them as they happen."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from raydp_sim.actors import scoring
from raydp_sim.actors.scoring import Grouped, Tally
from raydp_sim.mechanisms.base import Counts
from raydp_sim.metrics import estimates, streams
from raydp_sim.metrics.writer import Writer
from raydp_sim.privacy.ledger.views import Guarantee
from raydp_sim.scenario import Scenario, setting_of
from raydp_sim.tasks.base import Arrays, Ask, Estimate, Truth

_LAST = ("values", "standard_error")


class MetricsActor:
    """Compares each release with the truth and keeps the streams of a run."""

    def __init__(self, document: dict[str, Any], folder: str) -> None:
        self.scenario = Scenario.model_validate(document)
        self.setting = setting_of(self.scenario)
        self.names = self.scenario.population.data.names()
        self.writer = Writer(Path(folder))
        self.started = time.monotonic()

    def begin(
        self, repetition: int, population: Counts, saved: Arrays | None, groups: Grouped | None
    ) -> None:
        """Start or resume a repetition: the truth about its population is known from now on."""
        self.repetition, self.population, self.groups = repetition, population, groups
        saved = saved or {"seen": np.zeros_like(population)}
        self.so_far = saved["seen"]
        self.last = None
        if "release" in saved:
            self.last = int(saved["release"]), Estimate(*(saved[name] for name in _LAST))

    def seen_so_far(self) -> Arrays:
        """Return the truth about all participations so far and the last estimate, to be saved."""
        found = {"seen": self.so_far}
        if self.last is not None:
            release, estimate = self.last
            found |= {name: getattr(estimate, name) for name in _LAST}
            found["release"] = np.asarray(release)
        return found

    def record(
        self,
        tally: Tally,
        head: Ask,
        charged: tuple[Guarantee, int, float | None],
        *public: Arrays,
    ) -> dict[str, Any]:
        """Write the rows of a release; return what has one row of it, for whoever watches."""
        self.so_far = self.so_far + tally.truth
        row = scoring.release_row(tally, head.mechanism, *charged)
        clipping = scoring.clipping_row(tally)
        self.writer.row("releases", row)
        self.writer.row("clipping", clipping)
        truth = Truth(
            cohort=tally.truth,
            so_far=self.so_far,
            population=self.population,
            clipped=tally.clipped,
            seen=tally.seen,
            reports=tally.reports,
        )
        whole = {**row, **clipping}
        task = self.scenario.task
        rows = task.rows(self.setting, head, list(public), truth)
        found = task.estimate(self.setting, public[0])
        if found is not None:
            self.last = tally.release, found
            if estimates.written(tally.release, task.rounds, len(found.values)):
                self._write_estimate(tally.release, found)
        if self.groups is not None and tally.groups is not None:
            own = scoring.group_rows(task, self.setting, found, self.groups, tally.groups)
            rows = {**rows, "groups": own}
        for stream, batch in rows.items():
            keyed = streams.keyed(batch, tally.repetition, tally.release)
            self.writer.batch(stream, keyed)
            if stream == "errors" and keyed.num_rows == 1:
                whole |= keyed.to_pylist()[0]
        self._time(tally, tally.reports, tally.duplicates)
        return whole

    def withhold(self, tally: Tally) -> None:
        """Write down that a batch was too small to be released."""
        self.writer.row("withheld", scoring.withheld_row(tally))
        self._time(tally, 0, 0)

    def flush(self) -> None:
        """Write what is waiting."""
        self.writer.flush()

    def finish(self, public: Arrays) -> None:
        """End a repetition: its last estimate is written, whichever release it is of.

        In a part of its own, so that doing this again after an interruption changes nothing.

        Args:
            public: what the lead reader made public last; nothing if it never did.
        """
        self.writer.flush()
        task = self.scenario.task
        for stream, batch in (task.closing(self.setting, public) if public else {}).items():
            # Of no release that was made: it stands where the last planned one would.
            keyed = streams.keyed(batch, self.repetition, task.rounds - 1)
            self.writer.batch(stream, keyed)
            self.writer.flush()
        if self.last is None:
            return
        release, found = self.last
        if not estimates.written(release, self.scenario.task.rounds, len(found.values)):
            self._write_estimate(release, found)
            self.writer.flush()

    def _write_estimate(self, release: int, found: Estimate) -> None:
        rows = {
            estimates.ESTIMATES: estimates.estimate_rows(
                self.names, found.values, found.standard_error
            )
        }
        task = self.scenario.task
        whole, seen = (task.estimand(self.setting, t) for t in (self.population, self.so_far))
        if whole is not None and seen is not None and len(whole) == len(found.values):
            truth = estimates.truth_rows(self.names, found.values, whole, seen)
            rows[estimates.TRUTH] = truth
        for stream, batch in rows.items():
            self.writer.batch(stream, streams.keyed(batch, self.repetition, release))

    def _time(self, tally: Tally, reports: int, duplicates: int) -> None:
        wall = time.monotonic() - self.started
        counts = {"reports": reports, "duplicates": duplicates}
        self.writer.row("timing", {**tally.place, "wall_s": wall, **counts})
        self.writer.flush_if_late()
