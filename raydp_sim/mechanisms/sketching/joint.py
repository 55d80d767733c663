"""Reports that can be decoded together: who sent what about which rows."""

from abc import ABC, abstractmethod
from typing import Literal

import scipy

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Floats
from raydp_sim.random import Ids

Basis = Literal["coordinates", "hadamard"]
# How unlikely repeated seeds may be that still pass for chance.
_CHANCE = 1e-9


class Joint(ABC):
    """A mechanism whose reports are k numbers y = G x, G drawn by a seed that is sent along.

    Rows of G are `coordinates` (Rand-k) or those of a randomized Hadamard transform (Rand-Proj). A
    decoder of all reports together is linear in y: it is unbiased whenever y is.
    """

    @property
    @abstractmethod
    def basis(self) -> Basis:
        """What the rows of G are."""

    @abstractmethod
    def opened(self, rows: Floats) -> tuple[Ids, Floats]:
        """Return the seeds of reports and an unbiased y of each, (n,) and (n, k)."""


def check_seeds(seeds: Ids) -> None:
    """Refuse seeds that repeat more often than independent ones of 32 bits do.

    Clients of one seed send the same rows, and no estimate is unbiased then.

    Example:
        >>> import numpy as np
        >>> check_seeds(np.array([7, 7, 7], np.uint32))
        Traceback (most recent call last):
            ...
        raydp_sim.errors.InputError: 3 clients sent 1 seeds; every client must draw its own
    """
    clients, distinct = len(seeds), len(set(seeds.tolist()))
    repeats = clients - distinct
    if repeats and scipy.stats.poisson.sf(repeats - 1, clients * (clients - 1) / 2**33) < _CHANCE:
        raise InputError(f"{clients} clients sent {distinct} seeds; every client must draw its own")
