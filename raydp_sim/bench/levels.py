"""The benchmark of several levels: CPU of clients and of all readers, beside a floor."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np

from raydp_sim.mechanisms.base import Floats
from raydp_sim.mechanisms.hadamard_cascade import HadamardCascade
from raydp_sim.mechanisms.wires.key_columns import pack_keys, unpack_keys
from raydp_sim.random import Stream

_REPEATS = 5
# CPU-seconds of the largest case: actors and checkpoints come on top, of 10 s in all.
_GOAL = 1.0
# How much more a report may cost at each level than in the smallest case.
_LINEAR = 2.0


@dataclass(frozen=True)
class Size:
    """What is measured: every number of reports with every number of levels."""

    categories: int = 1000
    reports: tuple[int, ...] = (100_000, 1_000_000)
    levels: tuple[int, ...] = (1, 2, 5, 10)


@dataclass(frozen=True)
class Row:
    """One case, in CPU-seconds of one process.

    Attributes:
        reports, levels: of the release.
        clients: randomizing, drawing keys and packing both.
        readers: unpacking keys, opening, counting and estimating, all levels together.
        floor: NumPy drawing as many uniforms, comparing, packing and counting as often.
        error: squared l2 error of the estimate of the least private level.
        exact: its expectation.
    """

    reports: int
    levels: int
    clients: float
    readers: float
    floor: float
    error: float
    exact: float

    @property
    def seconds(self) -> float:
        """CPU of the whole release."""
        return self.clients + self.readers

    @property
    def nanoseconds(self) -> float:
        """CPU per report and level."""
        return self.seconds / (self.reports * self.levels) * 1e9


def cascade(categories: int, levels: int) -> HadamardCascade:
    """Return a cascade from epsilon 3 down to 0.5.

    Example:
        >>> cascade(10, 3).levels
        (3.0, 1.75, 0.5)
    """
    if levels == 1:
        return HadamardCascade(epsilon_local=0.5, categories=categories)
    finer = tuple(float(level) for level in np.linspace(3.0, 0.5, levels)[:-1])
    return HadamardCascade(epsilon_local=0.5, finer=finer, categories=categories)


def rows(
    size: Size | None = None, progress: Callable[[str], None] = lambda line: None
) -> Iterator[Row]:
    """Measure every case; yield each row as it is there."""
    size = size or Size()
    for reports in size.reports:
        for levels in size.levels:
            progress(f"{reports:,} reports, {levels} levels")
            yield _row(cascade(size.categories, levels), reports)


def _row(mechanism: HadamardCascade, reports: int) -> Row:
    generator = Stream(5).at("inputs").generator()
    values = generator.integers(0, mechanism.categories, (reports, 1)).astype(np.float64)
    taken = [_release(mechanism, values, repeat) for repeat in range(_REPEATS)]
    floors = [_floor(mechanism, reports) for _ in range(_REPEATS)]
    clients = statistics.median(one[0] for one in taken)
    readers = statistics.median(one[1] for one in taken)
    truth = np.bincount(values[:, 0].astype(np.int64), minlength=mechanism.categories) / reports
    return Row(
        reports,
        len(mechanism.levels),
        clients,
        readers,
        statistics.median(floors),
        float(((taken[-1][2] - truth) ** 2).sum()),
        float(mechanism.view(0).variance(truth, reports).sum()),
    )


def _release(
    mechanism: HadamardCascade, values: Floats, repeat: int
) -> tuple[float, float, Floats]:
    """Return the CPU-seconds of clients and of readers, and the first level's estimate."""
    stream = Stream(7).at("bench", repeat).clients(np.arange(len(values)))
    start = time.process_time()
    payload, keys = mechanism.released(mechanism.admit(values, stream.ids).values, stream)
    packed = [pack_keys(keys[:, level], 1) for level in range(mechanism.public)]
    sent = time.process_time()
    estimates = []
    for level in range(len(mechanism.levels)):
        seen = payload
        if level < mechanism.public:
            seen = mechanism.opened(payload, unpack_keys(packed[level], 1, len(payload)), level)
        counts = mechanism.fold(mechanism.zero(), np.zeros(0), seen)
        estimates.append(mechanism.view(level).decode(counts))
    return sent - start, time.process_time() - sent, estimates[0]


def _floor(mechanism: HadamardCascade, reports: int) -> float:
    """Return CPU-seconds of NumPy for a bit per report and level, packed, and a count per level."""
    generator = np.random.Generator(np.random.SFC64(1))
    symbols = generator.integers(0, 2 * mechanism.columns, reports).astype(mechanism.wire.dtype)
    start = time.process_time()
    for _ in mechanism.levels:
        np.packbits(generator.random(reports) < 0.25)
        np.bincount(symbols, minlength=2 * mechanism.columns)
    return time.process_time() - start


def goals(found: list[Row]) -> dict[str, bool]:
    """Say which goals are reached: the largest case's time, and that cost is linear.

    Example:
        >>> goals([Row(10, 1, 1e-6, 0.0, 1.0, 0.0, 0.0), Row(20, 2, 5e-6, 0.0, 1.0, 0.0, 0.0)])
        {'CPU of the largest case below 1 s': True, 'linear in reports and levels': True}
    """
    largest = max(found, key=lambda row: row.reports * row.levels)
    smallest = min(found, key=lambda row: row.reports * row.levels)
    return {
        f"CPU of the largest case below {_GOAL:g} s": largest.seconds < _GOAL,
        "linear in reports and levels": largest.nanoseconds <= _LINEAR * smallest.nanoseconds,
    }


def document(found: list[Row], machine: dict[str, object]) -> dict[str, object]:
    """Return the whole benchmark as one document."""
    return {
        "benchmark": "levels",
        "machine": machine,
        "rows": [
            asdict(row) | {"to_floor": row.seconds / row.floor, "ns": row.nanoseconds}
            for row in found
        ],
        "goals": goals(found),
    }
