"""Samples dealt without regard to their labels."""

from typing import ClassVar

from raydp_sim.datasets.partitions.base import Deck, Hands, Numbers, Partition
from raydp_sim.random import Stream


class Iid(Partition):
    """Shuffle all samples and deal them out: clients are alike but for chance."""

    kind: ClassVar[str] = "iid"

    def deal(self, deck: Deck, sizes: Numbers, stream: Stream) -> Hands:
        """Cut a permutation into hands."""
        mixed = stream.at("deal").generator().permutation(len(deck.labels))
        return Hands(mixed[: sizes.sum()], sizes)
