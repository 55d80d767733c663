"""What a run of latecomers and absentees came to, worked out from its files."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raydp_sim.population.participation.base import Rounds
from raydp_sim.privacy.ledger.store import Charge
from raydp_sim.scenario import Scenario, bound_mechanism
from raydp_sim.scenario.accounting import planned
from raydp_sim.stress.row import Measures as Measures
from raydp_sim.stress.row import Waste, Withheld
from raydp_sim.stress.settings import Settings
from raydp_sim.tasks.mean import Mean

Counts = NDArray[np.int64]
_SAMPLE = 4096  # clients whose values tell how much values differ


def measure(
    scenario: Scenario,
    summary: dict[str, Any],
    releases: pa.Table,
    withheld: pa.Table,
    charges: Iterable[Charge],
) -> Measures:
    """Return the row of a run.

    Args:
        scenario: that was played.
        summary: the run's.
        releases: the run's stream of that name.
        withheld: likewise.
        charges: the rows of the run's ledger.
    """
    population, policy = scenario.population, scenario.participation
    made, held = releases.num_rows, withheld.num_rows
    sizes = _column(releases, "batch_size") if made else np.zeros(1)
    turns = participations(charges, population.clients, scenario.repeat)
    privacy = summary["privacy"]
    budget = privacy.get("budget", {})
    return Measures(
        name=scenario.name,
        policy=str(policy.kind),
        settings=Settings.of(scenario),
        clients=population.clients,
        batches=scenario.task.rounds * scenario.repeat,
        made=made,
        withheld_count=held,
        withheld=_withheld(scenario, withheld) if held else None,
        squared_error=_mean(releases, "squared_error_population"),
        running_error=summary["metrics"].get("running_squared_error"),
        noise=_noise(releases, scenario.repeat),
        bias=_bias(releases),
        chance_bias=_chance_bias(scenario, turns) if made else None,
        wanted=policy.expected(population.clients, population.rate()),
        batch_p5=float(np.quantile(sizes, 0.05, method="inverted_cdf")),
        batch_median=float(np.median(sizes)),
        min_batch=scenario.least_batch,
        deadline=policy.deadline,
        epsilon=privacy["epsilon"],
        planned=privacy["planned"],
        gini=privacy["participation"]["gini"],
        never=float((turns == 0).mean()),
        effective=float(effective(turns).mean()),
        most_turns=int(turns.max(initial=0)),
        staleness=_mean(releases, "staleness") or 0.0,
        stalest=int(_column(releases, "stalest").max(initial=0)),
        started=int(_column(releases, "asked").sum() + _column(withheld, "asked").sum()),
        waste=wasted(releases, withheld, rounds=isinstance(policy, Rounds)),
        seconds_per_batch=_pace(releases, withheld),
        budget=budget.get("epsilon"),
        exhausted=budget.get("exhausted", 0.0),
    )


def wasted(releases: pa.Table, withheld: pa.Table, rounds: bool) -> Waste:
    """Say where the reports went that were begun and are in no release.

    Example:
        >>> made = pa.table({"asked": [10], "batch_size": [6], "dropped": [1]})
        >>> held = pa.table({"asked": [10], "reports": [2], "dropped": [4]})
        >>> wasted(made, held, rounds=True)
        Waste(dropped=0.25, late=0.35, withheld=0.1, under_way=0.0)
    """
    started = int(_column(releases, "asked").sum() + _column(withheld, "asked").sum())
    if started == 0:
        return Waste()
    dropped = int(_column(releases, "dropped").sum() + _column(withheld, "dropped").sum())
    kept, held = int(_column(releases, "batch_size").sum()), int(_column(withheld, "reports").sum())
    rest = max(0, started - dropped - kept - held) / started
    late, under_way = (rest, 0.0) if rounds else (0.0, rest)
    return Waste(dropped / started, late, held / started, under_way)


def participations(charges: Iterable[Charge], clients: int, repeat: int = 1) -> Counts:
    """Count in how many releases each client took part: one row per repetition."""
    turns = np.zeros((repeat, clients), np.int64)
    for charge in charges:
        ids = charge.participants
        where = slice(ids.start, ids.stop) if isinstance(ids, range) else ids
        turns[charge.repetition, where] += 1
    return turns


def effective(turns: Counts) -> NDArray[np.float64]:
    """Return, per repetition, how many clients with equal turns would average as well.

    That is (sum c)^2 / sum c^2, Kish's effective size of a weighted sample.

    Example:
        >>> effective(np.array([[3, 3, 0], [1, 0, 0]])).tolist()
        [2.0, 1.0]
    """
    squares = (turns.astype(np.float64) ** 2).sum(axis=1)
    return np.asarray(turns.sum(axis=1) ** 2 / np.maximum(squares, 1.0))


def _withheld(scenario: Scenario, withheld: pa.Table) -> Withheld:
    sizes = _column(withheld, "reports")
    half, epsilon = math.floor(np.median(sizes)), None
    if half >= 1:
        smaller = scenario.shuffle.model_copy(update={"min_batch": half})
        lowered = scenario.model_copy(update={"shuffle": smaller})
        epsilon = planned(lowered, bound_mechanism(scenario))
    first, last = _column(withheld, "opened").min(), _column(withheld, "time").max()
    return Withheld(int(sizes.min()), int(sizes.max()), float(first), float(last), half, epsilon)


def _noise(releases: pa.Table, repeat: int) -> float | None:
    """Return the squared error that averaging the releases leaves of the reports' noise.

    Releases draw independently, so the squared error of their mean is the sum of theirs, each
    against its own cohort, over the square of their number.
    """
    if not releases.num_rows or "squared_error_cohort" not in releases.column_names:
        return None
    number = releases.num_rows / repeat
    return float(_column(releases, "squared_error_cohort").mean() / number)


def _bias(releases: pa.Table) -> float | None:
    if not releases.num_rows or "participation_bias" not in releases.column_names:
        return None
    repetition, bias = _column(releases, "repetition"), _column(releases, "participation_bias")
    finals = [bias[repetition == each][-1] for each in np.unique(repetition)]
    return float(np.sqrt(np.mean(np.square(finals))))


def _chance_bias(scenario: Scenario, turns: Counts) -> float | None:
    """Return the bias to expect if who takes part has nothing to do with the values.

    With turns c and values that differ by a variance v around the population's mean, the mean of
    all participations is off by v (sum c^2 / (sum c)^2 - 1/n) in the square.
    """
    if not isinstance(scenario.task, Mean):
        return None
    ids = np.arange(min(scenario.population.clients, _SAMPLE), dtype=np.uint32)
    values = scenario.population.hold(ids, scenario.stream(0))
    if bound_mechanism(scenario).domain.norm == "category":
        # Indicators: their variances add up to 1 - sum p^2 in each column.
        spread = sum(
            1.0 - float(((np.bincount(c.astype(np.int64)) / len(c)) ** 2).sum()) for c in values.T
        )
    else:
        spread = float(values.var(axis=0).sum())
    excess = 1.0 / np.maximum(effective(turns), 1.0) - 1.0 / scenario.population.clients
    return math.sqrt(spread * max(0.0, float(excess.mean())))


def _pace(releases: pa.Table, withheld: pa.Table) -> float:
    played = releases.num_rows + withheld.num_rows
    if not played:
        return 0.0
    repetition, opened, closed = (
        np.concatenate([_column(releases, name), _column(withheld, name)])
        for name in ("repetition", "opened", "time")
    )
    spans = [
        closed[repetition == each].max() - opened[repetition == each].min()
        for each in np.unique(repetition)
    ]
    return float(np.sum(spans) / played)


def _mean(table: pa.Table, name: str) -> float | None:
    if not table.num_rows or name not in table.column_names:
        return None
    return float(_column(table, name).mean())


def _column(table: pa.Table, name: str) -> NDArray[Any]:
    return np.asarray(table[name].to_numpy())
