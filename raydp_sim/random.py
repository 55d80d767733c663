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
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray
from scipy.special import ndtri

Ids = NDArray[np.uint32]
Floats = NDArray[np.float64]

# Large enough that NumPy's cost per call vanishes, small enough that the work stays in cache.
_BLOCK = 1 << 15
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
# Shifts to the left and to the right that make up each rotation, in the type of the counters.
_SHIFTS = tuple(
    tuple((np.array(r, np.uint32), np.array(32 - r, np.uint32)) for r in group)
    for group in _ROTATIONS
)
_PARITY = 0x1BD11BDA
_HALF_STEP = 2.0**-54


def threefry2x32(x0: Ids, x1: Ids, key: tuple[int, int], scratch: Ids) -> None:
    """Encrypt the counters (x0, x1) in place with Threefry-2x32, 20 rounds.

    Example:
        >>> x0, x1, scratch = (np.zeros(1, np.uint32) for _ in range(3))
        >>> threefry2x32(x0, x1, (0, 0), scratch)
        >>> hex(int(x0[0])), hex(int(x1[0]))
        ('0x6b200159', '0x99ba4efe')
    """
    k0, k1 = key
    schedule = (k0, k1, _PARITY ^ k0 ^ k1)
    x0 += np.uint32(k0)
    x1 += np.uint32(k1)
    for group in range(5):
        for left, right in _SHIFTS[group % 2]:
            np.add(x0, x1, out=x0)
            np.right_shift(x1, right, out=scratch)
            np.left_shift(x1, left, out=x1)
            np.bitwise_or(x1, scratch, out=x1)
            np.bitwise_xor(x1, x0, out=x1)
        x0 += np.uint32(schedule[(group + 1) % 3])
        x1 += np.uint32((schedule[(group + 2) % 3] + group + 1) & 0xFFFFFFFF)


class _Key(ISeedSequence):
    """The hash of a place as a generator's first state, without gathering entropy besides."""

    def __init__(self, digest: bytes) -> None:
        self.digest = digest

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        """Return the first words of the hash."""
        return np.frombuffer(self.digest, "<u8")[:n_words].astype(np.uint64)


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
        key: Any = _Key(self._digest())  # NumPy takes any ISeedSequence; its stubs know only one
        return np.random.Generator(np.random.SFC64(key))

    def pairs(self, first: NDArray[Any], second: NDArray[Any]) -> tuple[Ids, Ids]:
        """Draw 64 bits for every pair of counters, as two arrays of 32 bits."""
        x0, x1 = first.astype(np.uint32), second.astype(np.uint32)
        key, scratch = self.key(), np.empty(min(_BLOCK, len(x0)), np.uint32)
        for start in range(0, len(x0), _BLOCK):
            a, b = x0[start : start + _BLOCK], x1[start : start + _BLOCK]
            threefry2x32(a, b, key, scratch[: len(a)])
        return x0, x1

    def key(self) -> tuple[int, int]:
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

    def words(self, purpose: str, draws: int = 1) -> tuple[Ids, Ids]:
        """Draw 64 random bits per client and draw, as two (n, draws) arrays of 32 bits."""
        high = np.empty((len(self.ids), draws), np.uint32)
        low = np.empty_like(high)

        def keep(at: slice, x0: Ids, x1: Ids) -> None:
            high.reshape(-1)[at], low.reshape(-1)[at] = x0, x1

        _fill(self.stream.at(purpose).key(), self.ids, draws, keep)
        return high, low

    def uniform(self, purpose: str, draws: int = 1) -> Floats:
        """Draw uniforms on [0, 1) with 53 bits each, shape (n, draws)."""
        out = np.empty((len(self.ids), draws))
        flat = out.reshape(-1)
        shifted = np.empty(_BLOCK)

        def keep(at: slice, x0: Ids, x1: Ids) -> None:
            # x0 gives the upper 32 bits and x1 the lower 21; all of it is exact in a double.
            part, tail = flat[at], shifted[: len(x0)]
            part[:] = x0
            part *= 2.0**21
            np.right_shift(x1, np.uint32(11), out=x1)
            tail[:] = x1
            part += tail
            part *= 2.0**-53

        _fill(self.stream.at(purpose).key(), self.ids, draws, keep)
        return out

    def integers(self, purpose: str, high: int, draws: int = 1) -> NDArray[np.int64]:
        """Draw integers uniform on 0..high-1 (relative bias below high / 2^53)."""
        return np.asarray(self.uniform(purpose, draws) * high, dtype=np.int64)

    def normal(self, purpose: str, draws: int = 1) -> Floats:
        """Draw standard normals by inversion."""
        # Half a step off 0; beside 1 that would round to 1, where the normal is infinite.
        centred = self.uniform(purpose, draws) + _HALF_STEP
        return np.asarray(ndtri(np.minimum(centred, 1.0 - 2.0**-53, out=centred)))

    def wide_normal(self, purpose: str, draws: int) -> Floats:
        """Draw standard normals with one NumPy generator per client.

        Faster than `normal` from about 64 draws per client; which of the two a mechanism uses is
        its own property, since the numbers differ. Each generator is SFC64 started as its author
        does, from 192 bits of the client's own Threefry words.
        """
        out = np.empty((len(self.ids), draws))
        high, low = self.words(purpose, 3)
        start = np.ones((len(self.ids), 4), np.uint64)  # the last word is SFC64's counter
        start[:, :3] = high.astype(np.uint64) << np.uint64(32) | low
        bits = np.random.SFC64(0)
        generator, state = np.random.Generator(bits), bits.state
        for row, first in zip(out, start, strict=True):
            state["state"]["state"] = first
            bits.state = state
            bits.random_raw(12, output=False)
            generator.standard_normal(out=row)
        return out

    def laplace(self, purpose: str, draws: int = 1) -> Floats:
        """Draw standard Laplace variables (density exp(-|x|)/2) by inversion."""
        centred = self.uniform(purpose, draws) + (_HALF_STEP - 0.5)
        return np.asarray(-np.sign(centred) * np.log1p(-2.0 * np.abs(centred)))


def _fill(key: tuple[int, int], ids: Ids, draws: int, keep: Any) -> None:
    """Encrypt the counters (client, draw) block by block and hand each block to `keep`."""
    clients = max(1, _BLOCK // draws)
    width = min(draws, _BLOCK)
    x0, x1, scratch = (np.empty(clients * width, np.uint32) for _ in range(3))
    for first in range(0, len(ids), clients):
        block = ids[first : first + clients]
        for start in range(0, draws, width):
            stop = min(start + width, draws)
            size = len(block) * (stop - start)
            a, b = x0[:size], x1[:size]
            a.reshape(len(block), -1)[:] = block[:, None]
            b.reshape(len(block), -1)[:] = np.arange(start, stop, dtype=np.uint32)
            threefry2x32(a, b, key, scratch[:size])
            # With more than one span per client the block is a single client.
            keep(slice(first * draws + start, first * draws + start + size), a, b)
