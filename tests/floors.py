"""The floors of `raydp-sim bench pipeline`: the same work in one process, as fast as NumPy can.

A round randomizes every client's value, permutes the messages uniformly (one permutation per
message index), folds them to counts and decodes the estimate. The data are made before the clock
starts. Nothing here is imported from raydp_sim, and nothing is placed, checked or, save for a row
of each round of (e), made durable.

By hand: `python tests/floors.py a` plays 20 rounds. With no argument it serves the benchmark: each
line `case clients rounds` on standard input is answered by one line of JSON. A case's data stay in
memory until another case is asked for.

SFC64 is the fastest of NumPy's bit generators here, and shuffling 8-byte items in place the fastest
way to permute: 9 ms for a million messages, to which the coins add 2. Slower: `permutation(n)` and
a gather (1.2 times), `permutation(x)` and shuffling bytes (1.3), `choice` without replacement (1.5,
it takes fresh pages), 16 to 256 buckets by radix sort, each permuted in cache (2), sorting random
64-bit keys (5).
"""

import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402  # BLAS reads its number of threads when it is loaded

Round = Callable[[], np.ndarray]


def randomized_response(clients: int) -> Round:
    """(a) 2RR, one bit per client, epsilon 1."""
    rng = np.random.Generator(np.random.SFC64(1))
    bits = rng.random(clients) < 0.3
    flip = 1.0 / (1.0 + math.e)
    u, sent = np.empty(clients), np.empty(clients, np.bool_)
    messages = np.empty(clients, np.int64)

    def play() -> np.ndarray:
        rng.random(out=u)
        np.less(u, flip, out=sent)
        np.not_equal(sent, bits, out=sent)
        np.copyto(messages, sent)
        rng.shuffle(messages)
        return np.array([(np.count_nonzero(messages) / clients - flip) / (1.0 - 2.0 * flip)])

    return play


class _Reports:
    """What (b) and (c) share: s = 4 blocks, one sampled coordinate each, one noisy bit (m = 1)."""

    def __init__(self, rng: np.random.Generator, clients: int, width: int) -> None:
        self.rng, self.clients, self.width = rng, clients, width
        self.flip = 1.0 / (1.0 + math.e)  # epsilon 4 over 4 messages
        self.u = np.empty((clients, 4))
        self.bit = np.empty((clients, 4), np.bool_)
        self.messages = np.empty((4, clients), np.int64)

    def offsets(self) -> np.ndarray:
        # Bytes where they hold the width, as here: half the cost of drawing int64.
        kind = np.uint8 if self.width <= 256 else np.uint16
        return self.rng.integers(0, self.width, (self.clients, 4), dtype=kind)

    def estimate(self, offset: np.ndarray, z: np.ndarray, radius: float) -> np.ndarray:
        """Flip, permute, fold and decode; z are the sampled values and is overwritten."""
        gap = 1.0 - 2.0 * self.flip
        # A value v in [-radius, radius] is sent as 1 with chance flip + gap (v/radius + 1) / 2.
        z *= 0.5 * gap / radius
        z += self.flip + 0.5 * gap
        self.rng.random(out=self.u)
        np.less(self.u, z, out=self.bit)
        np.multiply(offset.T, 2, out=self.messages, dtype=np.int64)
        self.messages += self.bit.T
        mean = np.empty((4, self.width))
        for row, each in zip(self.messages, mean, strict=True):
            self.rng.shuffle(row)
            counts = np.bincount(row, minlength=2 * self.width)
            zeros, ones = counts[0::2], counts[1::2]
            each[:] = (ones - self.flip * (zeros + ones)) * (self.width / (gap * self.clients))
        return (2.0 * mean.reshape(-1) - 1.0) * radius


def linf(clients: int, dimension: int = 1000) -> Round:
    """(b) R^linf, s = 4, m = 1, epsilon 4.

    The gather is a third of the time whether it is done in one go, block by block or by column.
    """
    rng = np.random.Generator(np.random.SFC64(2))
    data = rng.standard_normal((clients, dimension))
    np.clip(data, -1.0, 1.0, out=data)
    flat, width = data.reshape(-1), dimension // 4
    reports = _Reports(rng, clients, width)
    first = np.arange(clients)[:, None] * dimension + np.arange(4) * width
    at, z = np.empty((clients, 4), np.int64), np.empty((clients, 4))

    def play() -> np.ndarray:
        offset = reports.offsets()
        np.add(offset, first, out=at)
        flat.take(at, out=z, mode="clip")
        return reports.estimate(offset, z, 1.0)

    return play


