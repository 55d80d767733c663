"""The one protocol of all tasks: a pure state machine around a mechanism."""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.batches import Reports, Shuffled
from raydp_sim.mechanisms.base import Counts, Mechanism
from raydp_sim.random import ClientStream, Stream
from raydp_sim.registry import Piece

Floats = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Ask:
    """What the clients are told: the model or query that they answer."""

    broadcast: Arrays = field(default_factory=dict)


class Task(Piece):
    """What clients compute, and what the server makes of the randomized answers.

    State, broadcast and what clients remember are dictionaries of arrays, so that checkpoints need
    to know nothing about them. Nothing here sees Ray, a clock or a file. `fold` and `step` are
    given the mechanism of their release, all other methods the scenario's.

    Fields:
        rounds: how many releases are asked for.
    """

    # Whether an ask depends on the releases before it; if not, rounds may overlap.
    adaptive: ClassVar[bool]
    rounds: Annotated[int, Field(ge=1)] = 1

    def init(self, mechanism: Mechanism) -> Arrays:
        """Return the state before the first release."""
        raise NotImplementedError

    def ask(self, state: Arrays) -> Ask:
        """Return what the clients are told; of a task that is not adaptive, always the same."""
        return Ask()

    def mechanism_for(self, mechanism: Mechanism, ask: Ask) -> Mechanism:
        """Return what the answers to an ask are randomized with.

        Everyone who handles them finds it from the ask, which is public: clients, shufflers, the
        aggregator and the ledger. Protocols of several stages make it from the scenario's.
        """
        return mechanism

    def stages(self, mechanism: Mechanism) -> tuple[tuple[Mechanism, int], ...]:
        """Return the mechanisms of a whole run, in order, and how many releases each makes.

        Their guarantees and the length of their reports must not depend on earlier releases, for
        plans are made with them.
        """
        return ((mechanism, self.rounds),)

    @property
    def spends(self) -> int:
        """How often a client in every release spends the guarantee of the scenario's mechanism."""
        return self.rounds

    def client_init(self, clients: int) -> Arrays:
        """Return what clients remember before their first ask: columns, one row per client.

        Tasks whose clients remember nothing return no columns.
        """
        return {}

    def client(
        self, ask: Ask, data: Floats, client_state: Arrays, stream: ClientStream
    ) -> tuple[Floats, Arrays]:
        """Compute each client's value inside the mechanism's domain, one row per client.

        Returns:
            The values, and the rows of what these clients remember from now on.
        """
        raise NotImplementedError

    def fold(self, mechanism: Mechanism, counts: Counts, batch: Reports | Shuffled) -> Counts:
        """Add a chunk of messages to the accumulator."""
        if mechanism.messages_per_report == 1:
            index = np.broadcast_to(np.int64(0), len(batch.payload))  # costs nothing to make
        else:
            index = batch.index
        return mechanism.fold(counts, index, batch.payload)

    def step(
        self,
        mechanism: Mechanism,
        state: Arrays,
        counts: Counts,
        stream: Stream,
        weight: float = 1.0,
    ) -> tuple[Arrays, Arrays]:
        """Return the next state and what this release makes public.

        `weight` is the mean weight of the reports: clients multiply their values by theirs before
        they randomize them.
        """
        raise NotImplementedError

    # For the analyst of a simulation only: no actor of the protocol sees any of it.

    def truth(self, mechanism: Mechanism, data: Floats) -> Counts:
        """Return an exact summary of some clients' data; summaries of disjoint sets add up."""
        raise NotImplementedError

    def score(
        self, mechanism: Mechanism, public: Arrays, cohort: Counts, population: Counts
    ) -> dict[str, float]:
        """Compare a release with the truth of its cohort and of the population."""
        raise NotImplementedError

    def bias(self, mechanism: Mechanism, seen: Counts, population: Counts) -> float | None:
        """Say how far the data of all who took part so far are from the population's, if known.

        No noise is in it: it is what is wrong even if privacy cost nothing.
        """
        return None

    def influence(self, mechanism: Mechanism, data: Floats, population: Counts) -> Floats:
        """Return how far each client pulls the estimate; whoever pulls most is missed most."""
        raise NotImplementedError
