"""Private mean estimation, once or over rounds."""

import math
from typing import Any, ClassVar

import numpy as np

from raydp_sim.mechanisms.base import Counts, Mechanism
from raydp_sim.random import ClientStream, Stream
from raydp_sim.tasks.base import Arrays, Ask, Floats, Task

_FRACTION_BITS = 36
_BLOCK_VALUES = 1 << 16


class Mean(Task):
    """Each release estimates the mean of its cohort's vectors; the running mean averages releases.

    Where clients hold categories, the vectors are their indicators and the mean is the histogram.

    Scored by squared l2 error against the cohort's mean and against the population's. The truth is
    kept as exact integers: values are rounded to 2^-36 of the domain's radius (up to 2^27 clients
    cannot overflow), so it is the same in whatever order clients are added.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> task, rr = Mean(rounds=2), make("2rr", epsilon_local=1.0)
        >>> state, public = task.step(rr, task.init(rr), rr.zero(), Stream(1))
        >>> int(state["releases"])
        1
    """

    kind: ClassVar[str] = "mean"
    adaptive = False

    def init(self, mechanism: Mechanism) -> Arrays:
        """Start with no releases."""
        return {"releases": np.zeros((), np.int64), "total": np.zeros(mechanism.domain.dimension)}

    def client(
        self, ask: Ask, data: Floats, client_state: Arrays, stream: ClientStream
    ) -> tuple[Floats, Arrays]:
        """Report the vector the client holds."""
        return data, client_state

    def step(
        self,
        mechanism: Mechanism,
        state: Arrays,
        counts: Counts,
        stream: Stream,
        weight: float = 1.0,
    ) -> tuple[Arrays, Arrays]:
        """Decode the estimate and average it with those before."""
        estimate = mechanism.decode(counts, stream) / weight
        releases, total = state["releases"] + 1, state["total"] + estimate
        after = {"releases": np.asarray(releases), "total": total}
        return after, {"estimate": estimate, "running": total / releases}

    def truth(self, mechanism: Mechanism, data: Floats) -> Counts:
        """Return the exact sum of the clients' vectors and their number."""
        scale, dimension = _scale(mechanism), mechanism.domain.dimension
        if mechanism.domain.norm == "category":
            first = np.arange(0, dimension, mechanism.domain.choices)
            seen = np.bincount((data.astype(np.int64) + first).ravel(), minlength=dimension)
            return np.append(seen * int(scale), len(data))
        total = np.zeros(dimension + 1, np.int64)
        rows = max(1, _BLOCK_VALUES // dimension)
        for start in range(0, len(data), rows):
            block = data[start : start + rows] * scale
            total[:-1] += np.rint(block, out=block).astype(np.int64).sum(axis=0)
        total[-1] = len(data)
        return total

    def score(
        self, mechanism: Mechanism, public: Arrays, cohort: Counts, population: Counts
    ) -> dict[str, float]:
        """Return the squared errors of the release and of the running mean."""
        whole = exact_mean(mechanism, population)
        return {
            "squared_error_cohort": distance(public["estimate"], exact_mean(mechanism, cohort)),
            "squared_error_population": distance(public["estimate"], whole),
            "running_squared_error": distance(public["running"], whole),
        }

    def bias(self, mechanism: Mechanism, seen: Counts, population: Counts) -> float:
        """Return the distance between the mean of all participations and the population's mean."""
        return math.sqrt(distance(exact_mean(mechanism, seen), exact_mean(mechanism, population)))

    def influence(self, mechanism: Mechanism, data: Floats, population: Counts) -> Floats:
        """Return each client's part along the direction of the population's mean."""
        mean = exact_mean(mechanism, population)
        size = float(np.sqrt((mean * mean).sum()))
        direction = mean / size if size > 0.0 else np.eye(len(mean))[0]
        if mechanism.domain.norm == "category":
            return np.asarray(direction[data[:, 0].astype(np.int64)])
        return np.asarray((data * direction).sum(axis=1))


def _scale(mechanism: Mechanism) -> float:
    radius = mechanism.domain.radius
    return float(2.0 ** (_FRACTION_BITS - math.ceil(math.log2(radius))))


def exact_mean(mechanism: Mechanism, truth: Counts) -> Floats:
    """Return the mean that a truth of `Mean` stands for."""
    mean: Any = truth[:-1] / (_scale(mechanism) * max(1, int(truth[-1])))
    return np.asarray(mean, dtype=np.float64)


def distance(a: Floats, b: Floats) -> float:
    """Return the squared l2 distance."""
    return float(((a - b) ** 2).sum())
