"""What a run may be expected to learn, before it is played, and whether that is any good."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raydp_sim.mechanisms.base import Mechanism
from raydp_sim.population.participation.asynchronous import Asynchronous
from raydp_sim.scenario import Scenario, setting_of
from raydp_sim.scenario.batches import expected_batch
from raydp_sim.tasks.base import Setting, Task
from raydp_sim.tasks.expected import Expected, Outlook, moments

# Clients whose data are looked at, and doubles of all of them.
_SAMPLE = 4096
_DOUBLES = 1 << 20
# An estimate that is off by a tenth of what single clients are off still says something.
_SHARE = 0.01
# What a task's error depends on.
_DECIDING = ("plan", "ask", "client", "fold", "step", "width")


@dataclass(frozen=True)
class Trivial:
    """The answer that needs no data: the uniform histogram, or the centre of the domain.

    Attributes:
        answer: in words.
        squared_error: of it on these data; where they are centred as it says, a hundredth of the
            mean squared distance of single clients from it.
    """

    answer: str
    squared_error: float


@dataclass(frozen=True)
class Prediction:
    """What a run may be expected to learn.

    Attributes:
        batch: clients in a release, on average.
        expected: squared errors, by the mechanism's formula at that batch.
        trivial: what is known without any data.
    """

    batch: float
    expected: Expected
    trivial: Trivial

    @property
    def useless(self) -> bool:
        """Whether the run's estimate is no better than the trivial answer."""
        # A mechanism of one's own may state its error as a NumPy number.
        return bool(self.expected.run >= self.trivial.squared_error)

    def document(self) -> dict[str, Any]:
        """Return it as the summary has it; see `measured`."""
        expected = self.expected
        return {
            "batch": self.batch,
            "is": "exact" if expected.exact else "bound",
            "note": expected.note,
            "release": {"score": expected.release_score, "expected": expected.release},
            "run": {"score": expected.run_score, "expected": expected.run},
            "trivial": {
                "answer": self.trivial.answer,
                "squared_error": self.trivial.squared_error,
            },
            "useless": self.useless,
        }


def predict(scenario: Scenario) -> Prediction | None:
    """Return what to expect of a run; None where the task or the mechanism has no formula.

    Example:
        >>> from raydp_sim.scenario import parse
        >>> data = {"kind": "bernoulli", "probability": 0.25}
        >>> tiny = {"name": "a", "population": {"clients": 1000, "data": data},
        ...         "mechanism": {"kind": "2rr", "epsilon_local": 1.0}}
        >>> found = predict(parse(tiny))
        >>> found.batch, f"{found.expected.release:.6f}", found.useless
        (1000.0, '0.000921', False)
    """
    if not _speaks_for_itself(scenario.task):
        return None
    setting, data = setting_of(scenario), scenario.population.data
    clients = scenario.population.clients
    # The last kind of release stands for what the run ends with.
    ask = scenario.task.plan(setting)[-1].ask
    batch = expected_batch(scenario, ask)
    size = max(8, data.memory(1, 0))
    count = max(1, min(_SAMPLE, 8 * _DOUBLES // size, clients))
    rows = data.rows()
    reach = clients if rows is None else min(clients, rows)
    # Spread over all, for a file may be sorted.
    ids = np.unique(np.linspace(0, reach - 1, count).astype(np.uint32))
    held = scenario.population.hold(ids, scenario.stream(0))
    try:
        # Squares of the values of a careless file may be beyond all doubles.
        with np.errstate(over="ignore", invalid="ignore"):
            expected = scenario.task.expected(setting, Outlook(batch, clients, held))
            if expected is None:
                return None
            trivial = _trivial(setting, held)
    except NotImplementedError:
        return None
    if not math.isfinite(expected.release + expected.run):
        return None
    notes = [expected.note, *_left_out(scenario)]
    expected = replace(expected, note="; ".join(note for note in notes if note))
    return Prediction(batch, expected, trivial)


def _speaks_for_itself(task: Task) -> bool:
    """Say whether `expected` was written for what the task does, and not for a task it extends.

    Example:
        >>> from raydp_sim.tasks.mean import Mean
        >>> class Twice(Mean):
        ...     def client(self, setting, ask, data, memory, slots, randomizer, stream):
        ...         return super().client(setting, ask, 2 * data, memory, slots, randomizer, stream)
        >>> _speaks_for_itself(Mean()), _speaks_for_itself(Twice())
        (True, False)
    """
    owners = {name: _defined(task, name) for name in ("expected", *_DECIDING)}
    return all(issubclass(owners["expected"], owners[name]) for name in _DECIDING)


def _defined(task: Task, name: str) -> type:
    return next(cls for cls in type(task).__mro__ if name in vars(cls))


def _left_out(scenario: Scenario) -> Iterator[str]:
    """Say what of the scenario no formula knows about."""
    policy = scenario.participation
    if scenario.privacy.budget is not None:
        yield "as long as budgets last"
    if scenario.population.needs_influence:
        yield "those kept away not counted"
    if scenario.population.group_data:
        yield f"if every {scenario.population.grouped_by} took part alike"
    if isinstance(policy, Asynchronous) and policy.staleness_exponent > 0.0:
        yield "late reports counted in full"


def _trivial(setting: Setting, held: Any) -> Trivial:
    mechanism = setting.mechanism
    domain = mechanism.domain
    values = np.asarray(held, dtype=np.float64).reshape(-1, domain.width)
    centre, words = _centre(mechanism)
    found = moments(domain, values)
    far = float(((found.mean - centre) ** 2).sum())
    return Trivial(words, max(far, _SHARE * (far + found.spread)))


def _centre(mechanism: Mechanism) -> tuple[float, str]:
    domain = mechanism.domain
    if domain.norm == "category":
        return 1.0 / domain.choices, "the uniform histogram"
    if domain.norm == "binary":
        return 0.5, "one half"
    return 0.0, "the centre of the domain"


def measured(document: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a prediction with what was measured beside it.

    Args:
        document: of `Prediction`.
        rows: of all releases, in order; of all repetitions.
    """
    last = {row["repetition"]: row for row in rows}.values()
    release, run = document["release"], document["run"]
    final = document["release"]["score"] == document["run"]["score"]
    return {
        **document,
        "release": {**release, "measured": _mean(release["score"], last if final else rows)},
        "run": {**run, "measured": _mean(run["score"], last)},
    }


def _mean(score: str, rows: Any) -> float | None:
    found = [row[score] for row in rows if score in row]
    return float(np.mean(found)) if found else None
