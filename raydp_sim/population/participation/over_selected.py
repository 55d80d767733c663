"""More clients asked than wanted; the first to answer are taken."""

import math
from typing import Annotated, ClassVar

from pydantic import Field

from raydp_sim.population.participation.base import Available, Rounds
from raydp_sim.population.participation.uniform import Uniform
from raydp_sim.random import Ids, Stream


class OverSelected(Rounds):
    """The shuffler asks `factor` times as many clients as it wants and takes the first to answer.

    Bonawitz et al. 2019, "Towards federated learning at scale", section 2.2. Who answers first is
    not uniform, so nothing is gained from sampling; the others' work is wasted.

    Fields:
        sampled: answers wanted.
        factor: how many times as many are asked.

    Example:
        >>> OverSelected(sampled=100).asks
        130
    """

    kind: ClassVar[str] = "over-selected"
    decided_by = "shuffler"
    sized_by = "sampled"
    sampled: Annotated[int, Field(ge=1)]
    factor: Annotated[float, Field(ge=1, le=100)] = 1.3

    @property
    def asks(self) -> int:
        """How many clients are asked."""
        return math.ceil(round(self.sampled * self.factor, 9))

    def check(self, clients: int) -> str | None:
        """Refuse to ask more clients than there are."""
        if self.asks > clients:
            return (
                f"{self.factor:g} times that are {self.asks}, and there are only {clients} clients "
                "(population.clients)"
            )
        return None

    def choose(self, clients: int, available: Available, rate: float, stream: Stream) -> Ids:
        """Choose whom to ask, uniformly among the available clients."""
        return Uniform(sampled=self.asks).choose(clients, available, rate, stream)

    def wanted(self, asked: int) -> int:
        """Return how many answers end a round."""
        return min(self.sampled, asked)

    def largest(self, clients: int) -> int:
        """Return the number of answers taken."""
        return self.sampled

    def certain(self, clients: int) -> int:
        """Return the number of answers taken."""
        return self.sampled

    def expected(self, clients: int, rate: float) -> float:
        """Return the number of answers taken, or what is there if that is less."""
        return min(float(self.sampled), clients * rate)
