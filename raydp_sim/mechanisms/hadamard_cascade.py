"""One noisy bit of the category's Hadamard code, at several levels of privacy at once."""

import math
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raydp_sim.mechanisms.base import Domain, Floats
from raydp_sim.mechanisms.leveled import Keys, Leveled, Released, check_falling
from raydp_sim.mechanisms.parts.categories import (
    BLOCK,
    Categories,
    allowed,
    bits_beside,
    check_width,
    codes,
    coin,
    odd_overlap,
    step_up,
)
from raydp_sim.mechanisms.parts.entropy import h2
from raydp_sim.mechanisms.parts.hadamard_sign import HadamardSign
from raydp_sim.mechanisms.wires.packing import index_bits
from raydp_sim.mechanisms.wires.symbols import Symbols
from raydp_sim.random import ClientStream, Ids

_MOST_LEVELS = 64


class HadamardCascade(Leveled):
    """Send what 'hadamard-bit' does, and to each less private reader a bit that removes noise.

    Girgis et al. 2020 (Girgis 2024, Theorem 7.4.1). With levels epsilon_1 > ... > epsilon_d a
    client draws coins U^1, ..., U^d, which show 1 with probability q_1 = z_1 and q_j = (z_j -
    z_(j-1)) / (1 - 2 z_(j-1)), z_j = 1 / (e^epsilon_j + 1), and sends a random column with the
    sign's bit plus all of them, modulo 2. The key of level j is U^(j+1) + ... + U^d, one bit; U^1
    is told nobody. Who holds it sees the report of 'hadamard-bit' at epsilon_j, and so does any
    group of readers of which j is the least private.

    Every coin is a multiple of 2^-53, rounded up; flip probabilities and losses are those of what
    is drawn, and no view loses more than its level.

    Fields:
        categories: how many there are, k, 2..1048576; clients hold whole numbers 0..k-1.
        finer: losses of the levels above the public one, falling; the first may be infinite and
            shows the sign as it is. The public level is epsilon_local.

    Example:
        >>> cascade = HadamardCascade(epsilon_local=0.5, finer=(2.0, 1.0), categories=10)
        >>> [round(q, 6) for q in cascade.coins]
        [0.119203, 0.196612, 0.235004]
    """

    kind: ClassVar[str] = "hadamard-cascade"
    tight: ClassVar[bool] = True
    source: ClassVar[str] = "Girgis et al. 2020"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"epsilon_local": 1.0, "finer": (4.0, 2.5), "categories": 5},
        {"epsilon_local": 0.2, "finer": (8.0, 5.0, 3.0), "categories": 16, "dimension": 1},
        {"epsilon_local": 0.5, "finer": (math.inf, 3.0), "categories": 9},
        {"epsilon_local": 1.0, "categories": 3},
    )

    categories: Categories
    finer: Annotated[
        tuple[Annotated[float, Field(allow_inf_nan=True)], ...],
        Field(max_length=_MOST_LEVELS - 1),
    ] = ()

    @model_validator(mode="after")
    def _fits(self) -> "HadamardCascade":
        check_width(self.kind, self.dimension, self.categories)
        check_falling(self.finer, "finer")
        if self.epsilon_local is not None:
            check_falling((self.epsilon_local,), "epsilon_local")
            if self.finer and self.finer[-1] <= self.epsilon_local:
                raise ValueError(
                    f"finer ends with {self.finer[-1]:g}, but epsilon_local, the public level, is "
                    f"{self.epsilon_local:g}; it must be the least of all levels, and differ: give "
                    "both, and no target behind a shuffler, which would choose it"
                )
        return self

    @property
    def levels(self) -> tuple[float, ...]:
        """Loss of every level; the last one is public."""
        return (*self.finer, self.need_epsilon())

    @property
    def domain(self) -> Domain:
        """One of the categories."""
        return Domain("category", 1.0, self.categories)

    @property
    def columns(self) -> int:
        """Columns K of the matrix."""
        return 1 << index_bits(self.categories)

    @cached_property
    def wire(self) -> Symbols:
        """One symbol, 2 column + bit; the bit is 1 for the sign +1."""
        return Symbols(2 * self.columns)

    @cached_property
    def coins(self) -> tuple[float, ...]:
        """Probabilities q_j that the coins show 1."""
        found, before = [], 0.0
        for level in self.levels:
            if math.isinf(level):
                found.append(0.0)
                continue
            # A hair more, since adding up coins rounds once for each.
            wanted = float(scipy.special.expit(-allowed(level))) * (
                1.0 + len(self.levels) * 2.0**-51
            )
            found.append(step_up((wanted - before) / (1.0 - 2.0 * before)))
            before += found[-1] * (1.0 - 2.0 * before)
        return tuple(found)

    @cached_property
    def flips(self) -> tuple[float, ...]:
        """Probability of each level that its bit is not the sign's: coins added up modulo 2."""
        found, before = [], 0.0
        for one in self.coins:
            before += one * (1.0 - 2.0 * before)
            found.append(before)
        return tuple(found)

    @property
    def key_bits(self) -> int:
        """One bit for each level above the public one."""
        return 1

    @property
    def key_entropy(self) -> float:
        """Bits of randomness of all coins of a report (the column is public)."""
        return sum(h2(one) for one in self.coins)

    def view(self, level: int) -> HadamardSign:
        """Return what the readers of a level compute: that of 'hadamard-bit' at its flips."""
        self.check_level(level)
        flip = self.flips[level]
        return HadamardSign(self.categories, 1.0 - flip, flip)

    def released(self, values: Floats, stream: ClientStream) -> Released:
        """Draw a column and every level's coin, and add them up from the public one inwards."""
        out = np.empty((len(values), 1), self.wire.dtype)
        keys = np.zeros((len(values), len(self.levels)), np.uint8)
        for first in range(0, len(values), BLOCK):
            rows = slice(first, first + BLOCK)
            part = stream.take(rows)
            self._keys(part, keys[rows])
            high, low = (word[:, 0] for word in part.words("report"))
            column: Ids = bits_beside(low, self.columns, part)
            bit = coin(high, low, 1.0 - self.coins[0]).view(np.uint8)
            bit ^= odd_overlap(codes(values[rows, 0]), column)
            bit ^= keys[rows, 0]
            column += column
            column += bit
            out[rows, 0] = column
        return Released(out, keys)

    def keys(self, stream: ClientStream) -> Keys:
        """Draw the keys again: column j adds up the coins of all levels after j."""
        keys = np.zeros((len(stream.ids), len(self.levels)), np.uint8)
        for first in range(0, len(keys), BLOCK):
            rows = slice(first, first + BLOCK)
            self._keys(stream.take(rows), keys[rows])
        return keys

    def _keys(self, stream: ClientStream, keys: Keys) -> None:
        for level in range(self.public, 0, -1):
            high, low = (word[:, 0] for word in stream.words(f"coin {level}"))
            np.bitwise_xor(
                keys[:, level], coin(high, low, self.coins[level]), out=keys[:, level - 1]
            )

    def opened(self, payload: NDArray[Any], keys: Keys, level: int) -> NDArray[Any]:
        """Return the reports without the noise that the level's key holds."""
        self.check_keys(payload, keys, level)
        return np.asarray(payload ^ keys.reshape(-1, *[1] * (payload.ndim - 1)))

    def randomizer(self) -> str:
        """Name the message's law, at every level: a uniform index and one bit, flipped."""
        return "rbin"
