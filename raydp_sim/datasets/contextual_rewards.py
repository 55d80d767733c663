"""What clients of a contextual bandit would earn, each in a context of its own."""

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from raydp_sim.datasets.base import Dataset
from raydp_sim.datasets.linear_rewards import LinearRewards
from raydp_sim.random import Ids, Stream


class ContextualRewards(Dataset):
    """Every client is in a context, and earns with action a <theta, phi(a, context)> on average.

    A client holds its luck, its context, drawn independently of all others, and theta; see
    `linear-rewards` for what luck is.

    Fields:
        theta: the vector that rewards follow, of length at most 1. Only the simulation knows it.
        probabilities: of the contexts; they add up to 1.

    Example:
        >>> data = ContextualRewards(theta=[0.6, 0.0], probabilities=[0.5, 0.5])
        >>> held = data.values(np.arange(100, dtype=np.uint32), Stream(1))
        >>> held.shape, sorted(set(held[:, 1].tolist()))
        ((100, 4), [0.0, 1.0])
    """

    kind: ClassVar[str] = "contextual-rewards"
    theta: Annotated[
        list[Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=1, max_length=10_000)
    ]
    probabilities: Annotated[
        list[Annotated[float, Field(ge=0, allow_inf_nan=False)]],
        Field(min_length=1, max_length=1_000_000),
    ]

    @field_validator("theta")
    @classmethod
    def _short(cls, theta: list[float]) -> list[float]:
        return LinearRewards(theta=theta).theta

    @field_validator("probabilities")
    @classmethod
    def _whole(cls, probabilities: list[float]) -> list[float]:
        if abs((total := sum(probabilities)) - 1.0) > 1e-9:
            raise ValueError(f"they add up to {total:g}; it must be 1")
        return probabilities

    def width(self) -> int:
        """Return the length of a row: luck, context, then theta."""
        return 2 + len(self.theta)

    def values(self, ids: Ids, stream: Stream) -> NDArray[np.float64]:
        """Draw the clients' luck and contexts."""
        held = np.empty((len(ids), self.width()))
        held[:, 0] = stream.clients(ids).uniform("luck")[:, 0]
        ends = np.cumsum(self.probabilities)
        # From the last context that occurs on, so that rounding never draws one that does not.
        ends[np.flatnonzero(self.probabilities)[-1] :] = 1.0
        place = stream.clients(ids).uniform("context")[:, 0]
        held[:, 1] = np.searchsorted(ends, place, side="right")
        held[:, 2:] = self.theta
        return held
