"""Gradient descent in the multi-message shuffled model: every client, every round, all its data."""

from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.parts.mms import smooth_step
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.random import ClientStream, Stream
from raydp_sim.tasks.base import (
    Answer,
    Arrays,
    Ask,
    Formed,
    Planned,
    Setting,
    Truth,
)
from raydp_sim.tasks.learning import local, training
from raydp_sim.tasks.learning.model_task import ModelTask, Passes
from raydp_sim.tasks.learning.runaway import refuse_gradients
from raydp_sim.tasks.learning.schedules import Positive
from raydp_sim.tasks.learning.seen import Seen


class MmsSgd(ModelTask):
    """Each round every client reports the gradient of its mean loss over all of its data.

    Girgis & Diggavi 2024, Section IV-D: the gradient is clipped to the l2 ball and sent by
    R^l2_{v,m,s} (mechanism "l2"), message (level, block) through a shuffler of its own. What is
    protected is all of a client's data. The budget v is best found by `mechanism.target`, with the
    accountant's own bounds; the theorem's, with its constant corrected, is
    `mechanisms.parts.mms.mms_parameters`.

    Fields:
        step_size: a number; or, without it, min{1/L, sqrt(2 D_F)/(sigma sqrt(L T))} of the next
            two, sigma^2 being the mechanism's worst error over n.
        smoothness: L, of the mean loss.
        gap: D_F, at least how far the first loss is above the least one.
    """

    kind: ClassVar[str] = "mms-sgd"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "task": {"rounds": 3, "smoothness": 2.0, "gap": 1.0},
            "population": {
                "clients": 41,
                "data": {"kind": "synthetic-digits", "n": 410, "side": 4, "test": 20},
            },
            "mechanism": {
                "kind": "l2",
                "radius": 0.5,
                "epsilon_local": 4.0,
                "coordinates": 8,
                "on_out_of_range": "clip",
            },
        },
    )
    step_size: Positive | None = None
    smoothness: Positive | None = None
    gap: Positive | None = None
    evaluate_every: Annotated[int, Field(ge=1)] = 10

    @model_validator(mode="after")
    def _one_step(self) -> "MmsSgd":
        known = self.smoothness is not None and self.gap is not None
        any_known = self.smoothness is not None or self.gap is not None
        if (self.step_size is None) != known or known != any_known:
            raise ValueError("give either step_size, or both smoothness and gap")
        return self

    def rate(self, setting: Setting) -> float:
        """Return the step size."""
        if self.step_size is not None:
            return self.step_size
        assert self.smoothness is not None and self.gap is not None
        mse = setting.mechanism.worst_mse() / setting.clients
        return smooth_step(self.smoothness, self.gap, mse, self.rounds)

    def plan(self, setting: Setting) -> tuple[Planned, ...]:
        """Return one kind of release, of everyone; refuse a mechanism that does not clip."""
        mechanism = setting.mechanism
        training.refuse_no_clipping(mechanism)
        if mechanism.inner_steps or mechanism.domain.norm != "l2":
            remedy = "task 'mms-sgd' reports one l2 vector; use l2"
            raise bad_field("mechanism.kind", mechanism.kind, remedy)
        return super().plan(setting)

    def passes(self, setting: Setting) -> Passes:
        """Return one gradient, over all of a client's samples."""
        return Passes(1, setting.shape[0])

    def init(self, setting: Setting) -> Arrays:
        """Start at the model's first parameters."""
        return self.begun(setting, self.first(setting).astype(np.float64))

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
        """Compute the gradient of each client's mean loss."""
        network, theta = self.network(setting), ask.broadcast["theta"]
        values = np.empty((len(data), network.size), np.float32)
        seen, rounds = Seen().counts(), int(ask.broadcast["rounds"])
        for rows, _, own in local.steps(data, None, 1, stream, network.at_once):
            found = local.slope(network, theta, own)
            lengths = local.lengths(found.gradient)
            refuse_gradients(found.losses, lengths, rounds)
            values[rows] = found.gradient
            seen += local.first_seen(found, own) + local.norms_seen(lengths)
        return Answer(values, memory=memory, seen=seen)

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
        """Step against the estimate of the mean gradient."""
        gradient = ask.mechanism.decode(accumulator, stream) / formed.weight
        rate = self.rate(setting)
        return self.closed(setting, state, state["theta"] - rate * gradient, rate)

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return how training went, and how the model does on held-out samples."""
        return self.trained(setting, public[0], truth)
