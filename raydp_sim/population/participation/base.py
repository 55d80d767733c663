"""The interface of every participation policy."""

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raydp_sim.errors import InputError
from raydp_sim.population.availability.base import Mask
from raydp_sim.random import Ids, Stream
from raydp_sim.registry import Piece

Available = Callable[[Ids], NDArray[np.bool_]]
Span = Annotated[float, Field(ge=1e-6, le=1e12)]


class Participation(Piece):
    """Who is in a release, decided either by the shuffler or by each client alone.

    `decided_by: shuffler` policies implement `choose`; `decided_by: client` ones `joins`.

    Fields every policy has:
        deadline: time after which a batch closes with what has arrived; none by default,
            but rounds of clients that drop out need one.
        on_short: what happens at the deadline to a batch that is smaller than shuffle.min_batch:
            `discard` it, or `wait` until it is large enough.
    """

    decided_by: ClassVar[Literal["shuffler", "client"]]
    # Whether every cohort of the available clients is equally likely and nobody learns which it
    # was: only then may privacy be gained from sampling. Not to be assumed of a policy unasked.
    uniform_and_secret: ClassVar[bool] = False
    # The field that `check` may find fault with.
    sized_by: ClassVar[str] = "kind"

    deadline: Span | None = None
    on_short: Literal["discard", "wait"] = "discard"

    def check(self, clients: int) -> str | None:
        """Return what is wrong with this policy for a population of that size, if anything."""
        return None

    def sized(self, reports: int) -> "Participation":
        """Return the policy for a batch of so many reports, which a task may ask for.

        Raises:
            InputError: when the policy cannot promise a number.
        """
        raise InputError(
            f"participation.kind is {self.kind!r}; this task asks for batches of its own size: use "
            "all, uniform or asynchronous"
        )

    def weights(self, staleness: NDArray[np.int64] | None) -> NDArray[np.float64] | None:
        """Return how much each report counts; None if all count alike."""
        return None

    def largest(self, clients: int) -> int:
        """Return the largest batch that can form."""
        raise NotImplementedError

    def certain(self, clients: int) -> int:
        """Return the smallest batch if everyone is there and every report arrives in time."""
        return 1

    def expected(self, clients: int, rate: float) -> float:
        """Return the expected size of a batch, for planning."""
        raise NotImplementedError


class Rounds(Participation):
    """A policy that asks a cohort and waits for its answers, round after round.

    Fields every such policy has:
        interval: least time from the start of one round to the start of the next.
    """

    interval: Span = 1.0

    def choose(self, clients: int, available: Available, rate: float, stream: Stream) -> Ids:
        """Choose the cohort of one release, in increasing order of ids.

        Args:
            clients: size of the population.
            available: says which of some ids are there now.
            rate: rough share of clients that are there, to size the search.
            stream: keyed by the release.
        """
        everyone = np.arange(clients, dtype=np.uint32)
        return everyone[self.joins(everyone, stream) & available(everyone)]

    def joins(self, ids: Ids, stream: Stream) -> Mask:
        """Say which of the clients, being available, take part of their own accord."""
        raise NotImplementedError

    def wanted(self, asked: int) -> int:
        """Return how many answers end a round: all, unless more were asked than are wanted."""
        return asked

    def largest(self, clients: int) -> int:
        """Return the largest batch that can form: everyone."""
        return clients
