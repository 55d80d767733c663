"""The metrics actor: turns releases into rows and writes them as they happen."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raydp_sim.mechanisms.base import Counts
from raydp_sim.metrics import streams
from raydp_sim.privacy.ledger import Guarantee
from raydp_sim.scenario import Scenario
from raydp_sim.schedule.batch import Timing
from raydp_sim.tasks.base import Arrays, Ask

_FLUSH_SECONDS = 1.0
_FLUSH_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Tally:
    """What the driver counted during a release, with the truth that only the analyst may know."""

    repetition: int
    release: int
    timing: Timing
    reports: int
    messages: int
    duplicates: int
    clipped: int
    truth: Counts


class MetricsActor:
    """Compares each release with the truth and keeps the streams of a run."""

    def __init__(self, document: dict[str, Any], folder: str) -> None:
        self.scenario = Scenario.model_validate(document)
        self.mechanism = self.scenario.bound_mechanism
        self.folder = Path(folder)
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in streams.SCHEMAS}
        self.flushed = self.started = time.monotonic()

    def begin(self, population: Counts, saved: Arrays | None) -> None:
        """Start or resume a repetition: the truth about its population is known from now on."""
        self.population = population
        self.seen = np.zeros_like(population) if saved is None else saved["seen"]

    def seen_so_far(self) -> Arrays:
        """Return the truth about all participations so far, for a checkpoint."""
        return {"seen": self.seen}

    def record(
        self, tally: Tally, ask: Ask, public: Arrays, charged: tuple[Guarantee, int]
    ) -> dict[str, Any]:
        """Write the row of a release; return it for whoever watches."""
        guarantee, participants = charged
        task, timing = self.scenario.task, tally.timing
        self.seen = self.seen + tally.truth
        mechanism = task.mechanism_for(self.mechanism, ask)
        row = {
            "repetition": tally.repetition,
            "release": tally.release,
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
            "clipped": tally.clipped,
            "bits": mechanism.bits * tally.reports,
            "wire_bytes": -(-mechanism.bits // 8) * tally.reports,
            "epsilon_local": mechanism.epsilon_of_report,
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "epsilon_median": guarantee.median,
            "bound": guarantee.bound,
            "participation_bias": task.bias(self.mechanism, self.seen, self.population),
            **task.score(self.mechanism, public, tally.truth, self.population),
        }
        self._keep("releases", row)
        self._time(tally.repetition, tally.release, tally.reports, tally.duplicates)
        return row

    def withhold(self, tally: Tally) -> None:
        """Write down that a batch was too small to be released."""
        timing = tally.timing
        row = {
            "repetition": tally.repetition,
            "release": tally.release,
            "time": timing.closed,
            "opened": timing.opened,
            "reports": tally.reports,
            "asked": timing.asked,
            "dropped": timing.dropped,
            "late": timing.late,
        }
        self._keep("withheld", row)
        self._time(tally.repetition, tally.release, 0, 0)

    def flush(self) -> None:
        """Write what is waiting as one Parquet part per stream."""
        for name, rows in self.rows.items():
            if rows:
                streams.write_part(self.folder, name, rows)
        self.rows = {name: [] for name in streams.SCHEMAS}
        self.flushed = time.monotonic()

    def _time(self, repetition: int, release: int, reports: int, duplicates: int) -> None:
        wall = time.monotonic() - self.started
        place = {"repetition": repetition, "release": release}
        counts = {"reports": reports, "duplicates": duplicates}
        self._keep("timing", {**place, "wall_s": wall, **counts})
        late = time.monotonic() - self.flushed > _FLUSH_SECONDS
        if late or len(self.rows["timing"]) >= _FLUSH_ROWS:
            self.flush()

    def _keep(self, stream: str, row: dict[str, Any]) -> None:
        self.rows[stream].append(row)
