"""What clients of a linear bandit would earn."""

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from raydp_sim.datasets.base import Dataset
from raydp_sim.random import Ids, Stream


class LinearRewards(Dataset):
    """Every client earns the larger of two rewards or the smaller, <theta, a> on average.

    A client holds its luck, uniform on [0, 1), and theta. With an action a it earns the larger
    reward if its luck is below the chance that makes <theta, a> the mean; so what it would earn
    with every action is fixed, and one number says it all. Clients of different groups may have
    different thetas (`population.group_data`).

    Fields:
        theta: the vector that rewards follow, of length at most 1. Only the simulation knows it.

    Example:
        >>> held = LinearRewards(theta=[0.6, 0.0]).values(np.arange(3, dtype=np.uint32), Stream(1))
        >>> held.shape, held[0, 1:].tolist()
        ((3, 3), [0.6, 0.0])
    """

    kind: ClassVar[str] = "linear-rewards"
    theta: Annotated[
        list[Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=1, max_length=10_000)
    ]

    @field_validator("theta")
    @classmethod
    def _short(cls, theta: list[float]) -> list[float]:
        if (length := float(np.linalg.norm(theta))) > 1.0 + 1e-9:
            raise ValueError(f"it has length {length:g}; scale it to at most 1")
        return theta

    def width(self) -> int:
        """Return the length of a row: luck, then theta."""
        return 1 + len(self.theta)

    def values(self, ids: Ids, stream: Stream) -> NDArray[np.float64]:
        """Draw the clients' luck."""
        held = np.empty((len(ids), self.width()))
        held[:, 0] = stream.clients(ids).uniform("luck")[:, 0]
        held[:, 1:] = self.theta
        return held
