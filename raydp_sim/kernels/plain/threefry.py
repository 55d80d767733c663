"""Threefry-2x32 with 20 rounds, uniforms made of its words, and normals of generators it starts."""

from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from raydp_sim.kernels.types import Floats, Ids, Key

# Large enough that NumPy's cost per call vanishes, small enough that the work stays in cache.
_BLOCK = 1 << 15
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
# Shifts to the left and to the right that make up each rotation, in the type of the counters.
_SHIFTS = tuple(
    tuple((np.array(r, np.uint32), np.array(32 - r, np.uint32)) for r in group)
    for group in _ROTATIONS
)
_PARITY = 0x1BD11BDA


def threefry2x32(x0: Ids, x1: Ids, key: Key, scratch: Ids) -> None:
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


def encrypt(key: Key, first: Ids, second: Ids) -> tuple[Ids, Ids]:
    """Draw 64 bits for every pair of counters, as two arrays of 32 bits."""
    x0, x1 = first.copy(), second.copy()
    scratch = np.empty(min(_BLOCK, len(x0)), np.uint32)
    for start in range(0, len(x0), _BLOCK):
        a, b = x0[start : start + _BLOCK], x1[start : start + _BLOCK]
        threefry2x32(a, b, key, scratch[: len(a)])
    return x0, x1


def words(key: Key, ids: Ids, draws: int) -> tuple[Ids, Ids]:
    """Draw 64 bits for every client and draw, as two (n, draws) arrays of 32 bits."""
    high = np.empty((len(ids), draws), np.uint32)
    low = np.empty_like(high)

    def keep(at: slice, x0: Ids, x1: Ids) -> None:
        high.reshape(-1)[at], low.reshape(-1)[at] = x0, x1

    _fill(key, ids, draws, keep)
    return high, low


def uniforms(key: Key, ids: Ids, draws: int) -> Floats:
    """Draw uniforms on [0, 1) with 53 bits each, shape (n, draws)."""
    out = np.empty((len(ids), draws))
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

    _fill(key, ids, draws, keep)
    return out


def normals(key: Key, ids: Ids, draws: int) -> Floats:
    """Draw standard normals, shape (n, draws), with one NumPy generator per client.

    Each is SFC64 started as its author does, from 192 bits of the client's own words.
    """
    out = np.empty((len(ids), draws))
    high, low = words(key, ids, 3)
    start = np.ones((len(ids), 4), np.uint64)  # the last word is SFC64's counter
    start[:, :3] = high.astype(np.uint64) << np.uint64(32) | low
    bits = np.random.SFC64(0)
    generator, state = np.random.Generator(bits), bits.state
    for row, first in zip(out, start, strict=True):
        state["state"]["state"] = first
        bits.state = state
        bits.random_raw(12, output=False)
        generator.standard_normal(out=row)
    return out


class _Seed(ISeedSequence):
    """Words as a generator's first state, without gathering entropy besides."""

    def __init__(self, start: NDArray[np.uint64]) -> None:
        self.start = start

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        """Return the first words."""
        return self.start[:n_words].astype(np.uint64)


def generator(start: NDArray[np.uint64]) -> np.random.Generator:
    """Return NumPy's SFC64 started from three words of 64 bits."""
    seed: Any = _Seed(start)  # NumPy takes any ISeedSequence; its stubs know only one
    return np.random.Generator(np.random.SFC64(seed))


def _fill(key: Key, ids: Ids, draws: int, keep: Any) -> None:
    """Encrypt the counters (client, draw) block by block and hand each block to `keep`."""
    if draws == 0:
        return
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
