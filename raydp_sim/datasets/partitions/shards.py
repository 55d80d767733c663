"""Clients that hold a few runs of the samples sorted by label."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from raydp_sim.datasets.partitions.base import (
    POINTS,
    Deck,
    Hands,
    Numbers,
    Partition,
    in_hands,
    too_many,
)
from raydp_sim.errors import bad_field
from raydp_sim.random import Stream


class Shards(Partition):
    """Sort by label, cut into equal shards, deal each client some (McMahan et al. 2017).

    With 2 shards most clients hold two classes.

    Fields:
        per_client: shards that each client gets.
    """

    kind: ClassVar[str] = "shards"
    per_client: Annotated[int, Field(ge=1)] = 2

    def sizes(self, deck: Deck, clients: int, each: int | None) -> Numbers:
        """Return the same for all: shards of one length."""
        total = len(deck.labels)
        most = total // (clients * self.per_client) * self.per_client
        if each is None:
            each = most
        if each > most or most == 0:
            why = f"there are {total:,} samples in {self.per_client} shards a client"
            raise too_many(each, clients, most, why)
        if each % self.per_client:
            remedy = f"it must be a multiple of {self.per_client}, the shards of a client"
            raise bad_field(POINTS, each, remedy)
        return np.full(clients, each)

    def deal(self, deck: Deck, sizes: Numbers, stream: Stream) -> Hands:
        """Deal the shards; what is left over is left out before sorting, at random."""
        clients, total = len(sizes), int(sizes.sum())
        draw = stream.at("shards").generator()
        used = draw.permutation(len(deck.labels))[:total]
        samples = used[np.argsort(deck.labels[used], kind="stable")]
        shards = draw.permutation(clients * self.per_client) // self.per_client
        owner = np.repeat(shards, total // len(shards))
        return in_hands(samples, owner, clients, stream)
