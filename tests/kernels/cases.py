"""Calls of every kernel on random and edge inputs; `played` hashes what one of them gives."""

import hashlib
from collections.abc import Iterator

import numpy as np

from raydp_sim.kernels.types import CoinTables
from raydp_sim.mechanisms.parts.eight_coins import EightCoins

KEY, MORE = (0x12345678, 0x9ABCDEF0), (7, 0xFFFFFFFF)
ROWS = (0, 1, 2, 7, 8, 9, 33)
POWERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, 4096)


def ids(n):
    return np.random.default_rng(n).integers(0, 2**32, n, dtype=np.uint32)


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def coefficients(kernels):
    for full in POWERS[1:]:
        for n in (0, 1, 3, 4, 5):
            frame = np.where(np.arange(full) % 2, 1.0 / full, 0.0)
            wide = numbers(n, full) * (frame > 0.0)
            wide[:1] = 0.0
            yield kernels.coefficients(wide, 12, 1.0, frame)


def coins(kernels):
    for epsilon in (0.001, 0.3, 0.5):
        tables = EightCoins(int(epsilon * 2**64)).tables
        for n, octets in ((0, 3), (1, 1), (5, 2), (33, 3), (9, 32), (100, 33), (3, 5000)):
            yield from kernels.coins(KEY, MORE, ids(n), octets, tables)
    # Every cell is cut and every number equal to an end: all of it is left undecided.
    cut = CoinTables(np.full(1 << 16, 256, np.uint16), np.zeros(255, np.uint64))
    yield from kernels.coins(KEY, MORE, ids(9), 7, cut)
    never = CoinTables(cut.cells, np.full(255, 2**64 - 1, np.uint64))
    yield from kernels.coins(KEY, MORE, ids(9), 7, never)


def draws(kernels):
    for n in ROWS:
        for count in (0, 1, 2, 3, 4, 8, 511, 512, 513, 1030):
            yield from kernels.words(KEY, ids(n), count)
            yield kernels.uniforms(KEY, ids(n), count)
            yield kernels.buckets(KEY, ids(n), count)
            yield kernels.sample(KEY, ids(n), np.arange(count) * 1e3 + 1.0)
        yield from kernels.encrypt(KEY, ids(n), ids(n)[::-1])
    yield kernels.uniforms(KEY, ids(5000), 1)
    yield kernels.sample(KEY, ids(99), np.array([1.0, 2.0**31, 2.0**31 - 1.0]))
    yield kernels.sample(KEY, ids(99), np.array([2.0**40]))


def toss(kernels):
    for n in (*ROWS, 2000):
        for count in (1, 3, 4, 8, 513):
            chance = np.random.default_rng(n).random((n, count))
            offset = np.random.default_rng(1).integers(0, 100, (n, count))
            flip, gap = np.linspace(0.1, 0.4, count), np.linspace(0.8, 0.2, count)
            for kind in "BHIL":
                of = np.dtype(kind)
                yield kernels.toss(KEY, ids(n), offset, chance, flip, gap, of)
                yield kernels.toss(KEY, ids(n), None, chance, flip, gap, of)
    chance = np.random.default_rng(3).random((70_001, 1))
    one = np.array([0.25]), np.array([0.5]), np.dtype(np.uint8)
    yield kernels.toss(KEY, ids(70_001), None, chance, *one)
    yield kernels.toss(KEY, ids(70_001), np.ones((70_001, 1), np.int64), chance, *one)


def picked(kernels):
    for n in (*ROWS, 2000):
        for starts, lengths in (((0, 3, 9), (3, 6, 1)), ((0,), (10,)), ((0, 1, 2, 3), (7,) * 4)):
            high = np.array(lengths, np.float64)
            flip, gap = np.linspace(0.1, 0.4, len(high)), np.linspace(0.8, 0.2, len(high))
            for kind in "BHIL":
                of = np.dtype(kind)
                values = 2.0 * numbers(n, 10)  # some lie outside of [-1, 1]
                blocks = (np.array(starts), high, 1.0, 0.5, flip, gap, of)
                yield kernels.picked(KEY, MORE, ids(n), values, *blocks)
                yield kernels.picked(KEY, MORE, ids(n), values.astype(np.float32), *blocks)
    for count in (127, 128, 129, 300):  # about as long as the pieces that are worked on
        starts, high = np.arange(count) % 7, np.arange(count) % 3 + 1.0
        chance = np.linspace(0.1, 0.4, count), np.linspace(0.8, 0.2, count)
        blocks = (starts, high, 1.0, 0.5, *chance, np.dtype(np.uint16))
        yield kernels.picked(KEY, MORE, ids(99), 2.0 * numbers(99, 10), *blocks)
    many = (np.zeros(1, np.int64), np.array([10.0]), 1.0, 0.5, np.array([0.1]), np.array([0.8]))
    yield kernels.picked(KEY, MORE, ids(70_001), numbers(70_001, 10), *many, np.dtype(np.uint8))


