"""What travels: reports that know their client, and shuffled messages that cannot."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.random import Ids, Stream
from raydp_sim.stream.sealed import Promotion, Records

BUCKETS = 64


@dataclass(frozen=True, eq=False)
class Listed:
    """Who sent each row: its client, and the index of the message within that client's report."""

    client: Ids
    sequence: NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.client)

    def listed(self) -> "Listed":
        """Return the columns."""
        return self

    def first(self) -> tuple[int, int]:
        """Return the first row's client and sequence."""
        return int(self.client[0]), int(self.sequence[0])

    def reports(self) -> int:
        """Return the number of clients that report, counted by their first messages."""
        return int(np.count_nonzero(self.sequence == 0))

    def participants(self) -> Ids | range:
        """Return the clients with at least one row, in increasing order."""
        if len(self.client) == 0:
            return self.client
        new = np.ones(len(self.client), dtype=np.bool_)
        np.not_equal(self.client[1:], self.client[:-1], out=new[1:])
        return self.client[new]


@dataclass(frozen=True, eq=False)
class Everyone:
    """Who sent each row, where all clients of a range sent a whole report: nothing to list."""

    clients: range
    messages: int

    def __len__(self) -> int:
        return len(self.clients) * self.messages

    def listed(self) -> Listed:
        """Write the columns out."""
        ids = np.arange(self.clients.start, self.clients.stop, dtype=np.uint32)
        sequence = np.arange(self.messages, dtype=np.uint16)
        return Listed(np.repeat(ids, self.messages), np.tile(sequence, len(ids)))

    def first(self) -> tuple[int, int]:
        """Return the first row's client and sequence."""
        return self.clients.start, 0

    def reports(self) -> int:
        """Return the number of reports."""
        return len(self.clients)

    def participants(self) -> Ids | range:
        """Return the range of clients."""
        return self.clients


Senders = Listed | Everyone


@dataclass(frozen=True, eq=False)
class Summed:
    """Messages of which only exact sums are on their way, to whoever would do nothing but add them.

    Attributes:
        parts: sums of integers, as the mechanism folds its messages.
        rows: messages in them.
    """

    parts: tuple[NDArray[np.int64], ...]
    rows: int

    def __len__(self) -> int:
        return self.rows

    @property
    def nbytes(self) -> int:
        """Bytes of the sums."""
        return sum(part.nbytes for part in self.parts)


@dataclass(frozen=True, eq=False)
class Runs:
    """How rows come that are in the order of their groups, (logical shuffler) * 64 + bucket.

    Attributes:
        sizes: rows of each group; inside of one they are in (client, sequence) order.
        place: where the buckets were drawn; drawn again they say whose each row is.
    """

    sizes: NDArray[np.int64]
    place: Stream


@dataclass(frozen=True, eq=False)
class Reports:
    """Messages on their way to whoever collects them, one row each, in (client, sequence) order.

    Or else, where all clients of a range sent whole reports, group by group: see `runs`.

    Attributes:
        release: the release they answer.
        source: which placement of clients sent them.
        epoch: how often that placement has been respawned; an older one is a zombie.
        senders: who sent each row.
        bucket: the shuffle bucket of each row; empty where rows are in runs, and where nobody
            shuffles.
        payload: what the mechanism sent; sums of it where a trusted server adds up as they are.
        slot: of each row, for readers without a shuffler: the server has assigned it.
        runs: of rows that come group by group.
        records: where readers hold keys, what links them to the rows.
        promotions: sealed keys for rows of earlier releases.
    """

    release: int
    source: int
    epoch: int
    senders: Senders
    bucket: NDArray[np.uint8]
    payload: Any  # an array, or Summed
    records: Records | None = None
    promotions: tuple[Promotion, ...] = ()
    slot: NDArray[np.int64] | None = None
    runs: Runs | None = None

    @property
    def index(self) -> NDArray[Any]:
        """The index of every row's message within its report."""
        return self.senders.listed().sequence


@dataclass(frozen=True, eq=False)
class Shuffled:
    """A chunk of a shuffled batch. Nothing in it names a client or an order of arrival.

    Attributes:
        release: the release it belongs to.
        groups: which runs of rows follow: (logical shuffler) * 64 + bucket.
        lengths: how many rows each run has.
        payload: the rows; within a run their order is uniformly random.
    """

    release: int
    groups: NDArray[np.int64]
    lengths: NDArray[np.int64]
    payload: NDArray[Any]

    @property
    def index(self) -> NDArray[Any]:
        """The logical shuffler of every row."""
        return np.repeat(self.groups // BUCKETS, self.lengths)


@dataclass(frozen=True, eq=False)
class Counted:
    """A batch of which only is told how often each symbol came, by logical shuffler.

    A list of messages in uniformly random order can be made of that, and that of such a list, so
    whoever sees the one knows as much as whoever sees the other.

    Attributes:
        release: the release it belongs to.
        payload: what the mechanism makes of those numbers.
    """

    release: int
    payload: Summed

    def chunk(self, first: int, last: int) -> "Counted":
        """Return all of it: it is small."""
        return self


@dataclass(frozen=True, eq=False)
class Recorded(Shuffled):
    """A chunk whose rows have ids and sealed keys beside them, in the same random order."""

    records: Records


@dataclass(frozen=True, eq=False)
class Opened:
    """What a reader with a key folds: public reports, and its own key for each of them.

    Attributes:
        release: the release it belongs to.
        rid: ids of the reports.
        payload: the reports, as everybody sees them.
        key: that opens each.
    """

    release: int
    rid: NDArray[np.uint64]
    payload: NDArray[Any]
    key: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Promoted:
    """What a reader that is promoted folds: one more key for reports that it has kept.

    Attributes:
        of: the release of each report.
        rid: of each report.
        key: for each report.
    """

    of: NDArray[np.int32]
    rid: NDArray[np.uint64]
    key: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Order:
    """In which order a trusted reader is to take what it holds; drawn by the shuffler.

    Attributes:
        release: that it is for.
        places: a permutation of the reports, in the order of their clients.
    """

    release: int
    places: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Slotted:
    """A chunk of a batch in the order of its slots. Nothing in it names a client.

    Which client has which slot is known to the shuffler alone; within a slot the order is random.

    Attributes:
        release: the release it belongs to.
        groups: which runs of rows follow: slot * 64 + bucket.
        lengths: how many rows each run has.
        payload: the rows.
    """

    release: int
    groups: NDArray[np.int64]
    lengths: NDArray[np.int64]
    payload: NDArray[Any]

    @property
    def slot(self) -> NDArray[Any]:
        """The slot of every row."""
        return np.repeat(self.groups // BUCKETS, self.lengths)

    @property
    def index(self) -> NDArray[Any]:
        """The index of every row's message within its report: a slot takes one message each."""
        return np.broadcast_to(np.int64(0), len(self.payload))
