"""What contextual bandits share as tasks: policies, contexts that stay put, two regrets."""

from abc import abstractmethod
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Counts
from raydp_sim.mechanisms.parts.exact import exact_sum, exact_value, unit
from raydp_sim.random import Stream
from raydp_sim.tasks.bandits.batch import Batch
from raydp_sim.tasks.bandits.batched import BatchedBandit
from raydp_sim.tasks.bandits.checks import SLACK
from raydp_sim.tasks.bandits.context_law import from_sample
from raydp_sim.tasks.bandits.contextual import (
    Contexts,
    ContextualInstance,
    PolicyTable,
    estimated_policies,
    plane_directions,
    plane_policies,
    sampled_directions,
    sampled_policies,
)
from raydp_sim.tasks.bandits.learner import State, committed
from raydp_sim.tasks.bandits.problem import Problem
from raydp_sim.tasks.bandits.streams import STREAM, Certified, contextual_row, played_row
from raydp_sim.tasks.base import Arrays, Ask, Floats, Setting, Truth

Real = Annotated[float, Field(allow_inf_nan=False)]
_SPELLED = 12  # contexts up to which a policy is called by what it plays in each


class PolicyBandit(BatchedBandit):
    """Finds the policy that earns most, where every client is in a context that it keeps to itself.

    A policy is a direction: in its context a client plays the action whose features point farthest
    along it, the lowest among equals. With a law of contexts a policy is an action of a linear
    bandit, its mean feature; see `BatchedBandit` for how that goes. The slot says a direction.
    Neither the context nor what was played leaves the client, only the reward. What is asked of
    others later tells little of them, but the client's own play may depend on its context: joint
    DP. Clients hold what `contextual-rewards` gives them.

    In the plane the table of policies is exact; elsewhere it is of directions drawn at random.

    Fields every one has:
        features: phi, of every context, of each of its actions; public.
        policies: directions that are drawn where features are not of the plane.
        candidates: directions that are then in the table in any case, one per row.
    """

    protects: ClassVar[str] = (
        "the client's context and reward, in what others are asked later (joint DP)"
    )

    features: Annotated[
        list[Annotated[list[Annotated[list[Real], Field(min_length=1)]], Field(min_length=1)]],
        Field(min_length=1),
    ]
    policies: Annotated[int, Field(ge=1, le=1_000_000)] = 1000
    candidates: list[list[Real]] = []  # noqa: RUF012  # pydantic's

    @field_validator("features")
    @classmethod
    def _even(cls, features: list[list[list[float]]]) -> list[list[list[float]]]:
        actions = {len(context) for context in features}
        lengths = {len(row) for context in features for row in context}
        if len(actions) > 1 or len(lengths) > 1:
            raise ValueError("give every context as many actions, and every action as many numbers")
        return features

    @field_validator("candidates")
    @classmethod
    def _elsewhere(cls, candidates: list[list[float]], info: ValidationInfo) -> list[list[float]]:
        width = len(info.data["features"][0][0]) if "features" in info.data else 0
        if candidates and width == 2:
            raise ValueError("in the plane the table has every policy; leave it out")
        if width and any(len(row) != width for row in candidates):
            raise ValueError(f"give {width} numbers for each, as features have")
        return candidates

    @property
    def certified(self) -> bool:
        """Whether the table has the best policy: in the plane it has them all."""
        return len(self.features[0][0]) == 2

    # What a contextual bandit says of itself.

    @property
    @abstractmethod
    def contexts(self) -> Contexts:
        """Features, and the law of contexts as it is taken to be before the run."""

    @property
    @abstractmethod
    def law_known(self) -> bool:
        """Whether that is the law; if not, the analyst goes by the clients' own."""

    @abstractmethod
    def rests_on(self, setting: Setting, made: Arrays) -> Certified:
        """Return what the certificate rests on, where the table has every policy."""

    @property
    def table(self) -> PolicyTable:
        """The policies."""
        return _table(type(self), self.model_dump_json(exclude_unset=True))

    def vectors(self, state: Arrays | None = None) -> Floats:
        """Return the mean feature of every policy."""
        return self.table.actions

    def named(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """Call policies by what they play in every context, where that is short."""
        if len(self.features) > _SPELLED:
            return ()
        return tuple("-".join(map(str, play)) for play in self._plays().tolist())

    def _plays(self) -> NDArray[np.int64]:
        return self.contexts.greedy(self.table.directions)

    def holds(self, dimension: int) -> tuple[int, str]:
        """Return luck, context and theta."""
        return 2 + dimension, "contextual-rewards"

    def refuse(self, setting: Setting, data: Any, ids: Any) -> None:
        """Refuse contexts that are not known, and rewards that could not have their mean."""
        held, features, rewards = np.asarray(data), np.array(self.features), self.rewards
        known = np.isin(held[:, 1], np.arange(len(features)))
        if not known.all():
            row = int(np.argmin(known))
            raise InputError(
                f"client {int(ids[row])} is in context {held[row, 1]:g}; task.features has "
                f"{len(features)} contexts, from 0"
            )
        kinds, rows = np.unique(held[:, 2:], axis=0, return_index=True)
        for theta, row in zip(kinds, rows, strict=True):
            means = features @ theta
            if means.min() < rewards.low - 1e-9 or means.max() > rewards.high + 1e-9:
                worst = means.min() if means.min() < rewards.low - 1e-9 else means.max()
                raise InputError(
                    f"theta of client {int(ids[row])} gives a mean reward of {worst:g} in some "
                    f"context; it must lie in [{rewards.low:g}, {rewards.high:g}] (task.rewards)"
                )

    def broadcast(self, problem: Problem, batch: Batch) -> Arrays:
        """Return the directions."""
        return {"directions": self.table.directions[batch.actions]}

    def played(
        self, held: Floats, broadcast: Arrays, slots: NDArray[np.int64]
    ) -> tuple[Floats, NDArray[np.int64] | None]:
        """Follow the slot's direction in the client's own context.

        The analyst counts what was lost to the best action in it.
        """
        context, theta = held[:, 1].astype(np.int64), held[:, 2:]
        play = self.contexts.greedy(broadcast["directions"])[slots, context]
        means = (np.array(self.features)[context] * theta[:, None, :]).sum(axis=2)
        mean = means[np.arange(len(held)), play]
        lost = exact_sum((means.max(axis=1) - mean)[:, None], unit(1.0))
        return mean, lost.reshape(-1)

    def files(self, setting: Setting, state: Arrays) -> dict[str, Arrays]:
        """Return the recommended policy: its direction, and what it plays in every context."""
        best = committed(self.problem(setting, state), State.of(state))
        found = {"direction": self.table.directions[best], "plays": self._plays()[best]}
        return {"policy/recommended": found}

    # For the analyst of a simulation.

    def truth(self, setting: Setting, data: Any) -> Counts:
        """Return how many clients are in each context, the exact sum of thetas, and the number."""
        held = np.asarray(data)
        there = np.bincount(held[:, 1].astype(np.int64), minlength=len(self.features))
        total = exact_sum(held[:, 2:], unit(1.0))
        return np.concatenate([there, total.reshape(-1), [len(held)]]).astype(np.int64)

    def _theta(self, truth: Counts) -> Floats:
        total = truth[len(self.features) : -1].reshape(2, -1)
        return exact_value(total, unit(1.0), int(truth[-1]))

    def _law(self, truth: Counts) -> Contexts:
        """Return the contexts as they are: by the law that is known, else as clients have them.

        Clients whom chance would give such contexts once in 10^9 times at most follow another law
        than the one that is taken to be known.
        """
        there = truth[: len(self.features)]
        if not there.any():
            return self.contexts
        own = from_sample(np.array(self.features), there, 1e-9)
        apart = np.abs(own.contexts.probabilities - self.contexts.probabilities).sum()
        return self.contexts if self.law_known and apart <= own.off else own.contexts

    def estimand(self, setting: Setting, truth: Counts) -> Floats | None:
        """Return the mean reward of every policy."""
        features = self._law(truth).mean_feature(self.table.directions)
        return np.asarray(features @ self._theta(truth))

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return what came of the batch, and both regrets."""
        problem, made = self.problem(setting, public[0]), public[0]
        certified = self.rests_on(setting, made) if self.certified else None
        return {
            STREAM: played_row(problem, made, self.protects, certified),
            "errors": self.lost(setting, made, truth),
        }

    def lost(self, setting: Setting, made: Arrays, truth: Truth) -> pa.RecordBatch:
        """Return both regrets."""
        problem, contexts = self.problem(setting, made), len(self.features)
        known = self._law(truth.population)
        instance = ContextualInstance(known, self.table, self._theta(truth.population))
        lost = 0.0
        if truth.seen_so_far is not None:  # someone has reported
            lost = float(exact_value(truth.seen_so_far.reshape(2, 1), unit(1.0), 1)[0])
        left = truth.population[:contexts] - truth.so_far[:contexts]
        return contextual_row(problem, made, instance, lost, left, self.first(made, instance))

    def first(self, made: Arrays, instance: ContextualInstance) -> tuple[float, float] | None:
        """Return what clients lost on average that were in no batch; see `contextual_row`."""
        return None


@lru_cache(maxsize=8)
def _table(kind: type[PolicyBandit], document: str) -> PolicyTable:
    task = kind.model_validate_json(document)
    contexts = task.contexts
    own = np.array(task.candidates) if task.candidates else None
    place = (task.policies, Stream(0).at("policies"), own)
    if task.law_known:
        return plane_policies(contexts) if task.certified else sampled_policies(contexts, *place)
    many = plane_directions(contexts) if task.certified else sampled_directions(contexts, *place)
    return estimated_policies(contexts, many, task.certified)


def check_short(features: list[list[list[float]]]) -> None:
    """Refuse features that are too long for means of them, whatever the law, to be actions."""
    longest = float(np.linalg.norm(np.array(features), axis=2).max())
    if longest > 1.0 + SLACK:
        raise ValueError(
            f"task.features are up to {longest:.6g} long; where the law of contexts is estimated "
            "scale them to at most 1"
        )