def wide(kernels):
    for n in ROWS:
        for d in (1, 2, 63, 64, 65, 1000, 8193, 13706):
            x, height = numbers(n, d) / np.sqrt(d), np.abs(numbers(n))
            x[:1] = 0.0
            size = np.sqrt((x * x).sum(axis=1))
            right, sided = np.arange(n) % 3 == 0, size > 0.0
            yield kernels.normals(KEY, ids(n), d)
            yield kernels.dots(x, x[:, ::-1])
            yield kernels.squares(x)
            yield kernels.squares(x[:, ::-1].astype(np.float32))
            yield kernels.largest(x)
            yield kernels.largest(x[:, ::-1].astype(np.float32))
            most = 2.0**53 / max(1, n)
            yield kernels.steps(x, 2.0**38, most)
            yield kernels.steps(x[:, ::-1].astype(np.float32), 2.0**38, most)
            yield kernels.steps(x, 2.0**38, most, height)
            yield kernels.steps(x.astype(np.float32), 2.0**38, most, height)
            yield kernels.turned(KEY, ids(n), x, sided, right, 2.5)
            for exact in (False, True):
                yield kernels.leaned(KEY, ids(n), x, size, 1e-140, height, 2.0 - height, exact)
    for far in (np.nan, np.inf, 2.0**14, -(2.0**14)):
        x = numbers(6, 99)
        x[4, 98] = far
        assert kernels.steps(x, 2.0**38, 2.0**52) is None
        assert kernels.steps(x.astype(np.float32), 2.0**38, 2.0**52, np.ones(6)) is None
        assert kernels.steps(numbers(6, 99), 2.0**38, 2.0**52, np.full(6, far)) is None
        yield kernels.squares(x)
    yield kernels.normals(KEY, ids(100), 20_000)  # 2,300 of them from the tail of the ziggurat


def gathered(kernels):
    for shape in ((1,), (3, 5), (28, 28), (1000,)):
        for kind in (np.uint8, np.float32, np.float64):
            pool = (numbers(9, *shape) * 100.0).astype(np.int64).astype(kind)
            for n in ROWS:
                at = np.random.default_rng(n).integers(0, 9, (n, 2))
                yield kernels.gathered(pool, at, 1.0 / 255.0)
                yield kernels.gathered(pool, at[:, 0], 0.1)


def softmax(kernels):
    drawn = np.random.default_rng(11)
    shapes = ((1,), 1, 1), ((3,), 4, 5), ((4, 4), 7, 10), ((17,), 5, 11), ((5, 5, 3), 3, 2)
    for shape, samples, classes in (*shapes, ((28, 28), 6, 10), ((100,), 13, 16)):
        for kind, n in ((np.uint8, 3), (np.float32, 9), (np.float64, 2), (np.uint8, 0)):
            pool = (drawn.random((9, *shape)) * 255.0).astype(kind)
            pool = pool if kind == np.uint8 else pool / 255
            size = classes * (int(np.prod(shape)) + 1)
            at = drawn.integers(0, 9, (n, samples)), 1.0 / 255.0
            labels = drawn.integers(0, classes, (n, samples))
            weights = drawn.random((n, samples)).astype(np.float32)
            # Zero has ties, and large numbers shares of nothing.
            for scale in (0.0, 0.3, 30.0):
                for first in ((size,), (n, size)):
                    theta = (scale * drawn.standard_normal(first)).astype(np.float32)
                    out = np.full((n, size), np.nan, np.float32)
                    yield from kernels.softmax(pool, *at, labels, weights, theta, out)
                    yield out


