"""What a finished run has to say."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.metrics import estimates, streams
from raydp_sim.metrics.estimates import Named
from raydp_sim.run.answer import are_categories
from raydp_sim.scenario import Scenario, bound_mechanism
from raydp_sim.scenario.accounting import planned_releases


@dataclass(frozen=True)
class RunResult:
    """A finished run."""

    summary: dict[str, Any]
    run_dir: Path
    scenario: Scenario

    @property
    def metrics(self) -> pa.Table:
        """The rows of all releases."""
        return streams.joined(self.run_dir / "metrics")

    @property
    def estimate(self) -> Named | None:
        """The answer of the run, with names and standard errors; of the first repetition.

        None where the task learns no vector or nothing was released.
        """
        return self.estimate_of(0)

    @property
    def truth(self) -> Named | None:
        """What the answer is an estimate of, over the whole population; only a simulation has it.

        Of the first repetition; see `metrics.estimates` for all of them and for every release.
        """
        return self.truth_of(0)

    def estimate_of(self, repetition: int) -> Named | None:
        """Return the answer of a repetition, from 0."""
        return estimates.last_estimate(self.run_dir / "metrics", repetition)

    def truth_of(self, repetition: int) -> Named | None:
        """Return what the answer of a repetition, from 0, is an estimate of."""
        return estimates.last_truth(self.run_dir / "metrics", repetition)

    def plot(self, path: Path | None = None) -> Path:
        """Draw the run again and return the picture's path.

        Args:
            path: of the picture, as PNG, SVG or PDF; `plot.png` of the run directory unless given.
        """
        from raydp_sim.metrics.plot import Looks, plot_run  # here, since it comes when all is over

        parts = planned_releases(self.scenario, bound_mechanism(self.scenario))
        # A protocol of several stages states its own expectations among its scores.
        first = parts[0].ask.mechanism
        expected = partial(_expected_error, first) if len(parts) == 1 else None
        looks = Looks(are_categories(self.scenario), self.summary.get("breakdown"))
        return plot_run(self.run_dir, expected, looks, path)

    def _repr_html_(self) -> str:
        """Show the run in a notebook: what came of it, and its picture."""
        from raydp_sim.run.html import shown

        return shown(self.summary, self.run_dir / "plot.png")


def _expected_error(mechanism: Mechanism, clients: int) -> float:
    """Return the expected squared error of the mean of so many clients, in the worst case."""
    if mechanism.where == "client":
        return mechanism.worst_mse() / clients
    # Noise at the aggregator does not depend on the values, but on how many there are.
    anything = np.broadcast_to(0.0, (clients, mechanism.domain.width))
    return float(mechanism.mse(anything).sum()) / clients**2
