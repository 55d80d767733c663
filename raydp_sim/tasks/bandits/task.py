"""The linear bandit as a task: which action earns most, from one reward of every client."""

from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Counts
from raydp_sim.mechanisms.parts.exact import exact_sum, exact_value, unit
from raydp_sim.tasks.bandits.batch import Batch
from raydp_sim.tasks.bandits.batched import BatchedBandit
from raydp_sim.tasks.bandits.checks import check_vectors
from raydp_sim.tasks.bandits.problem import Problem
from raydp_sim.tasks.bandits.streams import STREAM, Certified, played_row, regret_row
from raydp_sim.tasks.base import Arrays, Ask, Floats, Setting, Truth

Real = Annotated[float, Field(allow_inf_nan=False)]
_BLOCK = 1 << 16


class Bandit(BatchedBandit):
    """Finds the action that earns most, with one round and one reward of every client.

    See `BatchedBandit` for how it goes. Clients hold what `linear-rewards` gives them.

    Fields:
        actions: one vector each, of length at most 1; public.
        names: of the actions, one each.

    Example:
        >>> Bandit(actions=[[1.0, 0.0], [0.0, 1.0]]).spends
        1
    """

    kind: ClassVar[str] = "bandit"
    examples: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {
            "task": {"actions": [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], "rounds": 6, **task},
            "population": {
                "clients": 120,
                "data": {"kind": "linear-rewards", "theta": [0.9, -0.3]},
            },
            "trust": trust,
            "mechanism": {"radius": 1.0, **mechanism},
        }
        for trust, task, mechanism in (
            ("shuffle", {}, {"kind": "laplace", "target": {"epsilon": 3.0, "delta": 1e-6}}),
            ("local", {"design": "uniform"}, {"kind": "laplace", "epsilon_local": 2.0}),
            ("central", {"radius": "paper"}, {"kind": "central-laplace", "epsilon": 1.0}),
        )
    )
    protects: ClassVar[str] = "the client's reward (DP)"

    actions: Annotated[
        list[Annotated[list[Real], Field(min_length=1)]], Field(min_length=2, max_length=100_000)
    ]
    names: list[str] = []  # noqa: RUF012  # pydantic's

    @field_validator("actions")
    @classmethod
    def _short(cls, actions: list[list[float]]) -> list[list[float]]:
        lengths = sorted({len(row) for row in actions})
        if len(lengths) > 1:
            raise ValueError(f"they have {lengths[0]} to {lengths[-1]} numbers; give all as many")
        check_vectors("actions", actions)
        return actions

    @field_validator("names")
    @classmethod
    def _one_each(cls, names: list[str], info: ValidationInfo) -> list[str]:
        actions = info.data.get("actions", names)  # refused by itself where it is missing
        if names and len(names) != len(actions):
            raise ValueError(f"give one for each of {len(actions)} actions, or none")
        return names

    def vectors(self, state: Arrays | None = None) -> Floats:
        """Return the actions as they are given."""
        return np.array(self.actions)

    def named(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the actions."""
        return tuple(self.names)

    def holds(self, dimension: int) -> tuple[int, str]:
        """Return luck and theta."""
        return 1 + dimension, "linear-rewards"

    def refuse(self, setting: Setting, data: Any, ids: Any) -> None:
        """Refuse clients whose rewards could not have the mean <theta, a>."""
        actions, rewards = self.problem(setting).actions, self.rewards
        for first in range(0, len(data), _BLOCK):
            means = np.asarray(data[first : first + _BLOCK])[:, 1:] @ actions.T
            outside = (means < rewards.low - 1e-9) | (means > rewards.high + 1e-9)
            if outside.any():
                row, action = (int(place[0]) for place in np.nonzero(outside))
                raise InputError(
                    f"theta of client {int(ids[first + row])} gives action {action} a mean reward "
                    f"of {means[row, action]:g}; it must lie in [{rewards.low:g}, "
                    f"{rewards.high:g}] (task.rewards)"
                )

    def broadcast(self, problem: Problem, batch: Batch) -> Arrays:
        """Return the actions."""
        return {"actions": problem.actions[batch.actions]}

    def played(
        self, held: Floats, broadcast: Arrays, slots: NDArray[np.int64]
    ) -> tuple[Floats, NDArray[np.int64] | None]:
        """Return <theta, a> of the slot's action."""
        return (held[:, 1:] * broadcast["actions"][slots]).sum(axis=1), None

    def truth(self, setting: Setting, data: Any) -> Counts:
        """Return the exact sum of the clients' thetas, and their number."""
        total = exact_sum(np.asarray(data)[:, 1:], unit(1.0))
        return np.append(total.reshape(-1), len(data))

    def estimand(self, setting: Setting, truth: Counts) -> Floats | None:
        """Return the mean reward of every action."""
        theta = exact_value(truth[:-1].reshape(2, -1), unit(1.0), int(truth[-1]))
        return np.asarray(self.vectors() @ theta)

    def rows(
        self, setting: Setting, ask: Ask, public: list[Arrays], truth: Truth
    ) -> dict[str, pa.RecordBatch]:
        """Return what came of the batch, and the regret, against the best action of all clients."""
        problem, means = self.problem(setting), self.estimand(setting, truth.population)
        assert means is not None
        return {
            STREAM: played_row(problem, public[0], self.protects, Certified()),
            "errors": regret_row(problem, public[0], means.max() - means),
        }
