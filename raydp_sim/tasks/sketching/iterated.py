"""What algorithms have in common that need one sketched mean, or several, in every iteration."""

from abc import abstractmethod
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Counts
from raydp_sim.mechanisms.parts.exact import exact_sum, exact_value, unit
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.mechanisms.sketching.similarity import Similarity, check_known
from raydp_sim.metrics.streams import released, simulation_only
from raydp_sim.random import ClientStream, Stream
from raydp_sim.tasks.base import Answer, Arrays, Ask, Batch, Floats, Formed, Setting, Task, Truth
from raydp_sim.tasks.sketching.decoding import check_mechanism, decoded, joined, no_messages
from raydp_sim.tasks.sketching.samples import held, public


class Iterated(Task):
    """Clients send vectors that depend on a common point; their decoded means move it.

    Fields:
        rounds: iterations.
        similarity: as in `sketched-mean`; only sketches that decode together use it.
        correlation: R, for `opt`.
        side: images are stretched to so many pixels across; as they are unless given.
        centre: whether the mean of the held-out samples, which everyone may read, is subtracted.
    """

    adaptive = True
    open_ended = False
    sums_cut = False
    similarity: Similarity = "avg"
    correlation: float | None = None
    side: Annotated[int, Field(ge=1, le=256)] | None = None
    centre: bool = False

    @model_validator(mode="after")
    def _known(self) -> "Iterated":
        try:
            check_known(self.similarity, self.correlation)
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    # What an algorithm says.

    @abstractmethod
    def start(self, setting: Setting) -> Floats:
        """Return the point before the first iteration: (means, d)."""

    @abstractmethod
    def sent(self, point: Floats, samples: Floats, real: Floats) -> Floats:
        """Return what clients send: (clients, means, d).

        Args:
            point: that all have in common.
            samples: (clients, samples, columns).
            real: which of them count.
        """

    @abstractmethod
    def moved(self, point: Floats, means: Floats) -> Floats:
        """Return the next point."""

    @abstractmethod
    def loss(self, point: Floats, samples: Floats, real: Floats) -> Floats:
        """Return each client's loss at the point, (clients,): their mean is reported."""

    # What it may say otherwise: samples are images or vectors.

    def width(self, shape: tuple[int, ...], labels: int) -> int:
        """Return the length of a sample as a vector."""
        return self.side**2 if self.side else int(np.prod(shape[1:]))

    def samples(self, setting: Setting, data: Any) -> tuple[Floats, Floats]:
        """Return what clients hold as vectors, and which of it counts."""
        return held(data, self.side)

    def middle(self, setting: Setting) -> Floats:
        """Return what is subtracted: the mean of what everyone may read, where it is asked for."""
        rows = public(setting.held_out, self.side) if self.centre else None
        return np.zeros(1) if rows is None else np.asarray(rows.mean(axis=0))

    # The protocol.

    def init(self, setting: Setting) -> Arrays:
        """Start where the algorithm says; refuse what cannot be decoded before anything is sent."""
        check_mechanism(setting.mechanism)
        return {
            "iteration": np.zeros((), np.int64),
            "point": self.start(setting),
            "middle": self.middle(setting),
        }

    def ask(self, setting: Setting, state: Arrays) -> Ask | None:
        """Send the point to everyone, as often as there are iterations."""
        if int(state["iteration"]) >= self.rounds:
            return None
        return Ask(setting.mechanism, {"point": state["point"], "middle": state["middle"]})

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
        """Compute what the algorithm needs of each client, one client at a time."""
        samples, real = self.samples(setting, data)
        if ask.broadcast["middle"].any():
            samples = samples - ask.broadcast["middle"]
        point = ask.broadcast["point"]
        vectors = self.sent(point, samples, real)
        clients, means, width = vectors.shape
        owner = None if means == 1 else np.repeat(np.arange(clients), means)
        seen = self._seen(setting, vectors, self.loss(point, samples, real))
        return Answer(
            vectors.reshape(clients * means, width), owner=owner, memory=memory, seen=seen
        )

    def zero(self, setting: Setting, ask: Ask, reader: int) -> Any:
        """Return no messages of any mean."""
        return [no_messages(ask.mechanism) for _ in range(len(self.start(setting)))]

    def fold(self, setting: Setting, ask: Ask, reader: int, accumulator: Any, batch: Batch) -> Any:
        """Keep the messages of a chunk by the mean that they are for."""
        which = np.asarray(batch.index)
        payload = np.array(batch.payload)
        return [[*parts, payload[which == mean]] for mean, parts in enumerate(accumulator)]

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
        """Decode every mean, and move the point."""
        found = [
            decoded(ask.mechanism, joined(parts), self.similarity, self.correlation, stream)
            for parts in accumulator
        ]
        means = np.stack([one.mean for one in found]) / formed.weight
        point = self.moved(state["point"], means) if formed.reports else state["point"]
        after = {**state, "iteration": np.asarray(state["iteration"] + 1), "point": point}
        decoding = np.array([found[0].slope, *found[0].normaliser])
        return after, {"point": point, "means": means, "decoding": decoding}

    def files(self, setting: Setting, state: Arrays) -> dict[str, Arrays]:
        """Return the point, to take away."""
        return {"model/last": {"point": state["point"]}}

    # For the analyst.

    def truth(self, setting: Setting, data: Any) -> Counts:
        """Return how many clients there are: what is true depends on the point."""
        return np.array([len(data)])

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return the error of the means, how alike clients were, and the loss."""
        means = public[0]["means"]
        slope, beta, error = public[0]["decoding"]
        decoding = {"similarity_slope": slope, "normaliser": beta, "normaliser_error": error}
        if truth.seen is None or truth.reports == 0:
            return {"decoding": released(decoding)}
        size, steps = means.size, self._steps(setting)
        sums = truth.seen.reshape(2, -1)
        parts = np.split(sums, [size, size + len(means)], axis=1)
        exact = [exact_value(part, step, 1) for part, step in zip(parts, steps, strict=True)]
        totals, squares, loss = exact[0].reshape(means.shape), exact[1], float(exact[2][0])
        off = np.square(means - totals / truth.reports).sum(axis=1)
        alike = np.square(totals).sum(axis=1) / np.where(squares > 0.0, squares, np.inf) - 1.0
        scores = {
            "squared_error": float(off.mean()),
            "correlation": float(np.where(squares > 0.0, alike, 0.0).mean()),
            "loss": loss / truth.reports,
        }
        return {"errors": simulation_only(scores), "decoding": released(decoding)}

    def _steps(self, setting: Setting) -> tuple[float, float, float]:
        radius = setting.mechanism.domain.radius
        return unit(radius), unit(radius**2), unit(1.0)

    def _seen(self, setting: Setting, vectors: Floats, losses: Floats) -> Counts:
        flat = vectors.reshape(len(vectors), vectors.shape[1] * vectors.shape[2])
        squares = np.square(vectors).sum(axis=2)
        steps = self._steps(setting)
        parts = (flat, squares, losses[:, None])
        return np.concatenate(
            [exact_sum(part, step) for part, step in zip(parts, steps, strict=True)], axis=1
        ).reshape(-1)
