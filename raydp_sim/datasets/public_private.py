"""Data sets of two parts: records that clients hold, one each, and records that are public."""

from abc import abstractmethod
from functools import cached_property
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.datasets.base import Dataset
from raydp_sim.datasets.labelled import Examples, HeldOut
from raydp_sim.random import Ids, Stream
from raydp_sim.registry import Registry, piece

Floats = NDArray[np.float64]


class Pair(NamedTuple):
    """Both parts, one record a row; a target, where there is one, is the last column.

    Attributes:
        private: what clients hold.
        public: what everyone may read, in the order in which it is used.
        shift: how the two differ, in words: no result is worth anything without it.
    """

    private: Floats
    public: Floats
    shift: str


class PublicPrivate(Dataset):
    """Clients hold one private record each; the public records are read by everyone.

    A kind says `pair`. Whoever trains on both has to say how they differ (`Pair.shift`).
    """

    @abstractmethod
    def pair(self) -> Pair:
        """Return both parts, read or made once in a process; the seed changes nothing."""

    @property
    def told(self) -> str:
        """Where the records come from, or what they stand in for."""
        return self.kind

    def width(self) -> int:
        """Return the columns of a record, its target included."""
        return int(self.pair().private.shape[1])

    def rows(self) -> int | None:
        """Return how many private records there are."""
        return len(self.pair().private)

    def values(self, ids: Ids, stream: Stream) -> Floats:
        """Return the records of some clients."""
        return np.asarray(self.pair().private[np.asarray(ids, np.int64)])

    def held_out(self) -> HeldOut:
        """Return the public records."""
        return PublicRecords(of=self)

    def said(self) -> str:
        """Say where the records come from, how many are public and how they differ."""
        found = self.pair()
        return f"{self.told}; {len(found.public):,} public records: {found.shift}"


# The base is only compared with, so it may be abstract.
_PAIRS = Registry("raydp_sim.datasets", PublicPrivate)  # type: ignore[type-abstract]


class PublicRecords(HeldOut):
    """The public part of such a data set, and nothing else of it.

    Fields:
        of: the data set.
    """

    kind: ClassVar[str] = "public-records"
    of: Annotated[PublicPrivate, *piece(_PAIRS)]

    def validation(self) -> Examples | None:
        """Return nothing: public records are trained on."""
        return None

    def test(self) -> Examples:
        """Return the public records as samples without classes."""
        return Examples(self.records.astype(np.float32), np.zeros(len(self.records), np.int64))

    @cached_property
    def records(self) -> Floats:
        """The public records, in the order in which they are used."""
        return self.of.pair().public

    @property
    def shift(self) -> str:
        """How they differ from the private ones."""
        return self.of.pair().shift
