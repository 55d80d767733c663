"""The interface of every participation policy."""

from collections.abc import Callable
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from raydp_sim.population.availability.base import Mask
from raydp_sim.random import Ids, Stream
from raydp_sim.registry import Piece

Available = Callable[[Ids], NDArray[np.bool_]]


class Participation(Piece):
    """Who is in a release, decided either by the shuffler or by each client alone.

    `decided_by: shuffler` policies implement `choose`; `decided_by: client` ones `joins`.
    """

    decided_by: ClassVar[Literal["shuffler", "client"]]
    # Whether every cohort of the available clients is equally likely and nobody learns which it
    # was: only then may privacy be gained from sampling. Not to be assumed of a policy unasked.
    uniform_and_secret: ClassVar[bool] = False

    def check(self, clients: int) -> str | None:
        """Return what is wrong with this policy for a population of that size, if anything."""
        return None

    def choose(self, clients: int, available: Available, rate: float, stream: Stream) -> Ids:
        """Choose the cohort of one release, in increasing order of ids.

        Args:
            clients: size of the population.
            available: says which of some ids are there now.
            rate: rough share of clients that are there, to size the search.
            stream: keyed by the release.
        """
        raise NotImplementedError

    def joins(self, ids: Ids, stream: Stream) -> Mask:
        """Say which of the clients, being available, take part of their own accord."""
        raise NotImplementedError

    def expected(self, clients: int, rate: float) -> float:
        """Return the expected size of a cohort, for planning."""
        raise NotImplementedError
