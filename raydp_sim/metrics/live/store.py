"""What a served run has shown, by stream and offset: the last rows here, older in Parquet."""

import bisect
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from raydp_sim.metrics import columns, streams
from raydp_sim.metrics.live import wire
from raydp_sim.metrics.live.wire import Message
from raydp_sim.metrics.parts import Part

_MOST_BYTES = 8 << 20  # of one stream that are kept here
_MOST_ROWS = 65_536  # that one answer has: a batch that a follower can hold


class Interrupted(Exception):
    """The run ended before its time; it can be resumed."""


class _Kept:
    """Some rows as they came through the pipe, made columns of when somebody asks for them."""

    __slots__ = ("_batch", "_payload", "begin", "end")

    def __init__(self, begin: int, rows: int, payload: bytes | memoryview) -> None:
        self.begin, self.end = begin, begin + rows
        self._payload, self._batch = payload, None

    def __len__(self) -> int:
        return len(self._payload)

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        if self._batch is None:
            self._batch = pa.ipc.read_record_batch(pa.py_buffer(self._payload), schema)
        return self._batch


class Stream:
    """One stream: its schema, how many rows it has, and where each of them is.

    Args:
        schema: with the stream's mark.
        lock: that whoever waits for rows holds.
    """

    def __init__(self, schema: pa.Schema, lock: Any = None) -> None:
        self.schema, self.total = schema, 0
        self.visibility = streams.visibility(schema)
        whose: bytes | None = (schema.metadata or {}).get(b"reader")
        self.reader = None if whose is None else whose.decode()
        self.parts: list[Part] = []
        # Of its own, so that rows of one stream do not wake those who follow another.
        self.changed = threading.Condition(lock)
        self._recent: deque[_Kept] = deque()
        self._bytes = 0

    def add(self, offset: int, rows: int, payload: bytes | memoryview) -> None:
        """Keep new rows here, and forget old ones if there are too many."""
        self._recent.append(_Kept(offset, rows, payload))
        self._bytes += len(payload)
        self.total = max(self.total, offset + rows)
        while self._bytes > _MOST_BYTES and len(self._recent) > 1:
            self._bytes -= len(self._recent.popleft())

    def add_part(self, part: Part) -> None:
        """Know rows that are on disk."""
        bisect.insort(self.parts, part)
        self.total = max(self.total, part.offset + part.rows)

    def has(self, offset: int) -> bool:
        """Say whether the row at an offset can be had."""
        if offset >= self.total:
            return False  # as for everyone who has kept up
        inside = any(kept.begin <= offset < kept.end for kept in reversed(self._recent))
        return inside or self.part_with(offset) is not None

    def recent(self, offset: int) -> list[pa.RecordBatch]:
        """Return the rows from an offset on that are kept here; none if it is older."""
        wanted: list[_Kept] = []
        for kept in reversed(self._recent):
            if kept.end <= offset:
                break
            if wanted and kept.end != wanted[-1].begin:
                wanted.clear()  # rows in between never came through the pipe
            wanted.append(kept)
        if not wanted or wanted[-1].begin > offset:
            return []
        found, rows = [], 0
        for kept in reversed(wanted):
            found.append(kept.batch(self.schema).slice(max(0, offset - kept.begin)))
            rows += found[-1].num_rows
            if rows >= _MOST_ROWS:
                break
        return found

    def part_with(self, offset: int) -> Part | None:
        """Return the part that has the row at an offset, if it is on disk."""
        place = bisect.bisect_right(self.parts, offset, key=lambda part: part.offset) - 1
        if place < 0 or offset >= self.parts[place].offset + self.parts[place].rows:
            return None
        return self.parts[place]


class Store:
    """The streams of one run; messages come in, followers wait for rows."""

    def __init__(self, about: dict[str, Any]) -> None:
        self.about = about
        self.streams: dict[str, Stream] = {}
        self.ended = self.interrupted = False
        self.followers = 0
        self.answering = 0  # of those who look at the page, answers that are being made
        self.moved = time.monotonic()  # when a follower last got rows
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)  # streams come, or the run ends

    def take(self, message: Message) -> None:
        """Take in one message of the run."""
        head = message.head
        with self.lock:
            if message.kind == wire.SCHEMA:
                schema = pa.ipc.read_schema(pa.py_buffer(message.payload))
                self.streams.setdefault(head["stream"], Stream(schema, self.lock))
                self.changed.notify_all()
            elif message.kind == wire.ROWS:
                stream = self.streams[head["stream"]]
                stream.add(head["offset"], head["rows"], message.payload)
                stream.changed.notify_all()
            elif message.kind == wire.PART:
                part = Part(head["offset"], head["rows"], Path(head["path"]))
                stream = self.streams[head["stream"]]
                stream.add_part(part)
                stream.changed.notify_all()
            else:
                self._end()

    def lost(self) -> None:
        """Note that no more messages come."""
        with self.lock:
            self.interrupted = not self.ended
            self._end()

    def _end(self) -> None:
        self.ended = True
        for stream in self.streams.values():
            stream.changed.notify_all()
        self.changed.notify_all()

    def wait_for(self, name: str, seconds: float) -> Stream | None:
        """Return a stream, once it has begun; None if it has not in this time or will not."""
        with self.changed:
            self.changed.wait_for(lambda: name in self.streams or self.ended, seconds)
            return self.streams.get(name)

    def since(self, stream: Stream, offset: int, seconds: float) -> list[pa.RecordBatch] | None:
        """Return rows from an offset on, of which some may be left for the next time.

        Args:
            stream: which one.
            offset: the first row wanted; the run may not have come so far.
            seconds: to wait for it; then nothing is returned.

        Returns:
            Batches in order, none if there was nothing to wait for; None if there will be no more.

        Raises:
            Interrupted: there will be no more, and the run is not over.
        """
        with self.lock:
            stream.changed.wait_for(lambda: stream.has(offset) or self.ended, seconds)
            found, part = stream.recent(offset), stream.part_with(offset)
            if not found and part is None:
                if self.interrupted:
                    raise Interrupted
                return None if self.ended else []
        if found:
            return found
        assert part is not None
        return list(_of_part(part, stream.schema, offset))


def _of_part(part: Part, schema: pa.Schema, offset: int) -> Iterator[pa.RecordBatch]:
    skipped = offset - part.offset
    with pq.ParquetFile(part.path) as file:
        for batch in file.iter_batches(batch_size=_MOST_ROWS):
            if skipped >= batch.num_rows:
                skipped -= batch.num_rows
                continue
            rows = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
            yield rows.slice(skipped)
            skipped = 0


def empty(name: str) -> Stream | None:
    """Return a stream that the run never wrote to, if it is one that ships."""
    return Stream(columns.schema(name)) if name in columns.STREAMS else None
