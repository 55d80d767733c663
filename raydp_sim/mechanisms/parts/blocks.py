"""How a vector is cut into blocks, one sampled coordinate each."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raydp_sim import kernels
from raydp_sim.errors import bad_field
from raydp_sim.mechanisms.base import Counts, Floats
from raydp_sim.random import ClientStream


@dataclass(frozen=True)
class Blocks:
    """`count` consecutive blocks of coordinates.

    Padded blocks all have length ceil(dimension / count) and the last ones may reach past the
    vector, where every bit is 0. Balanced blocks differ in length by at most 1 and hold no padding.

    Example:
        >>> Blocks(10, 4).width, Blocks(10, 4, balanced=True).lengths.tolist()
        (3, [3, 3, 2, 2])
    """

    dimension: int
    count: int
    balanced: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.count <= self.dimension:
            remedy = f"it must lie in 1..{self.dimension}, the dimension that is sampled"
            raise bad_field("coordinates", self.count, remedy)

    @property
    def width(self) -> int:
        """Length of the longest block: a message names one of so many offsets."""
        return -(-self.dimension // self.count)

    @cached_property
    def lengths(self) -> Counts:
        """Number of offsets that are drawn in each block; also its decoding factor."""
        lengths = np.full(self.count, self.width, np.int64)
        if self.balanced:
            lengths[self.dimension - self.count * (self.width - 1) :] -= 1
        return lengths

    @cached_property
    def starts(self) -> Counts:
        """First coordinate of each block."""
        return np.cumsum(self.lengths) - self.lengths

    @property
    def filled(self) -> int:
        """Number of blocks that hold data: the others are noise and cost no privacy."""
        return self.count if self.balanced else -(-self.dimension // self.width)

    @property
    def padded(self) -> bool:
        """Whether a sampled coordinate may lie past the vector."""
        return int(self.lengths.sum()) > self.dimension

    @cached_property
    def factors(self) -> Floats:
        """Decoding factor of each coordinate: the length of its block."""
        return np.repeat(self.lengths, self.lengths)[: self.dimension].astype(np.float64)

    def offsets(self, levels: int, stream: ClientStream) -> Counts:
        """Draw each client's offsets, shape (n, levels * count), level by level."""
        draws = levels * self.count
        if self.width == 1:
            return np.zeros((len(stream.ids), draws), np.int64)
        high = np.tile(self.lengths, levels).astype(np.float64)
        return kernels.sample(stream.key("index"), stream.ids, high)


def recommended(epsilon: float, dimension: int) -> int:
    """Return the order-optimal number of sampled coordinates, min(ceil(epsilon), dimension).

    Girgis & Diggavi 2024, Theorem 2. The small shift forgives the rounding of a divided target.

    Example:
        >>> recommended(2.5, 10)
        3
    """
    return min(max(1, math.ceil(epsilon - 1e-9)), dimension)


def check_coordinates(coordinates: int | None, dimension: int | None, name: str) -> None:
    """Refuse more sampled coordinates than there are, where both are known.

    Raises:
        ValueError: names both numbers.
    """
    if coordinates is not None and dimension is not None and coordinates > dimension:
        raise ValueError(
            f"coordinates is {coordinates}; it must be at most the {name}, which is {dimension}"
        )
