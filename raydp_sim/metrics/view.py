"""What a person watches of a run: its last values and how they went, from rows as they come."""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from raydp_sim.metrics import parts

STREAMS = ("releases", "errors", "learning", "withheld")
"""The streams that are watched, where there are any; the first is of every run."""

_SHOWN = {
    "releases": ("epsilon", "epsilon_median", "batch_size", "late", "missing", "wire_bytes"),
    "withheld": ("reports",),
}
_NEVER = {"repetition", "release", "round", "step_size"}
_KEPT = 4096  # values of a line; a spark line has room for some fifty
_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int) -> str:
    """Return numbers as a line of bars, means of neighbours if there are too many of them.

    Example:
        >>> sparkline([0.0, 1.0, 2.0, 3.0], 8), sparkline([5.0] * 100, 4)
        ('▁▃▆█', '▁▁▁▁')
        >>> sparkline([1.0, float("nan"), float("inf"), 2.0], 8)
        '▁  █'
    """
    if not values or width < 1:
        return ""
    count = min(width, len(values))
    edges = [len(values) * place // count for place in range(count + 1)]
    means = [sum(values[first:last]) / (last - first) for first, last in pairwise(edges)]
    finite = [mean for mean in means if math.isfinite(mean)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(
        _BARS[round((mean - low) * scale)] if math.isfinite(mean) else " " for mean in means
    )


@dataclass
class View:
    """The state of what is watched; rows go in, lines of a table come out.

    Attributes:
        done: releases made or withheld, over all repetitions.
        lines: the values of each measure, by stream and column.
    """

    done: int = 0
    lines: dict[tuple[str, str], deque[float]] = field(default_factory=dict)

    def take(self, stream: str, rows: pa.RecordBatch | pa.Table) -> None:
        """Take in new rows of a stream."""
        if stream in ("releases", "withheld"):
            self.done += rows.num_rows
        names = _SHOWN.get(stream) or [n for n in rows.schema.names if n not in _NEVER]
        for name in names:
            if pa.types.is_floating(rows.schema.field(name).type) or name in _SHOWN.get(stream, ()):
                line = self.lines.setdefault((stream, name), deque(maxlen=_KEPT))
                line.extend(
                    math.nan if value is None else float(value)
                    for value in rows.column(name).to_pylist()
                )

    def table(self, width: int) -> list[tuple[str, str, str]]:
        """Return a line per measure: its name, its last value, and how it went.

        Args:
            width: of the spark lines.
        """
        order = {name: place for place, name in enumerate(STREAMS)}
        found = sorted(self.lines.items(), key=lambda item: order.get(item[0][0], len(order)))
        return [
            (_named(*place), f"{line[-1]:,.5g}", sparkline(list(line), width))
            for place, line in found
            if line
        ]


def _named(stream: str, column: str) -> str:
    name = column.replace("_", " ")
    return f"withheld {name}" if stream == "withheld" else name


class Tail:
    """The parts of a run's streams that have come since one last looked."""

    def __init__(self, folder: Path, streams: Iterable[str] = STREAMS) -> None:
        self.folder, self.streams = folder, tuple(streams)
        self._seen: set[Path] = set()

    def new(self) -> list[tuple[str, Any]]:
        """Return streams with tables of rows that are new, in the order of writing."""
        found = []
        for stream in self.streams:
            paths = sorted((self.folder / stream).glob("part-*.parquet"))
            for path in paths:
                if path not in self._seen:
                    self._seen.add(path)
                    found.append((stream, parts.open_part(path)))
        return found
