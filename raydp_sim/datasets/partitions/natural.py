"""Clients that are the people whom the samples come from."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from raydp_sim.datasets.partitions.base import (
    CLIENTS,
    Deck,
    Hands,
    Numbers,
    Partition,
    in_hands,
    too_many,
)
from raydp_sim.errors import bad_field
from raydp_sim.random import Stream


class Natural(Partition):
    """Each client holds the samples of one owner, such as a writer, or of several in a row.

    Fields:
        per_client: owners whose samples a client holds; owners left over are unused.
    """

    kind: ClassVar[str] = "natural"
    per_client: Annotated[int, Field(ge=1)] = 1

    def sizes(self, deck: Deck, clients: int, each: int | None) -> Numbers:
        """Return what the owners of each client have, or what is wanted of them."""
        _, counts = np.unique(_owners(deck), return_counts=True)
        if clients * self.per_client > len(counts):
            remedy = f"there are {len(counts):,} owners, {self.per_client} a client; lower it"
            raise bad_field(CLIENTS, clients, f"{remedy} to {len(counts) // self.per_client}")
        owned = counts[: clients * self.per_client].reshape(clients, -1)
        sizes: Numbers = owned.sum(axis=1)
        if each is None:
            return sizes
        if each > sizes.min():
            raise too_many(each, clients, int(sizes.min()), "some owners have fewer samples")
        return np.full(clients, each)

    def deal(self, deck: Deck, sizes: Numbers, stream: Stream) -> Hands:
        """Hand every client its own; the stream decides the order, and so what is cut off."""
        _, owner = np.unique(_owners(deck), return_inverse=True)
        owner = owner // self.per_client
        mine = np.flatnonzero(owner < len(sizes))
        whole = in_hands(mine, owner[mine], len(sizes), stream)
        first = whole.sizes.cumsum() - whole.sizes
        place = np.arange(len(mine)) - np.repeat(first, whole.sizes)
        return Hands(whole.samples[place < np.repeat(sizes, whole.sizes)], sizes)

    def reach(self, deck: Deck, each: int) -> int:
        """Return how many clients the owners make."""
        return len(np.unique(_owners(deck))) // self.per_client


def _owners(deck: Deck) -> Numbers:
    if deck.owners is None:
        remedy = "these samples have no owners; use another, or data such as synthetic-writers"
        raise bad_field("population.data.partition.kind", Natural.kind, remedy)
    return deck.owners
