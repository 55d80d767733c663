"""Mechanisms that add a secret key to the category: exact for who has the key, else private."""

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from raydp_sim.mechanisms.base import Domain, Floats
from raydp_sim.mechanisms.leveled import Keys, Leveled, Released, View, check_falling
from raydp_sim.mechanisms.parts.additive_key import AdditiveKey, Recovered
from raydp_sim.mechanisms.parts.categories import BLOCK, Categories, check_width, codes
from raydp_sim.mechanisms.wires.packing import index_bits
from raydp_sim.mechanisms.wires.symbols import Symbols
from raydp_sim.random import ClientStream


class Recoverable(Leveled):
    """A report that is the category plus a key; a subclass says which keys there are.

    Two levels: 0, who holds the key and has every category exactly, and 1, the public.
    """

    tight: ClassVar[bool] = True
    categories: Categories

    @model_validator(mode="after")
    def _fits(self) -> "Recoverable":
        check_width(self.kind, self.dimension, self.categories)
        if self.epsilon_local is not None:
            check_falling(self.levels)
        return self

    @property
    @abstractmethod
    def key(self) -> AdditiveKey:
        """The keys and what is seen without them."""

    @property
    def levels(self) -> tuple[float, ...]:
        """Infinite for the holder of the key, and epsilon_local for the public."""
        return (math.inf, self.need_epsilon())

    @property
    def domain(self) -> Domain:
        """One of the categories."""
        return Domain("category", 1.0, self.categories)

    @property
    def wire(self) -> Symbols:
        """One element of the group."""
        return Symbols(self.key.size)

    @property
    def key_bits(self) -> int:
        """Bits of one element of the group."""
        return max(1, index_bits(self.key.size))

    @property
    def key_entropy(self) -> float:
        """Bits of randomness of a key."""
        return self.key.entropy

    def view(self, level: int) -> View:
        """Return what the holder of the keys, or the public, computes."""
        self.check_level(level)
        return Recovered(self.key) if level == 0 else self.key

    def released(self, values: Floats, stream: ClientStream) -> Released:
        """Draw a key for each client and add it to the category."""
        keys = self.keys(stream)
        out = np.empty((len(values), 1), self.wire.dtype)
        for first in range(0, len(values), BLOCK):
            rows = slice(first, first + BLOCK)
            own = self.key.element(codes(values[rows, 0]))
            out[rows, 0] = self.key.plus(own, keys[rows, 0])
        return Released(out, keys)

    def keys(self, stream: ClientStream) -> Keys:
        """Draw the keys again; the public has none."""
        keys = np.zeros((len(stream.ids), 2), self.wire.dtype)
        for first in range(0, len(keys), BLOCK):
            rows = slice(first, first + BLOCK)
            keys[rows, 0] = self.key.draw(stream.take(rows).uniform("key")[:, 0])
        return keys

    def opened(self, payload: NDArray[Any], keys: Keys, level: int) -> NDArray[Any]:
        """Return the categories' elements for the holder of the keys, else the reports."""
        self.check_keys(payload, keys, level)
        if level == self.public:
            return payload
        return self.key.plus(payload, keys.reshape(-1, *[1] * (payload.ndim - 1)), -1).astype(
            payload.dtype
        )

    def recovered(self, payload: NDArray[Any], keys: Keys) -> NDArray[np.int64]:
        """Return every record's category, exactly."""
        symbol = self.opened(payload, keys, 0).astype(np.int64).reshape(len(payload))
        n = self.key.period
        return np.asarray(symbol % n * self.key.blocks + symbol // n)
