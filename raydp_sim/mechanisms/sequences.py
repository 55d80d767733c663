"""Several samples of each client, every one with keys of its own, and a book of the keys used.

Girgis 2024, Theorem 7.6.1: T samples take T times the entropy of one key. A key that is used for
two samples tells their difference to everybody, whatever its law.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import InputError
from raydp_sim.mechanisms.base import Floats
from raydp_sim.mechanisms.leveled import Keys, Leveled
from raydp_sim.random import ClientStream


class Sequence(NamedTuple):
    """What clients send of T samples: `payload[i, t]` is public, `keys[i, t, level]` is not."""

    payload: NDArray[Any]
    keys: Keys


def release_sequence(mechanism: Leveled, values: Floats, stream: ClientStream) -> Sequence:
    """Randomize T categories of each client, with fresh keys for every sample.

    Who sees all of a client's reports without keys learns epsilon_local about each sample, and T
    times as much about all of them together.

    Args:
        mechanism: of one sample.
        values: (n, T) categories.
        stream: of the clients; sample t draws from a place of its own in it.
    """
    released = [
        mechanism.released(mechanism.admit(values[:, t : t + 1], stream.ids).values, part)
        for t, part in enumerate(_samples(stream, values.shape[1]))
    ]
    return Sequence(
        np.concatenate([one.payload for one in released], axis=1),
        np.stack([one.keys for one in released], axis=1),
    )


def sequence_keys(mechanism: Leveled, samples: int, stream: ClientStream) -> Keys:
    """Draw the keys of `release_sequence` again, without the values."""
    return np.stack([mechanism.keys(part) for part in _samples(stream, samples)], axis=1)


def _samples(stream: ClientStream, samples: int) -> Iterator[ClientStream]:
    for t in range(samples):
        yield ClientStream(stream.stream.at("sample", t), stream.ids)


@dataclass
class KeyBook:
    """Which clients' keys have hidden something already: none may do so again.

    Attributes:
        drawn: bits of entropy of all keys that were used.
        delivered: bits of keys that were handed out, by level.
        first: the smallest number that a client may have.

    Example:
        >>> book = KeyBook()
        >>> book.use("release 1", np.array([3, 5]), bits_each=0.8)
        >>> book.use("release 1", np.array([5]), bits_each=0.8)
        Traceback (most recent call last):
        raydp_sim.errors.InputError: client 5's key at release 1 was used before; ...
    """

    drawn: float = 0.0
    delivered: dict[int, int] = field(default_factory=dict)
    first: int = 0
    _used: dict[str, NDArray[np.uint8]] = field(default_factory=dict)

    def use(self, place: str, ids: NDArray[Any], bits_each: float) -> None:
        """Enter that these clients hid a value with their keys of a place, such as a release.

        Raises:
            InputError: names a client whose key was used before; nothing is entered then.
        """
        if not len(ids):
            return
        # One bit per client: a book may be kept over many releases.
        rows = np.asarray(ids, np.int64) - self.first
        before = np.unpackbits(self._used.get(place, np.zeros(0, np.uint8)))
        used = np.bincount(rows, minlength=len(before))
        used[: len(before)] += before
        twice = self.first + np.flatnonzero(used > 1)
        if len(twice):
            raise InputError(
                f"client {twice[0]}'s key at {place} was used before; a key that hides two values "
                "tells their difference: draw a fresh one for every sample"
            )
        self._used[place] = np.packbits(used.astype(np.uint8))
        self.drawn += len(ids) * bits_each

    def deliver(self, level: int, keys: int, bits: int) -> None:
        """Enter that so many keys of so many bits were handed to a level's readers."""
        self.delivered[level] = self.delivered.get(level, 0) + keys * bits
