"""Keys at the clients: each is sealed for the one reader that it is for."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.mechanisms.leveled import Keys, Leveled
from raydp_sim.random import Ids, Stream
from raydp_sim.stream.levels import Levels, Promoting
from raydp_sim.stream.sealed import (
    Posted,
    Promotion,
    Records,
    joined_promotions,
    lock_of,
    record_ids,
    seal,
    secret_of,
)


class Sealing:
    """Seals the keys of a run's clients: a column for each reader, with its lock."""

    def __init__(self, levels: Levels, root: Stream) -> None:
        self.levels = levels
        self.locks = [lock_of(secret_of(root, reader)) for reader in range(len(levels.names))]

    def records(self, release: int, rid: NDArray[np.uint64], keys: Keys, bits: int) -> Records:
        """Return what goes with the reports of a release: ids and, by the shuffler, sealed keys."""
        readers = () if self.levels.direct else range(1, len(self.locks))
        columns = (self._sealed(reader, release, keys, bits) for reader in readers)
        return Records(rid, tuple(columns))

    def posted(
        self,
        place: tuple[int, int, int],
        rid: NDArray[np.uint64],
        keys: Keys,
        bits: int,
        promotions: tuple[Promotion, ...],
    ) -> list[Posted]:
        """Return what goes straight to each reader with a key; nothing if the shuffler has it.

        Args:
            place: release, placement and epoch.
            rid: of the reports.
            keys: of every level.
            bits: of one key.
            promotions: of readers.
        """
        if not self.levels.direct:
            return []
        own = {each.reader: each for each in promotions}
        return [
            Posted(*place, rid, self._sealed(reader, place[0], keys, bits), own.get(reader))
            for reader in range(1, len(self.locks))
        ]

    def _sealed(self, reader: int, release: int, keys: Keys, bits: int) -> Any:
        level = self.levels.level(reader, release)
        return seal(keys[:, level], bits, self.locks[reader])

    def promotion(
        self,
        due: Promoting,
        mechanism: Leveled,
        place: Stream,
        clients: Ids,
        reported: NDArray[np.bool_],
    ) -> Promotion:
        """Return one more key for every earlier report of these clients, drawn again.

        Args:
            due: who is promoted.
            mechanism: of all releases.
            place: of the randomizers of all releases.
            clients: who are here now.
            reported: whether each was in each release.
        """
        parts = []
        held, wanted, lock = due.analyst - 1, due.to - 1, self.locks[due.analyst]
        for release in range(due.release):
            own, then = clients[reported[:, release]], place.at(release)
            keys = mechanism.promotion(then.clients(own), held, wanted)
            column = seal(keys, mechanism.key_bits, lock)
            of = np.full(len(own), release, np.int32)
            parts.append(Promotion(due.analyst, of, record_ids(then, own), column))
        return joined_promotions(parts)
