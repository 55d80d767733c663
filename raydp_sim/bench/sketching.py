"""What sketched means cost (004, figure 2.5): encoding and decoding, scheme by scheme."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from raydp_sim.bench.contenders import FLOORS, Floor
from raydp_sim.bench.timed import Progress, Row, timed
from raydp_sim.mechanisms import make
from raydp_sim.mechanisms.base import Floats
from raydp_sim.mechanisms.sketching.similarity import Similarity
from raydp_sim.random import Stream
from raydp_sim.tasks.sketching.decoding import decoded

FLOOR = FLOORS.with_name("sketching_floors.py")
# CPU-seconds of a decoded release, once its normaliser is known.
GOAL = 0.06
# Encoding in O(d log d): from 1,024 to 16,384 numbers the logarithm adds 0.12 to the power.
LINEAR = 1.2
_REPEATS = 5


class Scheme(NamedTuple):
    """What clients send, and how alike the decoder takes them to be."""

    name: str
    kind: str
    similarity: Similarity = "one"


SCHEMES = (
    Scheme("Rand-k", "rand-k"),
    Scheme("Rand-k-Spatial(Avg)", "rand-k", "avg"),
    Scheme("Rand-Proj-Spatial(Avg)", "rand-proj", "avg"),
    Scheme("Wangni", "wangni"),
    Scheme("Induced", "induced"),
)


class Size(NamedTuple):
    """A release."""

    clients: int = 50
    kept: int = 20
    dimension: int = 1024

    def __str__(self) -> str:
        return f"n={self.clients}, k={self.kept}, d={self.dimension}"


def rows(
    floor: Floor,
    progress: Progress = lambda line: None,
    sizes: tuple[Size, ...] = (Size(10, 102), Size(50, 20)),
    wide: tuple[int, ...] = (1024, 4096, 16384),
) -> Iterator[Row]:
    """Measure a release of every scheme, then the encoder of longer and longer vectors.

    Args:
        floor: to compare with.
        progress: called with what is happening.
        sizes: of the releases.
        wide: dimensions of the longer vectors.
    """
    for size in sizes:
        for scheme in SCHEMES:
            progress(f"{scheme.name}, {size}")
            yield from _release(floor, scheme, size)
    for dimension in wide:
        progress(f"encoding vectors of {dimension:,} numbers")
        yield _row(floor, SCHEMES[2], Size(50, 20, dimension), "encode")


def _release(floor: Floor, scheme: Scheme, size: Size) -> Iterator[Row]:
    yield _row(floor, scheme, size, "encode")
    yield _row(floor, scheme, size, "decode")


def _row(floor: Floor, scheme: Scheme, size: Size, what: str) -> Row:
    mechanism = make(scheme.kind, dimension=size.dimension, kept=size.kept, radius=10.0)
    values = vectors(size)
    stream = Stream(3).at("bench").clients(np.arange(size.clients))
    rows = mechanism.messages(values, stream).payload[:, 0]
    calls = {
        "encode": lambda: mechanism.messages(values, stream),
        # The first call finds the normaliser, and is not counted.
        "decode": lambda: decoded(mechanism, rows, scheme.similarity, None, Stream(4)),
    }
    slow = scheme.kind == "rand-proj" and what == "decode"
    goal = GOAL if slow and size == Size() else None
    below = floor.play(f"{what}-{scheme.kind}-{size.kept}-{size.dimension}", size.clients, 20)
    return Row(str(size), f"{scheme.name}: {what}", timed(calls[what], _REPEATS), below.cpu, goal)


def vectors(size: Size) -> Floats:
    """Return what clients hold: a common part and one of their own, of length about 1."""
    draw = Stream(5).at("inputs").generator()
    shape = (size.clients, size.dimension)
    common = draw.standard_normal((1, size.dimension))
    return np.asarray((common + 0.3 * draw.standard_normal(shape)) / math.sqrt(size.dimension))


def claims(found: list[Row]) -> dict[str, bool]:
    """Judge what the text says of its figure 2.5, and that encoding takes O(d log d).

    Example:
        >>> made = [Row("n=1", f"{s.name}: {w}", 1.0 if s.kind == "rand-proj" else 0.5, 0.1)
        ...         for s in SCHEMES for w in ("encode", "decode")]
        >>> list(claims(made).values())
        [True, False]
    """
    by_case: dict[str, dict[str, float]] = {}
    for row in found:
        if any(row.name == f"{s.name}: {w}" for s in SCHEMES for w in ("encode", "decode")):
            by_case.setdefault(row.case, {})[row.name] = row.seconds
    whole = [case for case in by_case.values() if len(case) == 2 * len(SCHEMES)]
    ours, others = SCHEMES[2].name, [s.name for s in SCHEMES if s.kind != "rand-proj"]
    judged = {
        "004: Rand-Proj-Spatial(Avg) is the slowest to decode": all(
            case[f"{ours}: decode"] > max(case[f"{other}: decode"] for other in others)
            for case in whole
        ),
        "004: it is faster to encode than Wangni": all(
            case[f"{ours}: encode"] < case["Wangni: encode"] for case in whole
        ),
    }
    power = growth(found)
    if power is not None:
        judged[f"encoding grows like d^{power:.2f}, at most d^{LINEAR:g}"] = power <= LINEAR
    return judged


def growth(found: list[Row]) -> float | None:
    """Return p of d^p that fits the encoder from the shortest to the longest vectors."""
    encoded = {
        int(row.case.rpartition("=")[2]): row.seconds
        for row in found
        if row.name == f"{SCHEMES[2].name}: encode" and row.case.startswith("n=50,")
    }
    if len(encoded) < 2:
        return None
    least, most = min(encoded), max(encoded)
    return math.log(encoded[most] / encoded[least]) / math.log(most / least)
