"""Federated averaging with a proof: clean local steps, the update clipped, randomized once."""

from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.randomizer import Randomizer
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
from raydp_sim.tasks.learning import local, own_tests, training
from raydp_sim.tasks.learning.adaptive_clip import AdaptiveClip
from raydp_sim.tasks.learning.model_task import ModelTask, Passes
from raydp_sim.tasks.learning.optimizers import OPTIMIZERS, Optimizer, Sgd, as_state, of_state
from raydp_sim.tasks.learning.runaway import refuse_gradients, refuse_own
from raydp_sim.tasks.learning.schedules import Constant, Positive, StepSize
from raydp_sim.tasks.learning.seen import UNIT, Seen, exact

_RATE = "task.local_step_size"


class FedAvg(ModelTask):
    """Clients train from the common model and report by how much they would move it.

    McMahan et al. 2018, "Learning differentially private recurrent language models": the update of
    a client, not its steps, is clipped to the mechanism's ball and randomized once, by any
    mechanism under any trust. What is protected is all of a client's data, and the release costs
    what the mechanism proves, whatever the local steps were: no argument about their noise is
    needed. With `proximal` > 0 local steps also pull back to the common model (FedProx, Li et al.
    2020). With `adaptive_clip` updates are clipped to a norm that is learned on the way.

    Fields:
        steps: local steps of a round.
        local_step_size: of a local step.
        proximal: weight of FedProx's term, mu/2 ||theta - common||^2.
        batch: samples of a client in one step; all unless given.
        step_size: by which the server follows the mean update; a number, or a schedule.
        optimizer: what the server makes of the mean update.
        adaptive_clip: how the clipping norm is learned; it starts at the mechanism's radius.
    """

    kind: ClassVar[str] = "fedavg"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "task": {"rounds": 3, "steps": 2, "proximal": 0.1, "adaptive_clip": {"rate": 0.3}},
            "trust": "central",
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
                "kind": "central-gaussian",
                "radius": 0.5,
                "epsilon": 1.0,
                "delta": 1e-7,
                "on_out_of_range": "clip",
            },
        },
        {
            "task": {"rounds": 2, "steps": 2, "batch": 3, "optimizer": {"kind": "fedadam"}},
            "population": {
                "clients": 41,
                "data": {"kind": "synthetic-digits", "n": 410, "side": 4, "test": 20},
            },
            "participation": {"kind": "uniform", "sampled": 30},
            "mechanism": {
                "kind": "l2",
                "radius": 0.5,
                "epsilon_local": 2.0,
                "on_out_of_range": "clip",
            },
        },
    )
    steps: Annotated[int, Field(ge=1)] = 10
    local_step_size: Positive = 0.1
    proximal: Annotated[float, Field(ge=0)] = 0.0
    batch: Annotated[int, Field(ge=1)] | None = None
    step_size: StepSize = Constant(value=1.0)
    optimizer: Annotated[Optimizer, *piece(OPTIMIZERS)] = Sgd()
    adaptive_clip: AdaptiveClip | None = None

    def width(self, shape: tuple[int, ...], labels: int) -> int:
        """Return the number of parameters, and one for the bit of adaptive clipping."""
        return super().width(shape, labels) + (self.adaptive_clip is not None)

    def plan(self, setting: Setting) -> tuple[Planned, ...]:
        """Return one kind of release; refuse a mechanism that does not clip."""
        mechanism = setting.mechanism
        training.refuse_no_clipping(mechanism)
        if mechanism.inner_steps:
            remedy = "task 'fedavg' randomizes the update once; use task dp-fedavg, or gaussian"
            raise bad_field("mechanism.kind", mechanism.kind, remedy)
        if self.adaptive_clip is not None and mechanism.domain.norm != "l2":
            remedy = "task.adaptive_clip is for mechanisms of an l2 ball, such as central-gaussian"
            raise bad_field("mechanism.kind", mechanism.kind, remedy)
        return super().plan(setting)

    def passes(self, setting: Setting) -> Passes:
        """Return one gradient a local step."""
        return Passes(self.steps, self.batch or setting.shape[0])

    def refuse(self, setting: Setting, data: Any, ids: Any) -> None:
        """Refuse data without labels, and batches that clients cannot fill."""
        local.refuse_batch(data, self.batch, ids)

    def init(self, setting: Setting) -> Arrays:
        """Start at the model's first parameters, clipping to the mechanism's radius."""
        first = self.first(setting)
        memory, clip = self.optimizer.init(len(first)), setting.mechanism.domain.radius
        more = {"clip": np.asarray(clip), **as_state(memory)}
        return self.begun(setting, first.astype(np.float64), **more)

    def told(self, state: Arrays) -> Arrays:
        """Return the common model, and the norm that updates are clipped to."""
        return {**super().told(state), "clip": state["clip"]}

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
        """Take the local steps and report by how much the model has moved."""
        network, rounds = self.network(setting), int(ask.broadcast["rounds"])
        first, rate = ask.broadcast["theta"], np.float32(self.local_step_size)
        updates = np.empty((len(data), network.size), np.float32)
        losses, lengths, norms = (np.empty(len(data), np.float32) for _ in range(3))
        samples = hits = 0
        for rows, step, own in local.steps(data, self.batch, self.steps, stream, network.at_once):
            moved = updates[rows]
            if step == 0:
                # All begin with the same model.
                found = local.slope(network, first, own, out=moved)
                losses[rows], lengths[rows] = found.losses, local.lengths(moved)
                refuse_gradients(losses[rows], lengths[rows], rounds, _RATE)
                counted = local.hits(found, own)
                samples, hits = samples + counted[0], hits + counted[1]
                moved *= -rate
            else:
                slope = local.slope(network, first + moved, own).gradient
                if self.proximal:
                    slope += np.float32(self.proximal) * moved
                slope *= -rate
                moved += slope
            if step == self.steps - 1:
                norms[rows] = local.lengths(moved)
                refuse_own(norms[rows], rounds, _RATE)
        clip, count = float(ask.broadcast["clip"]), len(data)
        usual = Seen(count, exact(losses), samples, hits, count, exact(lengths))
        seen = usual.counts(more=3 + own_tests.places(data))
        _, more = Seen.split(seen)
        more[:3] = count, exact(norms), int((norms > clip).sum())
        if self.due(rounds + 1):
            # Of the model that the round began with: clients know no other.
            more[3:] = own_tests.own_accuracy(network, first, data)
        if self.adaptive_clip is None:
            return Answer(updates, memory=memory, seen=seen)
        radius = ask.mechanism.domain.radius
        return Answer(self.adaptive_clip.packed(updates, clip, radius), memory=memory, seen=seen)

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
        """Follow the mean update, and move the clipping norm."""
        mean = ask.mechanism.decode(accumulator, stream) / formed.weight
        rounds, clip = int(state["rounds"]) + 1, float(state["clip"])
        if self.adaptive_clip is not None and formed.reports:
            mean, within = self.adaptive_clip.unpacked(mean, clip, ask.mechanism.domain.radius)
            clip = self.adaptive_clip.moved(clip, within)
        elif self.adaptive_clip is not None:
            mean = mean[:-1]
        move, memory = self.optimizer.move(-mean, rounds, of_state(state))
        rate = self.step_size.rate(rounds)
        theta, told = state["theta"] - rate * move, {"clip": np.asarray(clip)}
        after, public = self.closed(setting, state, theta, rate, **told, **as_state(memory))
        return after, {**public, **told}

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return how training went, and the model on held-out and on clients' own samples."""
        assert truth.seen is not None
        _, (count, norm, cut, *tested) = Seen.split(truth.seen)
        more = {"update_norm": int(norm) * UNIT / max(1, int(count))}
        if self.adaptive_clip is not None:
            # What is randomized is inside the ball already; else the mechanism's norm decides.
            more["fraction_clipped"] = int(cut) / max(1, int(count))
        more["next_clip"] = float(public[0]["clip"])
        own = own_tests.personal_row(int(public[0]["rounds"]), {"starting": np.array(tested)})
        return self.trained(setting, public[0], truth, **more) | own
