"""Clients that report when they can."""

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.population.participation.base import Participation, Span


class Asynchronous(Participation):
    """Each client checks in once per period, works if it is there, and reports when it is done.

    The check-in falls at a uniformly random moment of every period, anew each time. A client that
    is still at work, or whose report waits in the batch, does not begin again. The batch closes
    when it holds `batch` reports, or at the deadline; what is then under way answers an older ask
    (Nguyen et al. 2022, "Federated learning with buffered asynchronous aggregation").

    Fields:
        batch: reports that close a batch; a client is in it once.
        every: length of the period in which each client checks in once, at a random moment.
        patience: time without a closed batch after which the run ends early; 20 times the longest
            of period, deadline and usual latency unless given.
        staleness_exponent: a report that is s releases behind counts (1 + s)^-exponent; 0, the
            default, counts all alike. Not for bits, categories and values around a centre.

    Example:
        >>> Asynchronous(batch=10, every=60.0, staleness_exponent=0.5).weights(np.array([0, 3]))
        array([1. , 0.5])
    """

    kind: ClassVar[str] = "asynchronous"
    decided_by = "client"
    sized_by = "batch"
    batch: Annotated[int, Field(ge=1)]
    every: Span
    patience: Span | None = None
    staleness_exponent: Annotated[float, Field(ge=0, le=10)] = 0.0

    def longest_wait(self, latency: float) -> float:
        """Return the time without a closed batch after which the run ends.

        By default long against the period, the deadline and the usual latency.
        """
        if self.patience is not None:
            return self.patience
        return 20.0 * max(self.every, self.deadline or 0.0, latency)

    def weights(self, staleness: NDArray[np.int64] | None) -> NDArray[np.float64] | None:
        """Return how much each report counts; None if all count alike."""
        if staleness is None or self.staleness_exponent == 0.0:
            return None
        return np.asarray((1.0 + staleness) ** -self.staleness_exponent)

    def check(self, clients: int) -> str | None:
        """Refuse a batch larger than the population: a client is in a batch once."""
        if self.batch > clients:
            return f"there are only {clients} clients (population.clients), each once in a batch"
        return None

    def sized(self, reports: int) -> "Asynchronous":
        """Return the policy with batches of so many reports."""
        return self.model_copy(update={"batch": reports})

    def largest(self, clients: int) -> int:
        """Return the size that closes a batch."""
        return self.batch

    def certain(self, clients: int) -> int:
        """Return the size that closes a batch."""
        return self.batch

    def expected(self, clients: int, rate: float) -> float:
        """Return the size that closes a batch."""
        return float(self.batch)
