"""The contextual bandit whose clients are asked for their contexts first."""

from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator

from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.metrics.streams import released
from raydp_sim.random import ClientStream, Stream
from raydp_sim.tasks.bandits.asking import (
    ask_contexts,
    first_action,
    heard,
    is_asking,
    with_asked,
)
from raydp_sim.tasks.bandits.contextual import Contexts, ContextualInstance
from raydp_sim.tasks.bandits.contextual_task import ContextualBandit
from raydp_sim.tasks.bandits.learner import State
from raydp_sim.tasks.bandits.policies import PolicyBandit, check_short
from raydp_sim.tasks.bandits.streams import Certified
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
from raydp_sim.tasks.base import Batch as Messages


class AskingBandit(PolicyBandit):
    """A contextual bandit that does not know the law of contexts, and asks the first clients.

    They send their context through k-ary randomized response, within the run's epsilon, and play
    the first action. They serve in no other batch, so by parallel composition the run costs what
    its dearest release does. The certificate carries what may be wrong with the estimate, and all
    that those who are asked may lose. See `PolicyBandit` for the rest.

    Fields:
        asked: how many clients. Few tell too little, many lose too much. Not where the aggregator
            is trusted.

    Example:
        >>> task = AskingBandit(features=[[[0.6, 0.0], [0.0, 0.8]], [[-0.5, 0.5], [0.3, 0.3]]],
        ...                     asked=100)
        >>> task.vectors().shape
        (4, 2)
    """

    kind: ClassVar[str] = "asking-bandit"
    examples: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {
            **{name: part for name, part in example.items() if name != "task"},
            "task": {
                "features": [[[0.6, 0.0], [0.0, 0.8]], [[-0.5, 0.5], [0.3, 0.3]]],
                "asked": 40,
                "rounds": 6,
            },
        }
        for example in ContextualBandit.examples
        if example["trust"] != "central"
    )
    asked: Annotated[int, Field(ge=1)]

    @field_validator("asked")
    @classmethod
    def _enough(cls, asked: int, info: ValidationInfo) -> int:
        features = info.data.get("features")  # refused by itself where it is missing
        if features is not None:
            check_short(features)
        if (features is not None and len(features) < 2) or info.data.get("rounds", 2) < 2:
            raise ValueError("it takes two contexts or more, and task.rounds of two or more")
        return asked

    @property
    def contexts(self) -> Contexts:
        """Features, with a law that stands for any until there is an estimate."""
        count = len(self.features)
        return Contexts(np.array(self.features), np.full(count, 1.0 / count))

    @property
    def law_known(self) -> bool:
        """It is estimated."""
        return False

    def vectors(self, state: Arrays | None = None) -> Floats:
        """Return the mean feature of every policy, by the law as it is known."""
        if state is None or not state["law"].any():
            return self.table.actions
        known = Contexts(np.array(self.features), state["law"])
        return known.mean_feature(self.table.directions)

    def plan(self, setting: Setting) -> tuple[Planned, ...]:
        """Return the batches, and before them the release of contexts, if clients are asked."""
        (batches,) = super().plan(setting)
        problem = self.problem(setting)
        if problem.model == "central":
            remedy = "clients who trust the aggregator are not asked one by one; give task.sample"
            raise bad_field("task.asked", self.asked, remedy)
        if self.asked > problem.horizon - sum(batches.ask.slots or ()):
            remedy = f"no batch fits into what is left of {problem.horizon} rounds; lower it"
            raise bad_field("task.asked", self.asked, remedy)
        ask = ask_contexts(problem, len(self.features), self.asked, amplified=False)
        first = Planned(ask, 1, disjoint=True, fixed=batches.fixed, together=self.asked)
        return first, batches._replace(times=self.rounds - 1)

    def init(self, setting: Setting) -> Arrays:
        """Start with all policies, and nothing known of the contexts."""
        zero = np.zeros((), np.int64)
        known = {"law": np.zeros(len(self.features)), "off": np.zeros(())}
        return {**super().init(setting), **known, "asked": zero, "answered": zero}

    def _beta(self, setting: Setting) -> float:
        return 1.0 / self.problem(setting).horizon

    def ask(self, setting: Setting, state: Arrays) -> Ask | None:
        """Ask for contexts where they are not known, then for batches."""
        if state["law"].any():
            return super().ask(setting, state)
        problem = self.problem(setting)
        if State.of(state).used + self.asked > problem.horizon:
            return None
        return ask_contexts(problem, len(self.features), self.asked)

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
        """Report the context and play the first action, or play what the slot says."""
        if is_asking(ask):
            values, lost = first_action(np.array(self.features), np.asarray(data))
            return Answer(values, memory=memory, seen=lost)
        return super().client(setting, ask, data, memory, slots, randomizer, stream)

    def zero(self, setting: Setting, ask: Ask, reader: int) -> Any:
        """Return no contexts, or no rewards."""
        return ask.mechanism.zero() if is_asking(ask) else super().zero(setting, ask, reader)

    def fold(
        self, setting: Setting, ask: Ask, reader: int, accumulator: Any, batch: Messages
    ) -> Any:
        """Count contexts, or add up rewards."""
        if not is_asking(ask):
            return super().fold(setting, ask, reader, accumulator, batch)
        index = np.broadcast_to(np.int64(0), len(batch.payload))
        return ask.mechanism.fold(accumulator, index, batch.payload)

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
        """Estimate the law of contexts, or learn from a batch."""
        if not is_asking(ask):
            return super().step(setting, ask, reader, state, accumulator, formed, stream)
        found = heard(np.array(self.features), ask, accumulator, self._beta(setting))
        law, off = found.contexts.probabilities, np.array(found.off)
        answered = np.asarray(state["answered"] + formed.reports)
        after = {**with_asked(state, ask), "law": law, "off": off, "answered": answered}
        return after, {**after, "values": np.zeros(len(self.table.actions))}

    def withheld(
        self, setting: Setting, ask: Ask, state: Arrays, asked: int
    ) -> tuple[Arrays, Arrays]:
        """Count the rounds of those who were handed a slot; it will be asked again."""
        if not is_asking(ask):
            return super().withheld(setting, ask, state, asked)
        if not asked:
            return state, {}
        after = with_asked(state, ask)
        return after, {**after, "values": np.zeros(len(self.table.actions))}

    # For the analyst of a simulation.

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return the law that clients told, or what came of a batch."""
        if not is_asking(ask):
            return super().rows(setting, ask, public, truth)
        made, contexts = public[0], np.arange(len(self.features))
        if not made["law"].any():  # too few told theirs
            return {"errors": self.lost(setting, made, truth)}
        off = np.full(len(contexts), made["off"])
        shares = released({"context": contexts, "share": made["law"], "off": off})
        return {"contexts": shares, "errors": self.lost(setting, made, truth)}

    def rests_on(self, setting: Setting, made: Arrays) -> Certified:
        """Return how far the estimate may be off, and how many were asked."""
        width = self.problem(setting).rewards.width
        omega = 0.5 * width * float(made["off"])
        return Certified(omega, self._beta(setting), int(made["asked"]))

    def first(self, made: Arrays, instance: ContextualInstance) -> tuple[float, float]:
        """Return what the asked lost on average, all of them and those who did not report."""
        rewards = instance.contexts.features @ instance.theta
        each = instance.contexts.probabilities @ (rewards.max(axis=1) - rewards[:, 0])
        asked, silent = int(made["asked"]), int(made["asked"]) - int(made["answered"])
        return asked * float(each), silent * float(each)