def l2(clients: int, dimension: int = 1024) -> Round:
    """(c) R^l2 with Hadamard rotation, s = 4, m = 1, epsilon 4.

    H factors into H32 x H32, so a client's four sampled entries are four rows of the one times its
    vector as 32 x 32, then four dot products with rows of the other: 4,200 multiplications, by
    BLAS, a client at a time. Splits 16 x 64 and 64 x 16 come within a tenth. Slower: rows of H256
    and products 4 x 256 x 4 (1.2 times), gathered rows of H1024 and matmul (2) or einsum (3),
    butterflies over the top two bits and then a sign reduction client by client (2.2) or gathered
    rows of H256 (3), the whole transform in blocks that fit the cache (more than 5).
    """
    rng = np.random.Generator(np.random.SFC64(3))
    data = rng.standard_normal((clients, dimension))
    data /= np.maximum(1.0, np.sqrt(np.einsum("nk,nk->n", data, data)))[:, None]
    signs = (1.0 - 2.0 * rng.integers(0, 2, dimension)) / math.sqrt(dimension)
    bits = dimension.bit_length() - 1
    low, width, radius = bits // 2, dimension // 4, 4.0 / math.sqrt(dimension)
    high_rows, low_rows = _hadamard(1 << (bits - low)), _hadamard(1 << low)
    reports, block, start = _Reports(rng, clients, width), 128, np.arange(4) * width
    turned = np.empty((block, 1 << (bits - low), 1 << low))
    left, right, part = (np.empty((block, 4, 1 << k)) for k in (bits - low, low, low))
    z = np.empty((clients, 4))

    def play() -> np.ndarray:
        offset = reports.offsets()
        row = offset + start
        for begin in range(0, clients, block):
            x, rows = data[begin : begin + block], row[begin : begin + block]
            size = len(x)
            np.multiply(x, signs, out=turned[:size].reshape(size, dimension))
            high_rows.take(rows >> low, axis=0, out=left[:size], mode="clip")
            np.matmul(left[:size], turned[:size], out=part[:size])
            low_rows.take(rows & ((1 << low) - 1), axis=0, out=right[:size], mode="clip")
            np.einsum("njk,njk->nj", part[:size], right[:size], out=z[begin : begin + size])
        np.clip(z, -radius, radius, out=z)
        rotated = reports.estimate(offset, z, radius)
        square = rotated.reshape(len(high_rows), len(low_rows))
        return (high_rows @ square @ low_rows).reshape(-1) * signs

    return play


def laplace(clients: int, dimension: int = 128) -> Round:
    """(d) Laplace noise on vectors of 128 doubles, 1 KB a report, epsilon 4."""
    rng = np.random.Generator(np.random.SFC64(4))
    data = rng.standard_normal((clients, dimension))
    data /= np.abs(data).sum(axis=1)[:, None]

    def play() -> np.ndarray:
        noisy = rng.laplace(scale=0.5, size=data.shape)
        noisy += data
        rng.shuffle(noisy, axis=0)
        return noisy.mean(axis=0)

    return play


def small(clients: int) -> Round:
    """(e) 2RR as in (a), and a row for who took part, appended to a file and on disk."""
    estimate = randomized_response(clients)
    row, file = bytes(256 + clients // 8), tempfile.TemporaryFile(buffering=0)

    def play() -> np.ndarray:
        file.write(row)
        os.fsync(file.fileno())
        return estimate()

    return play


def levels(clients: int, categories: int = 1000, epsilons: int = 10) -> Round:
    """(f) A bit of the category's Hadamard code and ten coins, read at ten levels.

    Reports and nine columns of keys are put in one random order. Coins are of one probability, of
    which the time does not depend.
    """
    rng = np.random.Generator(np.random.SFC64(6))
    data = rng.integers(0, categories, clients, dtype=np.uint32)
    size = 1 << (categories - 1).bit_length()
    matrix, flip = _hadamard(size), 0.05
    u = np.empty(clients)

    def play() -> np.ndarray:
        column = rng.integers(0, size, clients, dtype=np.uint32)
        bit = (np.bitwise_count(column & data) & 1) ^ 1
        keys = np.empty((epsilons, clients), np.uint8)
        sum_of_coins = np.zeros(clients, np.uint8)
        for level in range(epsilons - 1, -1, -1):
            keys[level] = sum_of_coins
            rng.random(out=u)
            sum_of_coins ^= u < flip
        reports = 2 * column + (bit ^ sum_of_coins)
        order = rng.permutation(clients)
        reports, estimates, gap = reports[order], [], 1.0
        for level in range(epsilons):
            gap *= 1.0 - 2.0 * flip
            counts = np.bincount(reports ^ keys[level][order], minlength=2 * size)
            estimates.append(matrix @ (counts[1::2] - counts[0::2]) / (gap * clients))
        return np.array(estimates)[:, :categories]

    return play


def _hadamard(size: int) -> np.ndarray:
    matrix = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return np.ascontiguousarray(matrix)


CASES = {
    "a": (randomized_response, 1_000_000),
    "b": (linf, 100_000),
    "c": (l2, 100_000),
    "d": (laplace, 64),
    "e": (small, 100),
    "f": (levels, 1_000_000),
}


def measure(play: Round, rounds: int) -> dict[str, float]:
    """Play some rounds; return wall and CPU seconds of one."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(rounds):
        play()
    return {
        "wall": (time.perf_counter() - wall) / rounds,
        "cpu": (time.process_time() - cpu) / rounds,
    }


def serve(cases: dict[str, Callable[[int], Round]]) -> None:
    """Answer requests until standard input ends."""
    made: tuple[str, str] | None = None
    play: Round
    for line in sys.stdin:
        case, clients, rounds = line.split()
        if made != (case, clients):
            made, play = (case, clients), cases[case](int(clients))
        print(json.dumps(measure(play, int(rounds))), flush=True)


def main() -> None:
    """Serve, or play the cases named on the command line."""
    if len(sys.argv) == 1:
        serve({name: make for name, (make, _) in CASES.items()})
    for case in sys.argv[1:]:
        make, clients = CASES[case]
        play = make(clients)
        measure(play, 2)
        taken = measure(play, 20)
        print(f"{case}: {taken['wall'] * 1e3:.2f} ms wall, {taken['cpu'] * 1e3:.2f} ms CPU a round")


if __name__ == "__main__":
    main()
