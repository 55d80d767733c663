"""Rows of benchmarks that time one call beside a floor, in CPU-seconds of one process."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from raydp_sim.bench.contenders import Floor

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """What one call took.

    Attributes:
        case: the setting, in words.
        name: what was called.
        seconds: CPU-seconds, the median of several calls.
        floor: those of the same work with none of our code.
        goal: seconds that it should stay below; None: no goal.
    """

    case: str
    name: str
    seconds: float
    floor: float
    goal: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None where there is none."""
        return None if self.goal is None else self.seconds < self.goal


# A benchmark: measures beside a floor, says what it is doing, and yields rows as they are there.
Cases = Callable[[Floor, Progress], Iterator[Row]]


def timed(call: Callable[[], Any], repeats: int = 5) -> float:
    """Return the median of CPU-seconds over calls, after one that is not counted."""
    taken = []
    for _ in range(repeats + 1):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return statistics.median(taken[1:])


def document(
    benchmark: str, rows: list[Row], claims: dict[str, bool], machine: dict[str, Any]
) -> dict[str, Any]:
    """Return a benchmark as one document."""
    return {
        "benchmark": benchmark,
        "machine": machine,
        "rows": [asdict(row) | {"met": row.met} for row in rows],
        "claims": claims,
    }
