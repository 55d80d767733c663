"""Every client trains by itself: what a common model has to be compared with."""

from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.errors import bad_field
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
from raydp_sim.tasks.learning import local, own_tests, training
from raydp_sim.tasks.learning.model_task import ModelTask, Passes
from raydp_sim.tasks.learning.runaway import refuse_astray, refuse_gradients, refuse_own
from raydp_sim.tasks.learning.schedules import Positive
from raydp_sim.tasks.learning.seen import Seen


class LocalOnly(ModelTask):
    """Clients train models of their own and tell nobody anything.

    A round is a number of local steps. What is reported is 0, by everyone and whatever the data
    are, through the scenario's mechanism; the ledger charges the mechanism all the same, so take
    one of hardly any loss, such as 2rr with epsilon_local 1e-6.

    Fields:
        step_size: of a local step.
        steps: of a round.
        batch: samples of a client in one step; all unless given.
        keep_personal: whether the personal models are written down at the end of the run.
    """

    kind: ClassVar[str] = "local-only"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "task": {"rounds": 3, "steps": 2},
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
            "mechanism": {"kind": "2rr", "epsilon_local": 1e-6},
        },
    )
    step_size: Positive = 0.5
    steps: Annotated[int, Field(ge=1)] = 10
    batch: Annotated[int, Field(ge=1)] | None = None
    keep_personal: bool = False

    def width(self, shape: tuple[int, ...], labels: int) -> int:
        """Return 1: of the 0 that everyone reports."""
        return 1

    def plan(self, setting: Setting) -> tuple[Planned, ...]:
        """Return one kind of release; refuse noise inside steps, and looks at a common model."""
        for name in ("patience", "callback"):
            if getattr(self, name) is not None:
                remedy = "there is no common model here that could be looked at; leave it out"
                raise bad_field(f"task.{name}", getattr(self, name), remedy)
        if setting.mechanism.inner_steps:
            remedy = "nothing is learned from reports here; use 2rr"
            raise bad_field("mechanism.kind", setting.mechanism.kind, remedy)
        return super().plan(setting)

    def passes(self, setting: Setting) -> Passes:
        """Return one gradient a step."""
        return Passes(self.steps, self.batch or setting.shape[0])

    def refuse(self, setting: Setting, data: Any, ids: Any) -> None:
        """Refuse data without labels, and batches that clients cannot fill."""
        local.refuse_batch(data, self.batch, ids)

    def init(self, setting: Setting) -> Arrays:
        """Start with no rounds."""
        return {"rounds": np.zeros((), np.int64)}

    def ask(self, setting: Setting, state: Arrays) -> Ask | None:
        """Say which round it is."""
        return Ask(setting.mechanism, {"rounds": state["rounds"]})

    def memory(self, setting: Setting, data: Any, stream: ClientStream) -> Arrays:
        """Start at the model's first parameters."""
        first = self.first(setting)
        return {"theta": np.tile(first, (len(data), 1))}

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
        """Take the local steps; report nothing of them."""
        network, rounds = self.network(setting), int(ask.broadcast["rounds"])
        theta = memory["theta"].copy()
        seen = Seen().counts(more=own_tests.places(data))
        usual, more = Seen.split(seen)
        for rows, step, own in local.steps(data, self.batch, self.steps, stream, network.at_once):
            found = local.slope(network, theta[rows], own)
            if step == 0:
                lengths = local.lengths(found.gradient)
                refuse_gradients(found.losses, lengths, rounds)
                usual += local.first_seen(found, own) + local.norms_seen(lengths)
            theta[rows] -= np.float32(self.step_size) * found.gradient
        refuse_own(theta, rounds, "task.step_size")
        if self.due(rounds + 1):
            more[:] = own_tests.own_accuracy(network, theta, data)
        return Answer(np.zeros((len(data), 1)), memory={"theta": theta}, seen=seen)

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
        """Count the rounds; the reports say nothing."""
        rounds = {"rounds": np.asarray(int(state["rounds"]) + 1)}
        return rounds, rounds

    def files(self, setting: Setting, state: Arrays) -> dict[str, Arrays]:
        """Return nothing: there is no common model."""
        return {}

    def closing(self, setting: Setting, public: Arrays) -> dict[str, pa.RecordBatch]:
        """Return nothing: there is no common model to test."""
        return {}

    @property
    def keeps_own(self) -> bool:
        """Whether the models are written down."""
        return self.keep_personal

    def own_files(self, setting: Setting, memory: Arrays) -> dict[str, Arrays]:
        """Return the models, one row per client."""
        return own_tests.personal_files(self.network(setting), memory)

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return how training went, and how the models do on their clients' own samples."""
        assert truth.seen is not None
        rounds = int(public[0]["rounds"])
        refuse_astray(Seen.of(truth.seen), setting.labels, rounds, self.step_field)
        # What is reported is no gradient, so nothing is clipped.
        tested = {"alone": Seen.split(truth.seen)[1]}
        row = training.training_row(rounds, truth, {"fraction_clipped": 0.0})
        return {"training": row, **own_tests.personal_row(rounds, tested)}
