"""Who was handed a slot: each client once, on disk before the slots leave."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import RunError
from raydp_sim.privacy.ledger.log import Log, records
from raydp_sim.random import Ids

LOG = "handed.log"
_NEVER = -1


class Handed:
    """In which release each client of a repetition was handed a slot; it is spent from then on.

    A run that is resumed plays its last releases again, draw for draw, and hands the same slots to
    the same clients.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     handed = Handed(Path(folder), clients=4)
        ...     handed.hand(0, np.array([1, 2], dtype=np.uint32))
        ...     handed.able(1).tolist()
        [True, False, False, True]
    """

    def __init__(self, folder: Path, clients: int) -> None:
        self.log = Log(folder / LOG)
        self.release = np.full(clients, _NEVER, np.int64)
        self.repetition = 0
        self._known: dict[int, list[tuple[int, Ids]]] | None = None  # what was there before

    def begin(self, repetition: int) -> None:
        """Start a repetition, or take it up again."""
        if self._known is None:
            self._known = self._read()
        self.repetition = repetition
        self.release[:] = _NEVER
        for release, ids in self._known.get(repetition, ()):
            self.release[ids] = release

    def _read(self) -> dict[int, list[tuple[int, Ids]]]:
        found: dict[int, list[tuple[int, Ids]]] = {}
        if self.log.path.exists():
            self.log.open()
            with open(self.log.path, "rb") as file:
                for record in records(file, self.log.path):
                    head, _, packed = record.content.partition(b"\n")
                    place, ids = json.loads(head), np.frombuffer(packed, "<u4")
                    found.setdefault(place["repetition"], []).append((place["release"], ids))
        return found

    def able(self, release: int) -> NDArray[np.bool_]:
        """Say who has not been handed a slot before a release."""
        return np.asarray((self.release == _NEVER) | (self.release >= release))

    def hand(self, release: int, ids: Ids) -> None:
        """Note who, in increasing order, is handed a slot of a release; on disk when this returns.

        Raises:
            RunError: one of them has had a slot before; nothing was written down.
        """
        again = self.release[ids]
        if (wrong := np.flatnonzero((again != _NEVER) & (again != release))).size:
            client, before = int(ids[wrong[0]]), int(again[wrong[0]])
            raise RunError(
                f"client {client} was handed a slot in release {before} and would get another in "
                f"release {release}; a client serves in one batch only, so nothing was handed out",
                resumable=False,
            )
        known = np.flatnonzero(self.release == release)
        if len(known) and not np.array_equal(known, ids):
            raise RunError(
                f"release {release} was handed out to other clients before the interruption; the "
                "run directory does not belong to this scenario or machine",
                resumable=False,
            )
        if len(known) or not len(ids):
            return
        head = json.dumps({"repetition": self.repetition, "release": release})
        self.log.append(head.encode() + b"\n" + ids.astype("<u4").tobytes())
        self.release[ids] = release

    def check(self, release: int, ids: Ids | range) -> None:
        """Refuse to charge clients for a release that they were not handed a slot of.

        Raises:
            RunError: names the first of them.
        """
        index = slice(ids.start, ids.stop) if isinstance(ids, range) else ids
        if (wrong := np.flatnonzero(self.release[index] != release)).size:
            client = int(ids[int(wrong[0])])
            raise RunError(
                f"client {client} would be charged for release {release}, and was handed no slot "
                "of it; nothing was released",
                resumable=False,
            )
