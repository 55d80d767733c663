"""DP-FedAvg as the seeds compare with it: noise inside every local step of one common model."""

from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

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
from raydp_sim.tasks.learning import local, own_tests
from raydp_sim.tasks.learning.model_task import ModelTask, Passes
from raydp_sim.tasks.learning.noisy_steps import accountants, noisy_steps
from raydp_sim.tasks.learning.runaway import refuse_gradients
from raydp_sim.tasks.learning.schedules import Positive
from raydp_sim.tasks.learning.seen import Seen


class DpFedAvg(ModelTask):
    """Clients take noisy local steps from the common model; the server averages where they end.

    Girgis 2023 (dissertation), Table 4.2, which does not define it: here the same schedule, clip
    and noise as the common model of DP-AdaPeD, and no other quantity. Its report is charged as
    `mechanism.steps` noisy steps that are all seen; see there. With one step a round a trusted
    server that publishes averages only costs less: that is task "fedavg" with one local step and
    mechanism "central-gaussian".

    Fields:
        step_size: of a local step.
        batch: samples of a client in one step; all unless given.
    """

    kind: ClassVar[str] = "dp-fedavg"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "task": {"rounds": 3, "step_size": 0.5, "batch": 3},
            "trust": "local",
            "population": {
                "clients": 41,
                "data": {
                    "kind": "synthetic-digits",
                    "n": 410,
                    "side": 4,
                    "test": 20,
                    "points": 6,
                    "personal_test": 4,
                },
            },
            "mechanism": {
                "kind": "gaussian-steps",
                "radius": 0.5,
                "steps": 2,
                "epsilon_local": 8.0,
                "delta_local": 1e-7,
            },
        },
    )
    step_size: Positive = 0.5
    batch: Annotated[int, Field(ge=1)] | None = None

    def plan(self, setting: Setting) -> tuple[Planned, ...]:
        """Return one kind of release; refuse a mechanism that is not of noisy steps."""
        noisy_steps(setting.mechanism, self.kind, scalar=False)
        return super().plan(setting)

    def passes(self, setting: Setting) -> Passes:
        """Return one gradient a noisy step."""
        return Passes(setting.mechanism.inner_steps, self.batch or setting.shape[0])

    def refuse(self, setting: Setting, data: Any, ids: Any) -> None:
        """Refuse data without labels, and batches that clients cannot fill."""
        local.refuse_batch(data, self.batch, ids)

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
        """Take the noisy steps; what leaves is where they have led."""
        network, walk = self.network(setting), randomizer.walk
        first, rounds = ask.broadcast["theta"], int(ask.broadcast["rounds"])

        def copies(rows: slice) -> NDArray[np.float32]:
            return np.asarray(first - self.step_size * walk.total[rows], np.float32)

        seen = Seen().counts(more=own_tests.places(data))
        usual, more = Seen.split(seen)
        for rows, step, own in local.steps(data, self.batch, ask.mechanism.inner_steps, stream):
            found = local.slope(network, copies(rows), own)
            lengths = local.lengths(found.gradient)
            refuse_gradients(found.losses, lengths, rounds)
            usual += local.norms_seen(lengths)
            if step == 0:
                usual += local.first_seen(found, own)
            walk.step(0, found.gradient, rows)
        if self.due(rounds + 1):
            # Of the model that the round began with: clients know no other.
            more[:] = own_tests.own_accuracy(network, first, data)
        return Answer(walk.total, memory=memory, seen=seen)

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
        """Average where the clients' steps have led."""
        moved = ask.mechanism.decode(accumulator, stream) / formed.weight
        theta = state["theta"] - self.step_size * ask.mechanism.inner_steps * moved
        return self.closed(setting, state, theta, self.step_size)

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return how training went, and the model on held-out and on clients' own samples."""
        assert truth.seen is not None
        rounds = int(public[0]["rounds"])
        beside = {"accountants": accountants(setting, ask.mechanism, rounds, truth.reports)}
        tested = {"starting": Seen.split(truth.seen)[1]}
        own = own_tests.personal_row(rounds, tested)
        return self.trained(setting, public[0], truth) | beside | own
