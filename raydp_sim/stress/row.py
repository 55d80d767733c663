"""One row of the comparison: what is known of a run of latecomers and absentees."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from raydp_sim.stress.settings import Settings


@dataclass(frozen=True)
class Waste:
    """Where reports went that were begun and are in no release, as shares of those begun.

    Attributes:
        dropped: lost on the way.
        late: after the close of a round, or more than it wanted.
        withheld: in batches that were too small to be released.
        under_way: not there yet when the last batch closed.
    """

    dropped: float = 0.0
    late: float = 0.0
    withheld: float = 0.0
    under_way: float = 0.0

    @property
    def total(self) -> float:
        """Their sum."""
        return self.dropped + self.late + self.withheld + self.under_way


@dataclass(frozen=True)
class Withheld:
    """The batches that were too small to be released.

    Attributes:
        least, most: reports in the smallest and in the largest of them.
        first, last: when the first one opened and the last one closed, in virtual seconds.
        half: the median of their sizes; a `min_batch` of this would release half of them.
        epsilon: that the plan would then end with; None if half of them are empty.
    """

    least: int
    most: int
    first: float
    last: float
    half: int
    epsilon: float | None


@dataclass(frozen=True)
class Measures:
    """One row of the comparison.

    Attributes:
        name: of the scenario.
        policy: kind of its participation.
        settings: what its settings are called, for advice.
        clients: how many there are.
        batches: that were to be played, all repetitions together.
        made: releases made.
        withheld: batches withheld; None if there are none.
        withheld_count: how many.
        squared_error: of one release against the population, the mean over releases.
        running_error: of the mean of all releases, squared, as it turned out.
        noise: the part of it that chance in the reports explains on average.
        bias: distance between the mean of who took part and the population's; no noise is in it.
        chance_bias: what it would be on average, had everyone's turns nothing to do with its data.
        wanted: reports that the policy wants in a batch.
        batch_p5, batch_median: reports in the releases: 5th percentile and median.
        min_batch, deadline: as the scenario has them.
        epsilon: of the client charged most.
        planned: epsilon of a client in every release, with the smallest batch released.
        gini: of the clients' participations: 0 if all are equal.
        never: share of the clients that took part in no release.
        effective: so many clients with equal turns would average as well.
        most_turns: releases that one client took part in, at most.
        staleness: releases that a report was behind, the mean over releases.
        stalest: at most.
        started: reports begun.
        waste: where those went that are in no release; in rounds what comes after the close is
            lost, otherwise it is in a later batch.
        seconds_per_batch: virtual time from one batch to the next.
        budget: epsilon that a client may spend; None without budgets.
        exhausted: share of the clients that cannot afford another release.
    """

    name: str
    policy: str
    settings: Settings
    clients: int
    batches: int
    made: int
    withheld_count: int
    withheld: Withheld | None
    squared_error: float | None
    running_error: float | None
    noise: float | None
    bias: float | None
    chance_bias: float | None
    wanted: float
    batch_p5: float
    batch_median: float
    min_batch: int
    deadline: float | None
    epsilon: float
    planned: float
    gini: float
    never: float
    effective: float
    most_turns: int
    staleness: float
    stalest: int
    started: int
    waste: Waste
    seconds_per_batch: float
    budget: float | None = None
    exhausted: float = 0.0

    @property
    def expected_error(self) -> float | None:
        """The squared error to expect of the mean of all releases: noise and bias."""
        return None if self.noise is None else self.noise + (self.bias or 0.0) ** 2

    @property
    def full(self) -> bool:
        """Whether the median batch has all that was wanted."""
        return self.batch_median >= math.floor(self.wanted)

    def document(self) -> dict[str, Any]:
        """Return the row for JSON; what is not a finite number is null."""
        row = asdict(self)
        del row["settings"]
        row["waste"]["total"] = self.waste.total
        row["expected_error"] = self.expected_error
        return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