def transform(kernels):
    for full in POWERS:
        for n in (0, 1, 5, 64):
            yield kernels.hadamard(numbers(n, full))
            yield kernels.hadamard(numbers(n, full).astype(np.float32))


def entries(kernels):
    for full in POWERS:
        shapes = [(0, full, 2), (1, full, 2), (9, max(1, full - 3), 4), (33, full, 6)]
        for n, d, count in (*shapes, (5, full // 2 + 1, 10), (7, max(1, full // 4), 4)):
            at = np.random.default_rng(n).integers(0, full, (n, count))
            yield kernels.entries(numbers(n, d), numbers(full), at)
            nothing = np.where(numbers(n, d) < 0.0, -0.0, 0.0)
            yield kernels.entries(nothing, numbers(full), at)
    yield kernels.entries(numbers(5, 64), numbers(64), np.arange(15).reshape(5, 3))


def dealt(kernels):
    for messages in (1, 2, 3, 4, 5, 6, 9, 10, 11, 20, 25, 128):
        for first, last in ((0, 0), (0, 1), (7, 7), (3, 4), (0, 40), (13, 52), (2**32 - 9, 2**32)):
            for apart in (False, True):
                for kind in "BHIL"[messages > 4 and apart :]:
                    of = np.dtype(kind)
                    yield kernels.dealt(KEY, range(first, last), messages, apart, of)
    yield kernels.dealt(KEY, range(5, 9000), 1, False, np.dtype(np.uint8))
    yield kernels.dealt(KEY, range(1001, 4000), 4, True, np.dtype(np.uint8))


def cuts(n):
    return slice(0, n // 3), slice(n // 3, n // 3), slice(n // 3, n)


def long_groups(kernels):
    """Groups that take several turns, beside some that take one and some of nothing to do."""
    draw = np.random.default_rng(7)
    for lengths in ((6000,), (70_000, 1), (9000, 0, 1, 2, 4097, 17, 2048, 6001, 3, 9000, 4096)):
        sizes = np.array(lengths)
        seeds = draw.integers(0, 2**64, (len(lengths), 3), dtype=np.uint64)
        for kind in (np.uint8, np.uint16, np.uint32, np.int64):
            items = np.arange(sizes.sum()).astype(kind)
            kernels.shuffle(items, np.cumsum(sizes) - sizes, sizes, seeds)
            yield items


def permuted(kernels):
    for n in (0, 1, 2, 3, 4, 5, 63, 64, 65, 1000, 70_001):
        draw = np.random.default_rng(n)
        for kind in (np.uint8, np.uint16, np.uint32):
            keys = draw.integers(0, 64, n).astype(kind)
            yield from kernels.group(keys, 64)
            for item in (np.uint8, np.uint16, np.uint32, np.uint64):
                given = draw.integers(0, 200, n).astype(item)
                found = kernels.group(keys, 70, given)
                yield from found
                seeds = draw.integers(0, 2**64, (70, 3), dtype=np.uint64)
                items = found.items.copy()
                kernels.shuffle(items, np.cumsum(found.sizes) - found.sizes, found.sizes, seeds)
                yield items
                halves = [kernels.group(keys[cut], 70, given[cut]) for cut in cuts(n)]
                sizes = np.stack([half.sizes for half in halves])
                yield kernels.merge([half.items for half in halves], sizes)
            yield kernels.tally(keys, 64)
            yield kernels.tally(keys, 64, draw.integers(0, 3, n), 3)
            bits = draw.integers(0, 80, n)
            rows = draw.integers(0, 256, (n, 10), dtype=np.uint8)
            kernels.mark(rows, bits)
            yield rows


CASES = {
    each.__name__: each
    for each in (
        coefficients,
        coins,
        dealt,
        draws,
        entries,
        gathered,
        long_groups,
        permuted,
        picked,
        softmax,
        toss,
        transform,
        wide,
    )
}


def played(kernels, name: str) -> str:
    """Return a hash of everything that a case's calls give: types, shapes and bytes."""
    return digest(CASES[name](kernels))


def digest(arrays: Iterator[np.ndarray]) -> str:
    found = hashlib.blake2b(digest_size=16)
    for array in arrays:
        found.update(f"{array.dtype} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
