"""The interface of every partition: how the samples of a pool are dealt to clients."""

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import InputError, bad_field
from raydp_sim.random import Stream
from raydp_sim.registry import Piece, Registry

Numbers = NDArray[np.int64]

POINTS, CLIENTS = "population.data.points", "population.clients"


class Deck(NamedTuple):
    """What is to be dealt.

    Attributes:
        labels: the class of each sample.
        classes: how many classes there are.
        owners: whose each sample is by nature, such as its writer; None where nobody's.
    """

    labels: NDArray[Any]
    classes: int
    owners: NDArray[Any] | None = None

    @property
    def stock(self) -> Numbers:
        """How many samples of each class there are."""
        return np.bincount(self.labels, minlength=self.classes)


class Hands(NamedTuple):
    """Who got what.

    Attributes:
        samples: numbers of samples, client after client, in random order within a client.
        sizes: how many each client got.
    """

    samples: Numbers
    sizes: Numbers


class Partition(Piece):
    """Deals samples to clients: none to two of them, and every client gets some.

    How many each gets must not depend on the stream, so that it is known before a run; only which
    client has how many may.
    """

    def sizes(self, deck: Deck, clients: int, each: int | None) -> Numbers:
        """Return how many samples the clients get, one number per client.

        By default all get as many; what cannot be divided is left over.

        Args:
            deck: what is dealt.
            clients: to whom.
            each: samples wanted for each client; None: as many as there are.

        Raises:
            InputError: there is too little for so many.
        """
        total = len(deck.labels)
        if clients > total:
            remedy = f"there are {total:,} samples, and every client needs one; lower it"
            raise bad_field(CLIENTS, clients, remedy)
        if each is None:
            return np.full(clients, total // clients)
        if each * clients > total:
            raise too_many(each, clients, total // clients, f"there are {total:,} samples")
        return np.full(clients, each)

    @abstractmethod
    def deal(self, deck: Deck, sizes: Numbers, stream: Stream) -> Hands:
        """Deal, given what `sizes` returned; the stream decides."""

    def reach(self, deck: Deck, each: int) -> int:
        """Return how many clients can be dealt `each` samples at once."""
        return len(deck.labels) // each


def too_many(each: int, clients: int, most: int, why: str) -> InputError:
    """Build the refusal of more samples per client than there are."""
    remedy = f"{why} for {clients:,} clients; lower it to {most} or lower population.clients"
    if most < 1:
        remedy = f"{why}, not one for each of {clients:,} clients; lower population.clients"
    return bad_field(POINTS, each, remedy)


def by_class(deck: Deck, demand: Numbers, stream: Stream) -> Hands:
    """Deal a given number of samples of each class to each client.

    Args:
        deck: what is dealt.
        demand: shape (clients, classes); no column asks for more than there is of its class.
        stream: decides which samples of a class a client gets, and in which order.
    """
    clients = len(demand)
    draw = stream.at("deal").generator()
    mixed = draw.permutation(len(deck.labels))
    sorted_by_class = mixed[np.argsort(deck.labels[mixed], kind="stable")]
    first = np.concatenate([[0], deck.stock.cumsum()[:-1]])
    owner = [np.repeat(np.arange(clients), column) for column in demand.T]
    sample = [
        sorted_by_class[start : start + len(mine)] for start, mine in zip(first, owner, strict=True)
    ]
    return in_hands(np.concatenate(sample), np.concatenate(owner), clients, stream)


def in_hands(samples: Numbers, owner: Numbers, clients: int, stream: Stream) -> Hands:
    """Sort samples by client, in random order within each."""
    order = stream.at("order").generator().permutation(len(samples))
    order = order[np.argsort(owner[order], kind="stable")]
    return Hands(samples[order], np.bincount(owner, minlength=clients))


# The base is only compared with, so it may be abstract.
PARTITIONS = Registry("raydp_sim.datasets.partitions", Partition)  # type: ignore[type-abstract]
