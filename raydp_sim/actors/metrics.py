"""The metrics actor: turns releases into rows and writes them as they happen."""

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from raydp_sim.actors import scoring
from raydp_sim.actors.scoring import Grouped, Tally
from raydp_sim.mechanisms.base import Counts
from raydp_sim.metrics import estimates, streams
from raydp_sim.metrics.guarantee import Told
from raydp_sim.metrics.live.feed import Feed, Serving
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
        self.names = self.scenario.task.named(self.scenario.population.data.names())
        self.writer = Writer(Path(folder))
        self.told = Told(Path(folder).parent)
        self.started = time.monotonic()
        self.feed: Feed | None = None
        self.gauges: Any = None
        if self.scenario.metrics.ray_metrics and self.scenario.placement.backend == "ray":
            from raydp_sim.actors.ray_metrics import RayMetrics

            self.gauges = RayMetrics(Path(folder).parent.name)

    def serve(self, serving: Serving) -> tuple[str, str | None]:
        """Let others follow the streams from now on; return the address, and the page's."""
        self.feed = Feed(self.writer, serving)
        return self.feed.url, self.feed.page

    def over(self) -> None:
        """Let whoever follows catch up: the run is over."""
        if self.feed is not None:
            self.feed.close(over=True)

    def hang_up(self) -> None:
        """Write what is waiting, if that is still possible, and stop serving."""
        with contextlib.suppress(OSError):
            self.writer.flush()
        if self.feed is not None:
            self.feed.close(over=False)

    def begin(
        self, repetition: int, population: Counts, saved: Arrays | None, groups: Grouped | None
    ) -> None:
        """Start or resume a repetition: the truth about its population is known from now on."""
        self.repetition, self.population, self.groups = repetition, population, groups
        saved = saved or {"seen": np.zeros_like(population)}
        self.so_far = saved["seen"]
        self.answered: Counts | None = saved.get("answered")
        self.last = None
        if "release" in saved:
            self.last = int(saved["release"]), Estimate(*(saved[name] for name in _LAST))

    def seen_so_far(self) -> Arrays:
        """Return the truth about all participations so far and the last estimate, to be saved."""
        found = {"seen": self.so_far}
        if self.answered is not None:
            found["answered"] = self.answered
        if self.last is not None:
            release, estimate = self.last
            found |= {name: getattr(estimate, name) for name in _LAST}
            found["release"] = np.asarray(release)
        return found

    def record(
        self,
        tally: Tally,
        head: Ask,
        charged: int,
        spent: tuple[Guarantee, float | None] | None,
        *public: Arrays,
    ) -> dict[str, Any]:
        """Write the rows of a release; return what has one row of it, for whoever watches."""
        self.so_far = self.so_far + tally.truth
        if tally.seen is not None:
            self.answered = tally.seen if self.answered is None else self.answered + tally.seen
        row = scoring.release_row(tally, head.mechanism, charged, spent)
        if self.setting.levels is not None:
            row["epsilon_local"] = self.scenario.task.report(self.setting, head).epsilon
        if spent is not None:
            self.told.tell(spent[0])
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
            seen_so_far=self.answered,
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
        if self.gauges is not None:
            self.gauges.row(whole)
        return whole

    def records(
        self,
        tallies: Sequence[Tally],
        head: Ask,
        charged: Sequence[int],
        earlier: Sequence[tuple[Guarantee, float | None] | None],
        spent: tuple[Guarantee, float | None] | None,
        made: Sequence[Arrays],
    ) -> list[dict[str, Any]]:
        """Write the rows of several releases, one after the other; see `record`.

        Args:
            tallies: of each.
            head: what is public of their ask.
            charged: to how many clients each was charged.
            earlier: what was proved after each but the last.
            spent: what was proved after the last.
            made: what each made public.
        """
        each = zip(tallies, charged, [*earlier, spent], made, strict=True)
        return [self.record(tally, head, paid, so_far, own) for tally, paid, so_far, own in each]

    def withhold(self, tally: Tally, head: Ask, *public: Arrays) -> None:
        """Write down that a batch was too small to be released, and what that changed, if it did.

        Nothing of its reports is counted.
        """
        self.writer.row("withheld", scoring.withheld_row(tally))
        if any(public):
            truth = Truth(
                cohort=np.zeros_like(tally.truth),
                so_far=self.so_far,
                population=self.population,
                clipped=tally.clipped,
                seen=None,
                reports=0,
                seen_so_far=self.answered,
            )
            rows = self.scenario.task.rows(self.setting, head, list(public), truth)
            for stream, batch in rows.items():
                self.writer.batch(stream, streams.keyed(batch, tally.repetition, tally.release))
        self._time(tally, 0, 0)

    def flush(self) -> None:
        """Write what is waiting."""
        self.writer.flush()

    def keep(self) -> None:
        """Make sure that no row so far is lost if a checkpoint is returned to."""
        self.writer.keep()

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
            self.writer.batch_once(stream, keyed)
        if self.last is None:
            return
        release, found = self.last
        if not estimates.written(release, self.scenario.task.rounds, len(found.values)):
            for stream, batch in self._estimate_rows(release, found).items():
                self.writer.batch_once(stream, batch)

    def _write_estimate(self, release: int, found: Estimate) -> None:
        for stream, batch in self._estimate_rows(release, found).items():
            self.writer.batch(stream, batch)

    def _estimate_rows(self, release: int, found: Estimate) -> dict[str, pa.RecordBatch]:
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
        return {
            stream: streams.keyed(batch, self.repetition, release) for stream, batch in rows.items()
        }

    def _time(self, tally: Tally, reports: int, duplicates: int) -> None:
        wall = time.monotonic() - self.started
        counts = {"reports": reports, "duplicates": duplicates}
        self.writer.row("timing", {**tally.place, "wall_s": wall, **counts})
        self.writer.flush_if_late()
