"""Rows on their way to disk: kept for a moment, then written as whole Parquet parts."""

import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from raydp_sim.metrics import streams

_FLUSH_SECONDS = 1.0
_FLUSH_ROWS = 4096


class Writer:
    """The streams of a run in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rows: dict[str, list[dict[str, Any]]] = {name: [] for name in streams.SCHEMAS}
        self._batches: dict[str, list[pa.RecordBatch]] = {}
        self._schemas: dict[str, pa.Schema] = {}
        self._flushed = time.monotonic()

    def row(self, stream: str, row: dict[str, Any]) -> None:
        """Keep a row of one of the streams that every run has."""
        self._rows[stream].append(row)

    def batch(self, stream: str, rows: pa.RecordBatch) -> None:
        """Keep rows of a task's own stream.

        Raises:
            ValueError: when they are not marked, the stream is not the task's, or its columns
                change.
        """
        streams.visibility(rows.schema)
        if stream in streams.SCHEMAS:
            raise ValueError(f"the stream {stream!r} is not a task's to write")
        known = self._schemas.setdefault(stream, rows.schema)
        if not rows.schema.equals(known, check_metadata=True):
            raise ValueError(f"the columns of stream {stream!r} are not what they were before")
        self._batches.setdefault(stream, []).append(rows)

    def flush_if_late(self) -> None:
        """Write what is waiting if that was long ago, or if it is much."""
        late = time.monotonic() - self._flushed > _FLUSH_SECONDS
        if late or len(self._rows["timing"]) >= _FLUSH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting as one Parquet part per stream."""
        for name, rows in self._rows.items():
            if rows:
                streams.write_part(self.folder, name, streams.table(name, rows))
        for name, batches in self._batches.items():
            streams.write_part(self.folder, name, pa.Table.from_batches(batches))
        self._rows = {name: [] for name in streams.SCHEMAS}
        self._batches = {}
        self._flushed = time.monotonic()
