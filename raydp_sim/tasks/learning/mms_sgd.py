"""Gradient descent in the multi-message shuffled model: every client, every round, all its data."""

from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.base import Counts
from raydp_sim.mechanisms.parts.mms import smooth_step
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.metrics.streams import simulation_only
from raydp_sim.models import MODELS
from raydp_sim.models.base import Classifier, Network
from raydp_sim.models.linear import Linear
from raydp_sim.random import ClientStream, Stream
from raydp_sim.registry import piece
from raydp_sim.tasks.base import (
    Answer,
    Arrays,
    Ask,
    Estimate,
    Formed,
    Planned,
    Setting,
    Task,
    Truth,
)
from raydp_sim.tasks.learning import local, training
from raydp_sim.tasks.learning.samples import UNIT, exact, held_labels
from raydp_sim.tasks.learning.schedules import Positive

_NORM = 2.0**26  # where norms are cut off in sums


class MmsSgd(Task):
    """Each round every client reports the gradient of its mean loss over all of its data.

    Girgis & Diggavi 2024, Section IV-D: the gradient is clipped to the l2 ball and sent by
    R^l2_{v,m,s} (mechanism "l2"), message (level, block) through a shuffler of its own. What is
    protected is all of a client's data. The budget v is best found by `mechanism.target`, with the
    accountant's own bounds; the theorem's, with its constant corrected, is
    `mechanisms.parts.mms.mms_parameters`.

    Fields:
        model: what is trained.
        step_size: a number; or, without it, min{1/L, sqrt(2 D_F)/(sigma sqrt(L T))} of the next
            two, sigma^2 being the mechanism's worst error over n.
        smoothness: L, of the mean loss.
        gap: D_F, at least how far the first loss is above the least one.
        init_seed: of the first parameters, where the model draws them.
        evaluate_every: rounds from one test to the next.
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
    adaptive = True
    open_ended = False
    sums_cut = False
    model: Annotated[Classifier, *piece(MODELS)] = Linear()
    step_size: Positive | None = None
    smoothness: Positive | None = None
    gap: Positive | None = None
    init_seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    evaluate_every: Annotated[int, Field(ge=1)] = 10

    @model_validator(mode="after")
    def _one_step(self) -> "MmsSgd":
        known = self.smoothness is not None and self.gap is not None
        any_known = self.smoothness is not None or self.gap is not None
        if (self.step_size is None) != known or known != any_known:
            raise ValueError("give either step_size, or both smoothness and gap")
        return self

    def network(self, setting: Setting) -> Network:
        """Return the model for the data at hand."""
        return training.network_of(self.model, setting.shape, setting.labels)

    def width(self, shape: tuple[int, ...], labels: int) -> int:
        """Return the number of parameters."""
        return training.network_of(self.model, shape, labels).size

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

    def refuse(self, setting: Setting, data: Any, ids: Any) -> None:
        """Refuse data without labels."""
        local.refuse_batch(data, None, ids)

    def init(self, setting: Setting) -> Arrays:
        """Start at the model's first parameters."""
        first = self.network(setting).init(Stream(self.init_seed).at("model"))
        return {"theta": first.astype(np.float64), "rounds": np.zeros((), np.int64)}

    def ask(self, setting: Setting, state: Arrays) -> Ask | None:
        """Send the parameters."""
        told = {"theta": state["theta"].astype(np.float32), "rounds": state["rounds"]}
        return Ask(setting.mechanism, told)

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
        seen = np.zeros(3, np.int64)
        for rows in local.tiles(data, None):
            found = local.slope(network, theta, local.all_of(data[rows]))
            values[rows] = found.gradient
            norms = np.minimum(np.sqrt(np.vecdot(found.gradient, found.gradient)), _NORM)
            seen += [len(norms), exact(found.losses), exact(norms)]
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
        rounds, rate = int(state["rounds"]) + 1, self.rate(setting)
        gradient = ask.mechanism.decode(accumulator, stream) / formed.weight
        theta = state["theta"] - rate * gradient
        training.refuse_divergence(theta.astype(np.float32), rounds, rate)
        after = {"theta": theta, "rounds": np.asarray(rounds)}
        made = {"theta": theta.astype(np.float32), "rounds": np.asarray(rounds)}
        return after, {**made, "step_size": np.asarray(rate)}

    def estimate(self, setting: Setting, public: Arrays) -> Estimate | None:
        """Return nothing: the answer is a model."""
        return None

    def files(self, setting: Setting, state: Arrays) -> dict[str, Arrays]:
        """Return the model as named tensors."""
        theta = state["theta"].astype(np.float32)
        return {"model/last": dict(self.network(setting).named(theta))}

    # For the analyst.

    def truth(self, setting: Setting, data: Any) -> Counts:
        """Return how many samples of each class the clients hold, and how many clients they are."""
        return held_labels(data, setting.labels)

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return how the model does on held-out samples, and how training went."""
        rounds, seen = int(public[0]["rounds"]), truth.seen
        assert seen is not None
        count = max(1, int(seen[0]))
        rows = {
            "training": simulation_only(
                {
                    "round": rounds,
                    "training_loss": int(seen[1]) * UNIT / count,
                    "gradient_norm": int(seen[2]) * UNIT / count,
                    "fraction_clipped": truth.clipped.rows / max(1, truth.clipped.values),
                }
            )
        }
        if rounds % self.evaluate_every == 0 or rounds == self.rounds:
            network = self.network(setting)
            rows["learning"] = training.learning_row(network, setting, public[0], None)
        return rows
