"""What travels: reports that know their client, and shuffled messages that cannot."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.random import Ids

BUCKETS = 64


@dataclass(frozen=True, eq=False)
class Reports:
    """Messages on their way to whoever collects them, one row each, in (client, sequence) order.

    Attributes:
        release: the release they answer.
        source: which placement of clients sent them.
        epoch: how often that placement has been respawned; an older one is a zombie.
        client: sender of each row.
        sequence: index of the message within its sender's report.
        bucket: the shuffle bucket of each row (0 everywhere outside the shuffle model).
        payload: what the mechanism sent.
    """

    release: int
    source: int
    epoch: int
    client: Ids
    sequence: NDArray[np.uint16]
    bucket: NDArray[np.uint8]
    payload: NDArray[Any]


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
    def index(self) -> NDArray[np.int64]:
        """The logical shuffler of every row."""
        return np.repeat(self.groups // BUCKETS, self.lengths)
