"""Types that all kernels share."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint32]
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Counts = NDArray[np.int64]
Octets = NDArray[np.uint8]
Booleans = NDArray[np.bool_]
Key = tuple[int, int]


class CoinTables(NamedTuple):
    """What decides on eight coins at once; see `mechanisms.parts.eight_coins`.

    Attributes:
        cells: the byte of each of 65,536 cells, or 256 where an interval ends in it.
        ends: the upper 64 bits of where the interval of each byte ends, but for the last.
    """

    cells: NDArray[np.uint16]
    ends: NDArray[np.uint64]


class Thrown(NamedTuple):
    """Bytes of coins, and what 64 bits did not decide: flat positions and those bits."""

    octets: Octets
    position: Counts
    number: NDArray[np.uint64]


class Grouped(NamedTuple):
    """Items group by group, and how many each group has."""

    items: NDArray[Any]
    sizes: Counts


class Softmax(NamedTuple):
    """Of every sample, what its loss is made of: log(total) - below.

    Attributes:
        total: sum over classes of the exponentials of logits, less the largest of them.
        below: the logit of the sample's own class, less the largest.
        right: whether the own class is the first that has the largest.
    """

    total: Floats32
    below: Floats32
    right: Booleans
