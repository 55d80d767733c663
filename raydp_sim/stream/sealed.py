"""Keys on their way to one reader: encrypted columns, and the random ids that link them to reports.

The simulation models encryption, it does not do it: a `Sealed` column gives its keys to whoever has
the secret of its lock and to nobody else, and can be cut, joined and put in another order unread.
The bits themselves are in the memory of whoever carries it, as they would not be in the field.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import RunError
from raydp_sim.random import Ids, Stream

Rows = slice | NDArray[Any]
RECORD_BITS = 64
"""Bits of a record's id: of a million records two share one with probability below 3e-8."""


def record_ids(place: Stream, clients: Ids) -> NDArray[np.uint64]:
    """Draw the ids of the clients' reports: 64 bits that tell nothing of client or data.

    Args:
        place: of the release's randomizers.
        clients: who report.
    """
    high, low = (word[:, 0] for word in place.clients(clients).words("record"))
    return high.astype(np.uint64) << np.uint64(32) | low


def fingerprint(rid: NDArray[np.uint64], values: NDArray[Any]) -> int:
    """Return a sum over records that changes with any of their values; it adds up in any order.

    Two sets of values with these ids share it with probability 2^-64. Only for the analyst of a
    simulation, who so compares every recovered value with the true one without being told either.

    Example:
        >>> rid = np.array([5, 9], np.uint64)
        >>> one, other = fingerprint(rid[:1], np.array([3])), fingerprint(rid[1:], np.array([1]))
        >>> (one + other - fingerprint(rid, np.array([3, 1]))) % 2**64
        0
    """
    # The finalizer of SplitMix64 (Steele, Lea & Flood 2014), whose products wrap around.
    mixed = rid + (values.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return int(mixed.sum(dtype=np.uint64).astype(np.int64))


def secret_of(root: Stream, reader: int) -> str:
    """Return what opens the columns sealed for a reader; the driver hands it to that reader."""
    high, low = root.at("seal", reader).key()
    return f"{high:08x}{low:08x}"


def lock_of(secret: str) -> str:
    """Return what clients seal with: it tells nothing of the secret.

    Example:
        >>> lock_of("a") == lock_of("a"), lock_of("a") == lock_of("b")
        (True, False)
    """
    return hashlib.blake2b(secret.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, eq=False)
class Sealed:
    """A column of keys for one reader, packed: `width` bits for each of `count` records.

    Example:
        >>> column = seal(np.array([1, 0, 1, 1], np.uint8), 1, lock_of("mine"))
        >>> len(column.packed), column.take(np.array([3, 1])).open("mine").tolist()
        (1, [1, 0])
        >>> column.open("yours")
        Traceback (most recent call last):
        raydp_sim.errors.RunError: a column of keys is sealed for another reader
    """

    lock: str
    width: int
    count: int
    packed: NDArray[np.uint8]

    def __len__(self) -> int:
        return self.count

    @property
    def _rows(self) -> NDArray[np.uint8]:
        bits = np.unpackbits(self.packed, count=self.count * self.width)
        return bits if self.width == 1 else bits.reshape(self.count, self.width)

    def take(self, rows: Rows) -> "Sealed":
        """Return the keys of some records, in the order given."""
        bits = self._rows[rows]
        return Sealed(self.lock, self.width, len(bits), np.packbits(bits))

    def open(self, secret: str) -> NDArray[Any]:
        """Return the keys, as unsigned integers.

        Raises:
            RunError: the secret is not that of the reader whom they are for.
        """
        if lock_of(secret) != self.lock:
            raise RunError("a column of keys is sealed for another reader", resumable=False)
        if self.width == 1:
            return self._rows
        weights = np.uint32(1) << np.arange(self.width - 1, -1, -1, dtype=np.uint32)
        return np.asarray((self._rows * weights).sum(axis=1, dtype=np.uint32))


def seal(keys: NDArray[Any], width: int, lock: str) -> Sealed:
    """Seal one key per record for the reader of a lock."""
    if width == 1:
        return Sealed(lock, 1, len(keys), np.packbits(keys))
    shifts = np.arange(width - 1, -1, -1, dtype=np.uint32)
    bits = (keys.astype(np.uint32)[:, None] >> shifts) & np.uint32(1)
    return Sealed(lock, width, len(keys), np.packbits(bits.astype(np.uint8)))


def joined(parts: Sequence[Sealed]) -> Sealed:
    """Put columns for one reader one below the other.

    Example:
        >>> parts = [seal(np.array(keys), 1, lock_of("a")) for keys in ([1, 1, 0], [1])]
        >>> joined(parts).open("a").tolist()
        [1, 1, 0, 1]
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    if any((part.lock, part.width) != (first.lock, first.width) for part in parts):
        raise RunError("columns sealed for different readers cannot be joined", resumable=False)
    bits = np.concatenate([part._rows for part in parts])
    return Sealed(first.lock, first.width, len(bits), np.packbits(bits))


@dataclass(frozen=True, eq=False)
class Records:
    """What goes with public reports, row by row: an id drawn at random, and sealed keys.

    Attributes:
        rid: fresh for every report and independent of client and data.
        sealed: one column per reader with a key; none where keys take another way.
    """

    rid: NDArray[np.uint64]
    sealed: tuple[Sealed, ...] = ()

    def __len__(self) -> int:
        return len(self.rid)

    def take(self, rows: Rows) -> "Records":
        """Return some of the records, in the order given."""
        return Records(self.rid[rows], tuple(column.take(rows) for column in self.sealed))


def joined_records(parts: Sequence[Records]) -> Records:
    """Put records one below the other."""
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part.sealed for part in parts), strict=True)
    rid = np.concatenate([part.rid for part in parts])
    return Records(rid, tuple(joined(column) for column in columns))


@dataclass(frozen=True, eq=False)
class Posted:
    """Keys that go straight from clients to the reader whom they are sealed for.

    Attributes:
        release: whose reports they open.
        source: which placement of clients sent them.
        epoch: how often that placement has been respawned.
        rid: of the reports.
        key: one each.
        promotion: for earlier reports, where the reader is being promoted.
    """

    release: int
    source: int
    epoch: int
    rid: NDArray[np.uint64]
    key: Sealed
    promotion: "Promotion | None" = None


@dataclass(frozen=True, eq=False)
class Promotion:
    """One more key for reports of earlier releases: it takes one reader to a less private level.

    Attributes:
        reader: who is promoted.
        of: the release of each report.
        rid: of each report.
        key: for each report.
    """

    reader: int
    of: NDArray[np.int32]
    rid: NDArray[np.uint64]
    key: Sealed

    def __len__(self) -> int:
        return len(self.rid)

    def take(self, rows: Rows) -> "Promotion":
        """Return some of the rows, in the order given."""
        return Promotion(self.reader, self.of[rows], self.rid[rows], self.key.take(rows))


def joined_promotions(parts: Sequence[Promotion]) -> Promotion:
    """Put the rows for one reader together, each report once."""
    of = np.concatenate([part.of for part in parts])
    rid = np.concatenate([part.rid for part in parts])
    key = joined([part.key for part in parts])
    once = np.unique(rid, return_index=True)[1]
    whole = Promotion(parts[0].reader, of, rid, key)
    return whole if len(once) == len(rid) else whole.take(once)
