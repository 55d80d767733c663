"""Counter-based randomness: every draw is a function of (seed, purpose, release, client, index).

No generator carries state from one call to the next, so a draw does not depend on which process
makes it, on how many clients share the call, or on what was drawn before. Draws per client come
from Threefry-2x32 with 20 rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2,
3"): the counter is (client, index) and the key a hash of everything else. Draws that belong to a
whole release, such as a permutation, use NumPy's SFC64, started from the same hash.

These are simulation-grade generators and floating-point samplers, not for deployment.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from raydp_sim import kernels
from raydp_sim.kernels.plain.threefry import generator
from raydp_sim.kernels.types import Key

Ids = NDArray[np.uint32]
Floats = NDArray[np.float64]

_HALF_STEP = 2.0**-54


@dataclass(frozen=True)
class Stream:
    """A place in the tree of keys: a seed and a path of names and numbers.

    Example:
        >>> place = Stream(7).at("randomize", 3)
        >>> place.clients(np.array([5, 9])).uniform("flip", 2).shape
        (2, 2)
    """

    seed: int
    path: tuple[str | int, ...] = ()

    def at(self, *path: str | int) -> "Stream":
        """Descend: `stream.at("shuffle", 3)` is independent of every other path."""
        return Stream(self.seed, self.path + path)

    def clients(self, ids: NDArray[Any]) -> "ClientStream":
        """Bind the stream to the clients that will draw from it, one row each."""
        return ClientStream(self, np.ascontiguousarray(ids, dtype=np.uint32))

    def generator(self) -> np.random.Generator:
        """Return NumPy's SFC64 started at this place, for draws that no single client owns."""
        return generator(self.start())

    def start(self) -> NDArray[np.uint64]:
        """Return the three words that the generator of this place starts from."""
        return np.frombuffer(self._digest(), "<u8").astype(np.uint64)

    def starts(self, name: str, numbers: NDArray[Any]) -> NDArray[np.uint64]:
        """Return what `at(name, number).start()` does for each number, one row each.

        What their texts have in common is hashed once.

        Example:
            >>> place = Stream(7, ("permute", 3))
            >>> (row,) = place.starts("group", np.array([5]))
            >>> np.array_equal(row, place.at("group", 5).start())
            True
        """
        text = repr((self.seed, (*self.path, name, 0)))
        common = hashlib.blake2b(text[: -len("0))")].encode(), digest_size=24)
        digests = []
        for number in numbers.tolist():
            each = common.copy()
            each.update(b"%d))" % number)
            digests.append(each.digest())
        return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64).reshape(-1, 3)

    def pairs(self, first: NDArray[Any], second: NDArray[Any]) -> tuple[Ids, Ids]:
        """Draw 64 bits for every pair of counters, as two arrays of 32 bits."""
        return kernels.encrypt(self.key(), _counters(first), _counters(second))

    def key_below(self, purpose: str) -> Key:
        """Return `at(purpose).key()`, worked out once for all blocks of clients that draw here."""
        if purpose not in self._keys:
            self._keys[purpose] = self.at(purpose).key()
        return self._keys[purpose]

    @cached_property
    def _keys(self) -> dict[str, Key]:
        return {}

    def key(self) -> Key:
        """Return the 64-bit Threefry key of this place as two 32-bit words."""
        digest = self._digest()
        return int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:8], "little")

    def _digest(self) -> bytes:
        # repr tells 1 from "1" and every part from its neighbours, so no two paths share a text.
        return hashlib.blake2b(repr((self.seed, self.path)).encode(), digest_size=24).digest()


@dataclass(frozen=True, eq=False)
class ClientStream:
    """A stream bound to clients: every method returns one row per client.

    A draw is named by its purpose; two purposes are independent, and so are two columns of one.
    """

    stream: Stream
    ids: Ids

    def take(self, rows: slice | NDArray[Any]) -> "ClientStream":
        """Return the stream of some of the clients; their draws do not change."""
        return ClientStream(self.stream, self.ids[rows])

    def key(self, purpose: str) -> Key:
        """Return the key of a purpose, for kernels that draw and use at once."""
        return self.stream.key_below(purpose)

    def words(self, purpose: str, draws: int = 1) -> tuple[Ids, Ids]:
        """Draw 64 random bits per client and draw, as two (n, draws) arrays of 32 bits."""
        return kernels.words(self.key(purpose), self.ids, draws)

    def uniform(self, purpose: str, draws: int = 1) -> Floats:
        """Draw uniforms on [0, 1) with 53 bits each, shape (n, draws)."""
        return kernels.uniforms(self.key(purpose), self.ids, draws)

    def integers(self, purpose: str, high: int, draws: int = 1) -> NDArray[np.int64]:
        """Draw integers uniform on 0..high-1 (relative bias below high / 2^53)."""
        return kernels.sample(self.key(purpose), self.ids, np.full(draws, high, np.float64))

    def normal(self, purpose: str, draws: int = 1) -> Floats:
        """Draw standard normals by inversion."""
        # Half a step off 0; beside 1 that would round to 1, where the normal is infinite.
        centred = self.uniform(purpose, draws) + _HALF_STEP
        return np.asarray(scipy.special.ndtri(np.minimum(centred, 1.0 - 2.0**-53, out=centred)))

    def wide_normal(self, purpose: str, draws: int) -> Floats:
        """Draw standard normals with one NumPy generator per client.

        Faster than `normal` from about 64 draws per client; which of the two a mechanism uses is
        its own property, since the numbers differ. Each generator is SFC64 started as its author
        does, from 192 bits of the client's own Threefry words.
        """
        return kernels.normals(self.key(purpose), self.ids, draws)

    def laplace(self, purpose: str, draws: int = 1) -> Floats:
        """Draw standard Laplace variables (density exp(-|x|)/2) by inversion."""
        centred = self.uniform(purpose, draws) + (_HALF_STEP - 0.5)
        return np.asarray(-np.sign(centred) * np.log1p(-2.0 * np.abs(centred)))


def _counters(given: NDArray[Any]) -> Ids:
    return np.ascontiguousarray(given).astype(np.uint32, copy=False)
