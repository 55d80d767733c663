"""CLDP-SGD and DSS-SGD: clients report randomized gradients of single samples."""

from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.base import Counts, Floats
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.privacy.events import Release
from raydp_sim.random import ClientStream, Stream
from raydp_sim.registry import piece
from raydp_sim.tasks.base import (
    Answer,
    Arrays,
    Ask,
    Formed,
    Planned,
    Setting,
    Truth,
)
from raydp_sim.tasks.items import item_event
from raydp_sim.tasks.learning import training
from raydp_sim.tasks.learning.model_task import ModelTask, Passes
from raydp_sim.tasks.learning.optimizers import OPTIMIZERS, Optimizer, Sgd, as_state, of_state
from raydp_sim.tasks.learning.projections import PROJECTIONS, Everywhere, Projection
from raydp_sim.tasks.learning.samples import drawn, gradients, refuse_unequal
from raydp_sim.tasks.learning.schedules import Constant, StepSize


class CldpSgd(ModelTask):
    """Stochastic gradient descent on gradients that are randomized one by one.

    Each client in a batch draws some of its samples, computes the gradient of each, clips it to the
    mechanism's ball and reports it by itself; the server steps against the mean of what it decodes.
    What is protected is one SAMPLE of one client. With a uniform cohort it is CLDP-SGD (Girgis et
    al. 2021, Algorithm 1), with participation by coins DSS-SGD, where a round in which nobody
    reports changes nothing and is not counted. Each gradient, not their mean, is randomized: that
    is what the guarantee of one sample and the variance's 1/(k s) rest on.

    Fields:
        sampled_points: samples that each client of a batch draws from its own, uniformly, without
            replacement, and in secret; one report each. With more than one all clients must hold
            equally many, and only sampling among a client's own samples is counted.
        step_size: a number, or a schedule.
        optimizer: what the server makes of the mean gradient.
        projection: the convex set that parameters are kept in.

    Example:
        >>> CldpSgd(step_size=0.3).step_size.rate(7)
        0.3
    """

    kind: ClassVar[str] = "cldp-sgd"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "task": {"rounds": 3, "step_size": 0.5},
            "population": {
                "clients": 41,
                "data": {"kind": "synthetic-digits", "n": 41, "side": 4, "test": 20},
            },
            "participation": {"kind": "uniform", "sampled": 30},
            "mechanism": {
                "kind": "rinf",
                "radius": 0.5,
                "epsilon_local": 2.0,
                "on_out_of_range": "clip",
            },
        },
    )
    sampled_points: Annotated[int, Field(ge=1)] = 1
    step_size: StepSize = Constant(value=0.1)
    optimizer: Annotated[Optimizer, *piece(OPTIMIZERS)] = Sgd()
    projection: Annotated[Projection, *piece(PROJECTIONS)] = Everywhere()
    evaluate_every: Annotated[int, Field(ge=1)] = 10

    def plan(self, setting: Setting) -> tuple[Planned, ...]:
        """Return one kind of release; refuse what cannot be trained."""
        training.refuse_no_clipping(setting.mechanism)
        if self.sampled_points > setting.shape[0]:
            remedy = f"a client holds {setting.shape[0]} samples; lower it"
            raise bad_field("task.sampled_points", self.sampled_points, remedy)
        if setting.mechanism.guarantee == "shuffled-only":
            remedy = "task 'cldp-sgd' charges report by report, and one alone is not protected"
            raise bad_field("mechanism.kind", setting.mechanism.kind, remedy)
        if setting.mechanism.inner_steps:
            remedy = "task 'cldp-sgd' randomizes gradients once; use task dp-fedavg, or gaussian"
            raise bad_field("mechanism.kind", setting.mechanism.kind, remedy)
        return super().plan(setting)

    def passes(self, setting: Setting) -> Passes:
        """Return one gradient for every sample that is drawn."""
        return Passes(self.sampled_points, 1)

    @property
    def values(self) -> int:
        """How many samples a client reports in a round."""
        return self.sampled_points

    def refuse(self, setting: Setting, data: Any, ids: Any) -> None:
        """Refuse data without labels, and unequal clients where that is not accounted for."""
        super().refuse(setting, data, ids)
        if self.sampled_points > 1:
            refuse_unequal(data, setting.shape[0], ids, self.sampled_points)

    def init(self, setting: Setting) -> Arrays:
        """Start at the model's first parameters, inside the set."""
        theta = self.projection.nearest(self.first(setting).astype(np.float64))
        memory = as_state(self.optimizer.init(self.network(setting).size))
        return self.begun(setting, theta.astype(np.float32), **memory)

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
        """Draw samples and compute the gradient of each."""
        chosen = drawn(data.sizes, self.sampled_points, stream)
        network, broadcast = self.network(setting), ask.broadcast
        made = gradients(network, broadcast["theta"], data, chosen, int(broadcast["rounds"]))
        several = self.sampled_points > 1
        owner = np.repeat(np.arange(len(data)), self.sampled_points) if several else None
        return Answer(made.values, owner, memory, seen=made.seen)

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
        rounds = int(state["rounds"]) + 1
        rate = self.step_size.rate(rounds)
        gradient = ask.mechanism.decode(accumulator, stream) / formed.weight
        move, memory = self.optimizer.move(gradient, rounds, of_state(state))
        theta = self.projection.nearest(state["theta"] - rate * move).astype(np.float32)
        return self.closed(setting, state, theta, rate, **as_state(memory))

    def influence(self, setting: Setting, data: Any, population: Counts) -> Floats:
        """Return how low a client's labels are on average: what is missed most is whole classes.

        So if a tenth of the clients stays away, where each has one sample of ten classes, they are
        all who hold the first.
        """
        own = np.arange(data.index.shape[1]) < data.sizes[:, None]
        labels = data.classes[data.index].astype(np.float64)  # they may be unsigned
        return np.asarray(-(labels * own).sum(axis=1) / data.sizes)

    def event(self, setting: Setting, ask: Ask, formed: Formed) -> Release | None:
        """Return a round of CLDP-SGD or DSS-SGD where it is one; see `item_event`."""
        return item_event(ask.mechanism, formed, setting.shape[0], self.sampled_points)

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return how training went, and how the model does on held-out samples."""
        return self.trained(setting, public[0], truth)
