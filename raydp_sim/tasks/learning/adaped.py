"""DP-AdaPeD: every client trains a model of its own, and all share a common one through noise."""

from typing import Annotated, Any, ClassVar, Literal

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
    Floats,
    Formed,
    Planned,
    Setting,
    Truth,
)
from raydp_sim.tasks.learning import local, own_tests
from raydp_sim.tasks.learning.distilling import Public, Rule
from raydp_sim.tasks.learning.model_task import ModelTask, Passes
from raydp_sim.tasks.learning.noisy_steps import accountants, noisy_steps
from raydp_sim.tasks.learning.runaway import refuse_own
from raydp_sim.tasks.learning.schedules import Positive
from raydp_sim.tasks.learning.seen import Seen


class AdaPeD(ModelTask):
    """Personal models tied to a common one, as closely as clients are alike (knowledge distilling).

    Girgis 2023 (dissertation), Algorithm 4.4.1. Client i minimises f_i(theta_i) + log(2 psi)/2 +
    KD_i(theta_i, mu)/(2 psi) by tau = `mechanism.steps` local steps a round; theta_i never leaves.
    Of mu and psi it holds copies that move by clipped and noisy directions only, and what it
    reports is where they have moved to. The source averages the copies from before the last step;
    with tau = 1 the common model would then never move, so here it is those after it.

    What is protected is all of a client's data, and the report is charged as tau noisy steps that
    are all seen: the source's smaller figures take a client's noise of all steps for one Gaussian,
    but its later steps depend on its own earlier noise, and so does psi's step on mu's noise even
    for tau = 1. They are in stream `accountants`, named as not proved.

    Fields:
        step_sizes: of theta, mu and psi (eta_1, eta_2, eta_3).
        psi: before the first round.
        psi_least: that psi is kept above after every step, which costs nothing.
        divergence: of what the two models predict: "forward", KL(common || personal), or "reverse".
        loss: f_i over a batch: its "mean", which makes step sizes the same for any batch, or its
            "sum", as the source writes it; what the models predict differs by a mean either way.
        batch: samples of a client in one step; all unless given.
        alone: whether every client also trains a model without the common one, to compare with.
        keep_personal: whether the personal models are written down at the end of the run.
    """

    kind: ClassVar[str] = "adaped"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "task": {
                "rounds": 3,
                "step_sizes": [0.5, 0.1, 0.05],
                "psi": 1.0,
                "psi_least": 0.9,
                "divergence": "reverse",
            },
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
            "participation": {"kind": "uniform", "sampled": 30},
            "mechanism": {
                "kind": "gaussian-steps",
                "radius": 0.5,
                "scalar_radius": 0.05,
                "steps": 2,
                "sigma": 0.5,
                "scalar_sigma": 0.2,
            },
        },
    )
    step_field: ClassVar[str] = "task.step_sizes"
    step_sizes: tuple[Positive, Positive, Positive] = (0.5, 0.1, 0.005)
    psi: Positive = 2.0
    psi_least: Positive = 1e-3
    divergence: Literal["forward", "reverse"] = "forward"
    loss: Literal["mean", "sum"] = "mean"
    batch: Annotated[int, Field(ge=1)] | None = None
    alone: bool = True
    keep_personal: bool = False

    def width(self, shape: tuple[int, ...], labels: int) -> int:
        """Return the number of parameters, and one for psi."""
        return super().width(shape, labels) + 1

    def plan(self, setting: Setting) -> tuple[Planned, ...]:
        """Return one kind of release; refuse a mechanism that is not of noisy steps."""
        noisy_steps(setting.mechanism, self.kind, scalar=True)
        return super().plan(setting)

    def passes(self, setting: Setting) -> Passes:
        """Return a gradient of the personal and of the common model a step, and of that alone."""
        models = 3 if self.alone else 2
        return Passes(models * setting.mechanism.inner_steps, self.batch or setting.shape[0])

    def refuse(self, setting: Setting, data: Any, ids: Any) -> None:
        """Refuse data without labels, and batches that clients cannot fill."""
        local.refuse_batch(data, self.batch, ids)

    # The protocol.

    def init(self, setting: Setting) -> Arrays:
        """Start at the model's first parameters."""
        psi = np.asarray(max(self.psi, self.psi_least))
        return self.begun(setting, self.first(setting).astype(np.float64), psi=psi)

    def told(self, state: Arrays) -> Arrays:
        """Return the common model, and psi."""
        return {**super().told(state), "psi": state["psi"]}

    def memory(self, setting: Setting, data: Any, stream: ClientStream) -> Arrays:
        """Start personal models where the common one starts."""
        names = ("theta", "alone") if self.alone else ("theta",)
        return {name: np.tile(self.first(setting), (len(data), 1)) for name in names}

    def settle(self, setting: Setting, ask: Ask, total: Floats) -> Floats:
        """Keep psi above its least value: its moves never add up to more than this."""
        total[:, -1] = np.minimum(total[:, -1], self._rule.most(float(ask.broadcast["psi"])))
        return total

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
        """Take the local steps; what leaves is where the copies of mu and psi have moved to."""
        known = ask.broadcast
        rule, told = self._rule, Public(known["theta"], float(known["psi"]), int(known["rounds"]))
        network, steps = self.network(setting), ask.mechanism.inner_steps
        theta = memory["theta"].copy()
        alone = memory["alone"].copy() if self.alone else None
        seen, most = Seen().counts(more=1 + 3 * own_tests.places(data)), rule.most(told.psi)
        # Beside the usual: psi at its least value, and three models on clients' own samples.
        usual, more = Seen.split(seen)
        for rows, step, own in local.steps(data, self.batch, steps, stream):
            made = rule.step(network, told, own, theta[rows], randomizer.walk, rows)
            theta[rows] = made.theta
            usual += local.norms_seen(made.lengths)
            if step == 0:
                usual += local.first_seen(made.found, own)
            more[0] += int((randomizer.walk.total[rows, -1] >= most).sum())
            if alone is not None:
                slope = local.slope(network, alone[rows], own).gradient
                if self.loss == "sum":
                    slope *= np.count_nonzero(own.weights, axis=1).astype(np.float32)[:, None]
                alone[rows] -= np.float32(self.step_sizes[0]) * slope
        after = {"theta": theta} | ({} if alone is None else {"alone": alone})
        for trained in after.values():
            refuse_own(trained, told.rounds, self.step_field)
        if self.due(told.rounds + 1):
            for place, models in enumerate((theta, told.mu, alone)):
                if models is not None:
                    tested = own_tests.own_accuracy(network, models, data)
                    more[1:].reshape(3, -1)[place] = tested
        return Answer(randomizer.walk.total, memory=after, seen=seen)

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
        """Average the copies: move by the mean of the noisy directions, times their number."""
        moved = ask.mechanism.decode(accumulator, stream) / formed.weight
        moved = moved * ask.mechanism.inner_steps
        mu = state["theta"] - self.step_sizes[1] * moved[:-1]
        least = max(self.psi_least, float(state["psi"]) - self.step_sizes[2] * float(moved[-1]))
        told = {"psi": np.asarray(least)}
        after, public = self.closed(setting, state, mu, self.step_sizes[1], **told)
        return after, {**public, **told}

    @property
    def keeps_own(self) -> bool:
        """Whether personal models are written down."""
        return self.keep_personal

    def own_files(self, setting: Setting, memory: Arrays) -> dict[str, Arrays]:
        """Return the personal models, one row per client."""
        return own_tests.personal_files(self.network(setting), memory)

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return how training went, personal models on own samples, and the accountants."""
        assert truth.seen is not None
        rounds, (_, (floored, *tested)) = int(public[0]["rounds"]), Seen.split(truth.seen)
        steps = max(1, truth.clipped.values // 2)
        more = {"psi": float(public[0]["psi"]), "psi_at_least": int(floored) / steps}
        names = ("personal", "starting", "alone")
        sums = dict(zip(names, np.reshape(tested, (3, -1)), strict=True))
        beside = {"accountants": accountants(setting, ask.mechanism, rounds, truth.reports)}
        rows = self.trained(setting, public[0], truth, **more) | beside
        return rows | own_tests.personal_row(rounds, sums)

    @property
    def _rule(self) -> Rule:
        return Rule(self.step_sizes, self.psi_least, self.divergence, self.loss)
