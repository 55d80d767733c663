"""Clients that stay away where it hurts most."""

from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.population.availability.base import Availability, Mask
from raydp_sim.population.moments import Times
from raydp_sim.random import Stream


class Adversarial(Availability):
    """The clients with the largest influence on what is learned never come; all others always do.

    Who that is depends on the clients' data, so it is not known here: `absent` says it once it is
    given every client's influence, and `available` knows of nobody who is away.

    Fields:
        share: part of the clients that stay away, rounded to a whole number of them.

    Example:
        >>> worst = Adversarial(share=0.5)
        >>> worst.absent(np.array([3.0, 9.0, 3.0, 1.0])).tolist()
        [True, True, False, False]
    """

    kind: ClassVar[str] = "adversarial"
    needs_influence = True
    share: Annotated[float, Field(gt=0, lt=1)]

    def available(self, ids: NDArray[Any], time: Times, stream: Stream) -> Mask:
        """Return True for everyone."""
        return np.ones(len(ids), dtype=np.bool_)

    def absent(self, influence: NDArray[Any]) -> Mask:
        """Choose the clients of the largest influence, of equal ones those with the lower ids."""
        away = np.zeros(len(influence), dtype=np.bool_)
        order = np.argsort(-np.asarray(influence, dtype=np.float64), kind="stable")
        away[order[: round(self.share * len(influence))]] = True
        return away

    def check(self, clients: int) -> str | None:
        """Refuse a share that is nobody or everybody."""
        away = round(self.share * clients)
        if 0 < away < clients:
            return None
        who, remedy = ("nobody", "raise it") if away == 0 else ("everyone", "lower it")
        return f"share is {self.share:g}; of {clients} clients that is {who}; {remedy}"

    def reachable(self, clients: int) -> int:
        """Return how many come."""
        return clients - round(self.share * clients)

    def rate(self) -> float:
        """Return the share of those who come."""
        return 1.0 - self.share
