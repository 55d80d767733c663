"""Clients whose labels are skewed at random."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from raydp_sim.datasets.partitions.base import Deck, Hands, Numbers, Partition, by_class
from raydp_sim.random import Floats, Stream


class Dirichlet(Partition):
    """Each client draws shares of the classes from a Dirichlet law, then its labels by them.

    Clients come in random order; one that wants a class that has run out draws again among those
    that are left, by the same shares (Hsu, Qi & Brown 2019). So all clients get as many samples.

    Fields:
        alpha: of the symmetric law: small makes clients that hold one class each, large makes them
            alike.
    """

    kind: ClassVar[str] = "dirichlet"
    alpha: Annotated[float, Field(gt=0)]

    def deal(self, deck: Deck, sizes: Numbers, stream: Stream) -> Hands:
        """Draw labels until everyone has enough; each time somebody lacks some, a class is gone."""
        draw = stream.at("labels").generator()
        clients = len(sizes)
        turn = draw.permutation(clients)
        log_shares = _log_gamma(draw, self.alpha, (clients, deck.classes))
        left, wanted = deck.stock.copy(), sizes[turn].copy()
        given = np.zeros((clients, deck.classes), np.int64)
        while (waiting := np.flatnonzero(wanted)).size:
            shares = _shares(log_shares[waiting], left > 0)
            asked = draw.multinomial(wanted[waiting], shares)
            before = asked.cumsum(axis=0) - asked
            got = np.clip(left - before, 0, asked)
            given[waiting] += got
            wanted[waiting] -= got.sum(axis=1)
            left -= got.sum(axis=0)
        demand = np.empty_like(given)
        demand[turn] = given
        return by_class(deck, demand, stream)


def _log_gamma(draw: np.random.Generator, alpha: float, shape: tuple[int, int]) -> Floats:
    """Draw logs of Gamma(alpha): U^(1/alpha) Gamma(alpha + 1), which no small alpha makes 0."""
    boosted = draw.standard_gamma(alpha + 1.0, shape)
    return np.asarray(np.log(boosted) - draw.standard_exponential(shape) / alpha)


def _shares(logs: Floats, there: np.typing.NDArray[np.bool_]) -> Floats:
    """Return shares of the classes that are there; they add up to 1."""
    logs = np.where(there, logs, -np.inf)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return np.asarray(shares)
