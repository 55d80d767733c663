"""Clients that hold samples of a few classes only."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from raydp_sim.datasets.partitions.base import (
    POINTS,
    Deck,
    Hands,
    Numbers,
    Partition,
    by_class,
    too_many,
)
from raydp_sim.errors import bad_field
from raydp_sim.random import Stream

FIELD = "population.data.partition.per_client"


class Classes(Partition):
    """Each client holds samples of a few random classes, of each as many as of the others.

    The classes of a client are a uniformly random set. Sets of different clients are balanced: of
    every block of as many clients as there are classes, each class is held by `per_client`. So no
    class runs out before the others, whatever the seed.

    Fields:
        per_client: classes that each client holds.
    """

    kind: ClassVar[str] = "classes"
    per_client: Annotated[int, Field(ge=1)]

    def sizes(self, deck: Deck, clients: int, each: int | None) -> Numbers:
        """Return the same for all: what the rarest class allows, or what is wanted."""
        there, rarest = self._there(deck), int(deck.stock[deck.stock > 0].min())
        most = self.per_client * (rarest // self._holders(clients, len(there)))
        if each is None:
            each = most
        if each < self.per_client or most == 0:
            remedy = f"a client needs one sample of each of {self.per_client} classes (per_client)"
            if most == 0:
                raise too_many(each, clients, 0, f"the rarest class has {rarest:,} samples")
            raise bad_field(POINTS, each, f"{remedy}; raise it")
        if each > most:
            why = f"the rarest class has {rarest:,} samples, for {self.per_client} classes a client"
            raise too_many(each, clients, most, why)
        return np.full(clients, each)

    def deal(self, deck: Deck, sizes: Numbers, stream: Stream) -> Hands:
        """Draw the clients' classes, then deal samples of each."""
        there, clients, k = self._there(deck), len(sizes), self.per_client
        blocks = -(-clients // len(there))
        draw = stream.at("classes").generator()
        # In each block a random order of the classes, and k random steps along it, the same for
        # all clients of the block: every class is held by k of them.
        order = draw.random((blocks, len(there))).argsort(axis=1)
        steps = draw.random((blocks, len(there))).argsort(axis=1)[:, :k]
        block, place = np.divmod(np.arange(clients), len(there))
        held = order[block[:, None], (place[:, None] + steps[block]) % len(there)]
        demand = np.zeros((clients, deck.classes), np.int64)
        share, rest = np.divmod(sizes, k)
        amount = share[:, None] + (np.arange(k) < rest[:, None])
        np.put_along_axis(demand, there[held], amount, axis=1)
        return by_class(deck, demand, stream)

    def reach(self, deck: Deck, each: int) -> int:
        """Return for how many clients the rarest class lasts."""
        there = self._there(deck)
        holders = int(deck.stock[deck.stock > 0].min()) // -(-each // self.per_client)
        blocks, rest = divmod(holders, self.per_client)
        # With fewer holders than a block has, one client more is one holder more.
        return blocks * len(there) + rest

    def _there(self, deck: Deck) -> Numbers:
        """Return the classes of which there are samples."""
        there = np.flatnonzero(deck.stock)
        if self.per_client > len(there):
            raise bad_field(FIELD, self.per_client, f"there are {len(there)} classes; lower it")
        return there

    def _holders(self, clients: int, classes: int) -> int:
        """Return how many clients may hold one class, at most."""
        blocks, rest = divmod(clients, classes)
        return blocks * self.per_client + min(rest, self.per_client)
