"""A fixed number of clients, chosen uniformly."""

import math
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from raydp_sim.population.participation.base import Available, Rounds
from raydp_sim.random import Ids, Stream


class Uniform(Rounds):
    """The shuffler chooses `sampled` of the available clients, every such set equally likely.

    Candidates are drawn without looking at the whole population: the first `sampled` available
    ones of a uniformly random sequence of distinct ids. By symmetry among the available clients
    that is a uniform choice, also given that the sequence was long enough; a sequence that was too
    short is drawn anew at twice the length. So a choice costs what the cohort costs.

    Fields:
        sampled: size of the cohort; fewer take part when fewer are there.

    Example:
        >>> everyone = lambda ids: np.ones(len(ids), dtype=bool)
        >>> len(Uniform(sampled=3).choose(10, everyone, 1.0, Stream(1)))
        3
    """

    kind: ClassVar[str] = "uniform"
    decided_by = "shuffler"
    uniform_and_secret = True
    sized_by = "sampled"
    sampled: Annotated[int, Field(ge=1)]

    def check(self, clients: int) -> str | None:
        """Refuse a cohort larger than the population."""
        if self.sampled > clients:
            return f"there are only {clients} clients (population.clients)"
        return None

    def sized(self, reports: int) -> "Uniform":
        """Return the policy with a cohort of so many clients."""
        return self.model_copy(update={"sampled": reports})

    def largest(self, clients: int) -> int:
        """Return the size of the cohort."""
        return self.sampled

    def certain(self, clients: int) -> int:
        """Return the size of the cohort."""
        return self.sampled

    def choose(self, clients: int, available: Available, rate: float, stream: Stream) -> Ids:
        """Choose the cohort of one release, in increasing order of ids."""
        # Half again as many as needed on average, so that a second draw is rare.
        length = self.sampled if rate >= 1 else clients
        if 1.0 / clients < rate < 1.0:
            length = math.ceil((self.sampled + 16) * 1.5 / rate)
        attempt = 0
        while length < clients:
            draw = stream.at("candidates", attempt).generator()
            candidates = draw.choice(clients, length, replace=False).astype(np.uint32)
            found = candidates[available(candidates)]
            if len(found) >= self.sampled:
                return np.sort(found[: self.sampled])
            length, attempt = 2 * length, attempt + 1
        everyone = np.arange(clients, dtype=np.uint32)
        there = everyone[available(everyone)]
        if len(there) <= self.sampled:
            return there
        chosen = stream.at("chosen").generator().choice(len(there), self.sampled, replace=False)
        return np.sort(there[chosen])

    def expected(self, clients: int, rate: float) -> float:
        """Return the size of the cohort, or what is there if that is less."""
        return min(float(self.sampled), clients * rate)
