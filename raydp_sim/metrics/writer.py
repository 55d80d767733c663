"""Rows on their way to disk: kept for a moment, then written as whole Parquet parts."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from raydp_sim.errors import RunError
from raydp_sim.metrics import charged, columns, parts, streams
from raydp_sim.metrics.parts import Part

# A part is written after so many rows or bytes of a stream, or when the one before it is so old:
# a second at first, a sixtieth of the run's age later, at most half a minute. So an hour has some
# three hundred parts, not 3,600, and nobody waits for rows long.
_ROWS, _BYTES = 131_072, 8 << 20
_SECONDS, _SHARE, _MOST_SECONDS = 1.0, 1.0 / 60.0, 30.0
# With more than this waiting, a checkpoint makes parts of it: it would be written every time.
_KEPT_BYTES = 1 << 20


class Rows(NamedTuple):
    """Some rows of a stream, and how many of it come before them."""

    stream: str
    offset: int
    batch: pa.RecordBatch


class _Open:
    """What one stream has that no part has yet."""

    def __init__(self, schema: pa.Schema, offset: int) -> None:
        self.schema, self.offset = schema, offset
        self.rows: list[dict[str, Any]] = []  # not yet columns
        self.batches: list[pa.RecordBatch] = []
        self.count = self.size = 0  # of the batches

    def add(self, batch: pa.RecordBatch) -> int:
        """Append a batch; return its offset."""
        place = self.offset + self.count
        self.batches.append(batch)
        self.count += batch.num_rows
        self.size += batch.nbytes
        return place

    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches, self.schema)

    def written(self) -> None:
        self.offset += self.count
        self.batches, self.count, self.size = [], 0, 0


class Writer:
    """The streams of a run in one folder.

    Whoever follows them live is told that something has changed, and then, of rows and of parts in
    the order in which they are made. It is told by whichever thread makes them, and must not wait.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.on_rows: Callable[[Rows], None] | None = None
        self.on_part: Callable[[str, Part], None] | None = None
        self.on_change: Callable[[], None] | None = None
        self._given: dict[str, pa.Schema] = {}  # as tasks hand them in
        self._open: dict[str, _Open] = {}
        self._began = self._flushed = time.monotonic()
        # Rows come from the actor's own thread; one that shows them live asks for columns.
        self.lock = threading.RLock()

    def row(self, stream: str, row: dict[str, Any]) -> None:
        """Keep a row of one of the streams that every run has."""
        with self.lock:
            self._stream(stream, streams.SCHEMAS[stream]).rows.append(row)
        self._changed()

    def batch(self, stream: str, rows: pa.RecordBatch) -> None:
        """Keep rows of a task's own stream.

        Raises:
            ValueError: when they are not marked, or the stream is not the task's.
            RunError: when its columns change.
        """
        streams.visibility(rows.schema)
        if stream in streams.SCHEMAS or stream in charged.STREAMS:
            raise ValueError(f"the stream {stream!r} is not a task's to write")
        known = self._given.setdefault(stream, rows.schema)
        if not rows.schema.equals(known, check_metadata=True):
            change = sorted(set(rows.schema.names) ^ set(known.names)) or "their types"
            raise RunError(
                f"the columns of stream {stream!r} are not what they were before: {change}; "
                "a task, and a callback of it, must give the same ones every time",
                resumable=False,
            )
        with self.lock:
            if stream not in self._open:
                self._stream(stream, columns.described(stream, rows.schema))
            schema = self._open[stream].schema
            self._add(stream, pa.RecordBatch.from_arrays(rows.columns, schema=schema))
        self._changed()

    def batch_once(self, stream: str, rows: pa.RecordBatch) -> None:
        """Write rows as a part of their own, unless an interrupted run has already done so."""
        self.flush()
        if not (self.folder / stream / f"{parts.stem(rows)}.parquet").exists():
            self.batch(stream, rows)
            self.flush()

    def settle(self) -> None:
        """Make columns of all rows, and show them to whoever follows."""
        with self.lock:
            for stream, found in self._open.items():
                if found.rows:
                    batch = pa.RecordBatch.from_pylist(found.rows, schema=found.schema)
                    found.rows = []
                    self._add(stream, batch)

    def flush_if_late(self) -> None:
        """Write parts if the last ones are old, or of streams of which much is waiting."""
        now = time.monotonic()
        pause = min(max(_SECONDS, (now - self._began) * _SHARE), _MOST_SECONDS)
        with self.lock:
            if now - self._flushed > pause:
                self.flush()
                return
            for stream, found in self._open.items():
                if found.size >= _BYTES or found.count + len(found.rows) >= _ROWS:
                    self._roll(stream)

    def keep(self) -> None:
        """Make all rows durable, as a checkpoint needs, without making small parts of them."""
        with self.lock:
            self.settle()
            if sum(found.size for found in self._open.values()) > _KEPT_BYTES:
                self.flush()
                return
            waiting = {name: found.table() for name, found in self._open.items() if found.count}
            parts.keep(self.folder, waiting)

    def flush(self) -> None:
        """Write what is waiting as one Parquet part per stream."""
        with self.lock:
            for stream in self._open:
                self._roll(stream)
            parts.forget(self.folder)
            self._flushed = time.monotonic()

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def _stream(self, stream: str, schema: pa.Schema) -> _Open:
        if stream not in self._open:
            # A resumed run finds rows; a new one has no folder yet.
            before = sum(part.rows for part in parts.listed(self.folder, stream))
            self._open[stream] = _Open(schema, before)
        return self._open[stream]

    def _add(self, stream: str, batch: pa.RecordBatch) -> None:
        offset = self._open[stream].add(batch)
        if self.on_rows is not None:
            self.on_rows(Rows(stream, offset, batch))

    def _roll(self, stream: str) -> None:
        self.settle()
        found = self._open[stream]
        if not found.count:
            return
        made = parts.write(self.folder, stream, found.table(), found.offset)
        found.written()
        if self.on_part is not None:
            self.on_part(stream, made)
