"""Private mean estimation, once or over rounds."""

import math
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raydp_sim.mechanisms.base import Counts, Mechanism
from raydp_sim.mechanisms.parts.exact import exact_sum, exact_value, unit
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.metrics.streams import simulation_only
from raydp_sim.random import ClientStream, Stream
from raydp_sim.tasks.base import Answer, Arrays, Ask, Floats, Formed, Setting, Task, Truth
from raydp_sim.tasks.estimate import noise_variance
from raydp_sim.tasks.expected import Expected, Outlook, bias_of, moments, noise_of_mean, off_centre


class Mean(Task):
    """Each release estimates the mean of its cohort's vectors; the running mean averages releases.

    Where clients hold categories, the vectors are their indicators and the mean is the histogram.

    Scored against the mean of the raw data, so that clipping shows as error: `noise` is how far the
    estimate is from the mean of what was randomized, `clipping_bias` how far that is from the
    cohort's raw mean, and `participation_bias` how far the mean of all participations so far is
    from the population's (l2 distances). Where late reports count less, that is part of `noise`.

    Example:
        >>> from raydp_sim.mechanisms import make
        >>> from raydp_sim.stream.trust import TRUSTS
        >>> task, rr = Mean(rounds=2), make("2rr", epsilon_local=1.0)
        >>> setting, formed = Setting(rr, 10, (1,), 1e-6), Formed(10, TRUSTS["shuffle"])
        >>> ask = task.ask(setting, task.init(setting))
        >>> zero = task.zero(setting, ask, 0)
        >>> state, _ = task.step(setting, ask, 0, task.init(setting), zero, formed, Stream(1))
        >>> int(state["releases"])
        1
    """

    kind: ClassVar[str] = "mean"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"task": {"rounds": 3}},
        {
            "task": {"rounds": 3},
            "trust": "central",
            "participation": {"kind": "uniform", "sampled": 30},
            "mechanism": {"kind": "central-laplace", "radius": 3.0, "epsilon": 1.0},
        },
    )
    adaptive = False

    def expected(self, setting: Setting, outlook: Outlook) -> Expected:
        """Return noise and clipping of a release; their average and who takes part for the run.

        Noise is drawn anew in every release, and so are batches, independently of the data: with T
        releases both count 1/T in the end. Clipping counts in full.
        """
        mechanism = setting.mechanism
        raw = np.asarray(outlook.held, dtype=np.float64)
        kept = mechanism.admit(raw, None).values
        noise, exact = noise_of_mean(mechanism, kept, outlook.reports)
        clipped = off_centre(kept, raw)
        drawn = outlook.between * moments(mechanism.domain, raw).spread
        return Expected(
            release=noise + clipped,
            run=(noise + drawn) / self.rounds + clipped,
            exact=exact,
            note=bias_of(mechanism),
        )

    def init(self, setting: Setting) -> Arrays:
        """Start with no releases."""
        return nothing_yet(setting)

    def client(
        self,
        setting: Setting,
        ask: Ask,
        data: Any,
        memory: Arrays,
        slots: NDArray[np.int64] | None,
        randomizer: Randomizer,
        stream: ClientStream,
    ) -> Answer:
        """Report the vector the client holds."""
        return Answer(data, memory=memory)

    def step(
        self,
        setting: Setting,
        ask: Ask,
        reader: int,
        state: Arrays,
        accumulator: Any,
        formed: Formed,
        stream: Stream,
    ) -> tuple[Arrays, Arrays]:
        """Decode the estimate and average it with those before."""
        return averaged(state, ask.mechanism, accumulator, formed.reports, formed.weight, stream)

    def truth(self, setting: Setting, data: Any) -> Counts:
        """Return the exact sum of the clients' vectors, in two parts, and their number."""
        return total_of(setting.mechanism, data)

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return the squared errors of the release and of the running mean, and their causes."""
        mechanism, estimate = setting.mechanism, public[0]["estimate"]
        whole, cohort = (exact_mean(mechanism, t) for t in (truth.population, truth.cohort))
        scores = {
            "squared_error_cohort": distance(estimate, cohort),
            "squared_error_population": distance(estimate, whole),
            "running_squared_error": distance(public[0]["running"], whole),
            **causes(mechanism, estimate, truth, truth.cohort),
        }
        return {"errors": simulation_only(scores)}

    def estimand(self, setting: Setting, truth: Counts) -> Floats | None:
        """Return the mean of the raw data; None for a subclass whose truth is something else."""
        usual = len(truth) == 2 * setting.mechanism.domain.dimension + 1
        return exact_mean(setting.mechanism, truth) if usual else None

    def influence(self, setting: Setting, data: Any, population: Counts) -> Floats:
        """Return each client's part along the direction of the population's mean."""
        mechanism = setting.mechanism
        mean = exact_mean(mechanism, population)
        size = float(np.sqrt((mean * mean).sum()))
        direction = mean / size if size > 0.0 else np.eye(len(mean))[0]
        if mechanism.domain.norm == "category":
            return np.asarray(direction[data[:, 0].astype(np.int64)])
        return np.asarray((data * direction).sum(axis=1))


def nothing_yet(setting: Setting) -> Arrays:
    """Return the state of a running mean before the first estimate."""
    dimension = setting.mechanism.domain.dimension
    zeros = {name: np.zeros(dimension) for name in ("total", "variance")}
    return {"releases": np.zeros((), np.int64), **zeros}


def averaged(
    state: Arrays,
    mechanism: Mechanism,
    accumulator: Any,
    reports: int,
    weight: float,
    stream: Stream,
) -> tuple[Arrays, Arrays]:
    """Return the state of a running mean after one more release, and what is made public.

    Releases draw their noise independently, so the variance of their mean is the sum of their
    variances over the square of their number.
    """
    estimate = mechanism.decode(accumulator, stream) / weight
    releases, total = state["releases"] + 1, state["total"] + estimate
    variance = state["variance"] + noise_variance(mechanism, estimate, reports, weight)
    after = {"releases": np.asarray(releases), "total": total, "variance": variance}
    error = np.sqrt(variance) / releases
    return after, {"estimate": estimate, "running": total / releases, "standard_error": error}


def total_of(mechanism: Mechanism, data: Any) -> Counts:
    """Return the exact sum of vectors or of indicators, and how many there are."""
    domain = mechanism.domain
    if domain.norm == "category":
        first = np.arange(0, domain.dimension, domain.choices)
        seen = np.bincount((data.astype(np.int64) + first).ravel(), minlength=domain.dimension)
        low = seen * int(1.0 / unit(domain.radius))
        return np.concatenate([low, np.zeros(domain.dimension, np.int64), [len(data)]])
    total = exact_sum(np.asarray(data, dtype=np.float64), unit(domain.radius))
    return np.append(total.reshape(-1), len(data))


def exact_mean(mechanism: Mechanism, truth: Counts) -> Floats:
    """Return the mean that a truth of `Mean` stands for."""
    return exact_value(truth[:-1].reshape(2, -1), unit(mechanism.domain.radius), int(truth[-1]))


def causes(mechanism: Mechanism, estimate: Floats, truth: Truth, sent: Counts) -> dict[str, float]:
    """Return how much of an estimate's error is noise, clipping and who took part.

    Args:
        mechanism: the scenario's.
        estimate: of the mean of what was sent.
        truth: of the release.
        sent: the raw values that were to be randomized, summed as by `total_of`.
    """
    raw = exact_mean(mechanism, sent)
    kept = raw
    if truth.clipped.rows:
        step = unit(mechanism.domain.radius)
        kept = raw - exact_value(truth.clipped.cut, step, int(sent[-1]))
    seen, whole = (exact_mean(mechanism, t) for t in (truth.so_far, truth.population))
    return {
        "noise": math.sqrt(distance(estimate, kept)),
        "clipping_bias": math.sqrt(distance(kept, raw)),
        "participation_bias": math.sqrt(distance(seen, whole)),
    }


def distance(a: Floats, b: Floats) -> float:
    """Return the squared l2 distance."""
    return float(((a - b) ** 2).sum())
