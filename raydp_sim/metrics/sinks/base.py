"""The protocol of sinks: places of other tools that a run's rows are also written to.

A sink works in the process that serves the run, at its own pace: it never holds the run up, and is
given every row once, in order; when a run is resumed it is opened anew and given all of them again.
One that fails is named in the run's log and left out from then on.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from raydp_sim.registry import Piece


class Began(NamedTuple):
    """A run, or one that is resumed.

    Attributes:
        folder: the run directory.
        about: its name, its scenario's, how many clients, rounds and repetitions it has.
    """

    folder: Path
    about: dict[str, Any]


class Outlet(ABC):
    """A sink that is open."""

    @abstractmethod
    def rows(self, stream: str, batch: pa.RecordBatch) -> None:
        """Take new rows of a stream, whose schema has its mark."""

    def close(self) -> None:  # noqa: B027  # most have nothing to close
        """End; nothing comes any more."""


class Sink(Piece, ABC):
    """A place that rows are also written to; the ledger is never handed to one."""

    @abstractmethod
    def opened(self, began: Began) -> Outlet:
        """Begin, once for each run and each time it is resumed."""


def numbers(batch: pa.RecordBatch) -> list[tuple[dict[str, int], dict[str, float]]]:
    """Return rows as their keys and their numbers; none of a stream of several rows per release.

    Example:
        >>> row = {"repetition": [0], "release": [3], "epsilon": [0.5], "bound": ["some"]}
        >>> numbers(pa.record_batch(row))
        [({'repetition': 0, 'release': 3}, {'epsilon': 0.5})]
        >>> numbers(pa.record_batch({**row, "coordinate": [0]}))
        []
    """
    if {"coordinate", "group"} & set(batch.schema.names):
        return []
    found = []
    for row in batch.to_pylist():
        key = {name: row.pop(name) for name in ("repetition", "release")}
        values = {
            name: float(value)
            for name, value in row.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        }
        found.append((key, values))
    return found
