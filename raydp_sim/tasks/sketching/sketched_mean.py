"""The mean of sketched vectors, all of a release decoded together."""

import math
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import model_validator

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Counts
from raydp_sim.mechanisms.parts.exact import exact_sum, exact_value, unit
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.mechanisms.sketching.similarity import Similarity, check_known
from raydp_sim.metrics.streams import released, simulation_only
from raydp_sim.random import ClientStream, Stream
from raydp_sim.tasks.base import Answer, Arrays, Ask, Batch, Floats, Formed, Setting, Task, Truth
from raydp_sim.tasks.mean import causes, distance, exact_mean, total_of
from raydp_sim.tasks.sketching.decoding import check_mechanism, decoded, joined, no_messages


class SketchedMean(Task):
    """Each release estimates the mean of its cohort's vectors from all sketches together.

    What is accumulated are the messages themselves: the decoder needs every pair of them. Rand-k
    with `rand-k` and Rand-Proj-Spatial with `rand-proj` (004, sections 2.3 and 2.4). With clients
    that drop out, those who came are what is decoded with.

    Fields:
        similarity: how alike clients are taken to be: `one` not at all, `max` all the same, `avg`
            half way, `opt` as `correlation` says. Never `max` for vectors that differ: where nk is
            near d its error has no bound to speak of.
        correlation: R of the clients' vectors, 0 (orthogonal) to n - 1 (identical), for `opt`.
    """

    kind: ClassVar[str] = "sketched-mean"
    adaptive = False
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "task": {"rounds": 2},
            "trust": "local",
            "privacy": {"guarantee": "none"},
            "mechanism": {"kind": "rand-proj", "kept": 2, "radius": 3.0},
        },
        {
            "task": {"rounds": 2, "similarity": "opt", "correlation": 3.0},
            "privacy": {"guarantee": "none"},
            "mechanism": {"kind": "rand-k", "kept": 2, "radius": 3.0},
        },
        {
            "task": {"rounds": 2},
            "mechanism": {
                "kind": "private-sketch",
                "sketch": "rand-k",
                "kept": 2,
                "radius": 3.0,
                "epsilon_local": 2.0,
            },
        },
    )

    similarity: Similarity = "avg"
    correlation: float | None = None

    @model_validator(mode="after")
    def _known(self) -> "SketchedMean":
        try:
            check_known(self.similarity, self.correlation)
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    def init(self, setting: Setting) -> Arrays:
        """Start with no releases; refuse what cannot be decoded before anything is sent."""
        check_mechanism(setting.mechanism)
        width = setting.mechanism.domain.dimension
        return {"releases": np.zeros((), np.int64), "total": np.zeros(width)}

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
        return Answer(data, memory=memory, seen=_squares(setting, data))

    def zero(self, setting: Setting, ask: Ask, reader: int) -> Any:
        """Return no messages."""
        return no_messages(ask.mechanism)

    def fold(self, setting: Setting, ask: Ask, reader: int, accumulator: Any, batch: Batch) -> Any:
        """Keep the messages of a chunk."""
        return [*accumulator, np.array(batch.payload)]

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
        """Decode all messages together, and average with the releases before."""
        rows = joined(accumulator)
        found = decoded(ask.mechanism, rows, self.similarity, self.correlation, stream)
        estimate = found.mean / formed.weight
        releases, total = state["releases"] + 1, state["total"] + estimate
        public = {
            "estimate": estimate,
            "running": total / releases,
            "decoding": np.array([found.slope, *found.normaliser]),
        }
        return {"releases": np.asarray(releases), "total": total}, public

    def truth(self, setting: Setting, data: Any) -> Counts:
        """Return the exact sum of the clients' vectors, in two parts, and their number."""
        return total_of(setting.mechanism, data)

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return errors, what was decoded with, and how alike the clients really are."""
        mechanism, estimate = setting.mechanism, public[0]["estimate"]
        whole, cohort = (exact_mean(mechanism, t) for t in (truth.population, truth.cohort))
        alike, beta, error = public[0]["decoding"]
        scores = {
            "squared_error_cohort": distance(estimate, cohort),
            "squared_error_population": distance(estimate, whole),
            "running_squared_error": distance(public[0]["running"], whole),
            "correlation": _correlation(setting, cohort, truth),
            **causes(mechanism, estimate, truth, truth.cohort),
        }
        decoding = {"similarity_slope": alike, "normaliser": beta, "normaliser_error": error}
        return {"errors": simulation_only(scores), "decoding": released(decoding)}

    def estimand(self, setting: Setting, truth: Counts) -> Floats | None:
        """Return the mean of the raw data."""
        return exact_mean(setting.mechanism, truth)


def _squares(setting: Setting, data: Any) -> Counts:
    """Return the exact sum of squared lengths, for the analyst."""
    lengths = np.square(np.asarray(data, np.float64)).sum(axis=1, keepdims=True)
    return exact_sum(lengths, unit(setting.mechanism.domain.radius**2)).reshape(-1)


def _correlation(setting: Setting, mean: Floats, truth: Truth) -> float:
    """Return R of those who took part."""
    if truth.seen is None or truth.reports == 0:
        return math.nan
    step = unit(setting.mechanism.domain.radius**2)
    square = float(exact_value(truth.seen.reshape(2, 1), step, 1)[0])
    total = truth.reports**2 * float(np.square(mean).sum())
    return total / square - 1.0 if square > 0.0 else 0.0
