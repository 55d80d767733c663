"""The run's side of live streams: hands rows on, and never waits for whoever follows."""

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from raydp_sim.errors import InputError
from raydp_sim.metrics import parts, streams
from raydp_sim.metrics.live import wire
from raydp_sim.metrics.live.access import Grant
from raydp_sim.metrics.live.wire import Message
from raydp_sim.metrics.parts import Part
from raydp_sim.metrics.writer import Rows, Writer

_MOST_BYTES = 32 << 20  # that wait for the pipe; the oldest rows beyond it are read from Parquet
_PAUSE = 0.02  # seconds between two messages: rows of a quick run travel together
_GRACE = 10.0  # seconds that followers have to catch up when the run is over


@dataclass(frozen=True)
class Serving:
    """Where a run is served, to whom, and where else its rows go.

    Attributes:
        host: to listen at; None: nobody follows, and there are only sinks.
        port: to listen at; 0 takes a free one.
        grants: what the tokens open.
        certificate: PEM file of the server's certificate; None: no TLS.
        key: PEM file of its private key.
        about: what everyone with a token is told of the run.
        page: host and port of the web page; None: there is none.
        sinks: as a scenario file has them.
    """

    host: str | None = "127.0.0.1"
    port: int = 0
    grants: list[Grant] = field(default_factory=list)
    certificate: str | None = None
    key: str | None = None
    about: dict[str, Any] = field(default_factory=dict)
    sinks: list[dict[str, Any]] = field(default_factory=list)
    page: tuple[str, int] | None = None


class Feed:
    """A process that serves the streams of a writer, and the thread that feeds it."""

    def __init__(self, writer: Writer, serving: Serving) -> None:
        self.writer = writer
        command = [sys.executable, "-m", "raydp_sim.metrics.live.process"]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # gRPC's own log
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._pipe: IO[bytes] = self.process.stdin
        self._ready = self.process.stdout
        self._queue: deque[Rows | Message] = deque()
        self._bytes = 0
        self._known: set[str] = set()
        self._wake, self._over = threading.Event(), False
        self.page: str | None = None
        self.url = self._start(serving)
        self._thread = threading.Thread(target=self._run, daemon=True)
        writer.on_rows, writer.on_part, writer.on_change = self._rows, self._part, self._wake.set
        self._thread.start()

    def _start(self, serving: Serving) -> str:
        document = {**asdict(serving), "folder": str(self.writer.folder)}
        try:
            self._pipe.write(json.dumps(document).encode() + b"\n")
            self._pipe.flush()
            answer = json.loads(self._ready.readline() or "{}")
        except OSError:
            answer = {}
        finally:
            self._ready.close()
        if "port" not in answer:
            self.process.kill()
            self._let_go()
            if "page" in answer:
                raise InputError(answer["why"])
            why = answer.get("why", "the process that serves it ended")
            raise InputError(f"metrics.serve is '{serving.host}:{serving.port}'; {why}")
        self.page = answer.get("page")
        secure = "+tls" if serving.certificate else ""
        return f"grpc{secure}://{serving.host}:{answer['port']}"

    # Called by the writer, which holds its lock.

    def _rows(self, rows: Rows) -> None:
        if rows.stream not in self._known:
            self._known.add(rows.stream)
            self._queue.append(wire.packed_schema(rows.stream, rows.batch.schema))
        self._queue.append(rows)
        self._bytes += rows.batch.nbytes
        while self._bytes > _MOST_BYTES:
            self._drop_oldest()

    def _part(self, stream: str, part: Part) -> None:
        head = {"stream": stream, "offset": part.offset, "rows": part.rows, "path": str(part.path)}
        self._queue.append(Message(wire.PART, head))

    def _drop_oldest(self) -> None:
        for place, waiting in enumerate(self._queue):
            if isinstance(waiting, Rows):
                self._bytes -= waiting.batch.nbytes
                del self._queue[place]
                return

    # In a thread of its own.

    def _run(self) -> None:
        try:
            while not self._over:
                self._wake.wait()
                self._wake.clear()
                self._send()
                # A row that comes alone has gone at once; more of them go together.
                time.sleep(_PAUSE)
            self._send()
        except OSError:
            # The server is gone; the run needs nobody to look.
            self.writer.on_rows = self.writer.on_part = self.writer.on_change = None

    def _send(self) -> None:
        self.writer.settle()
        while (message := self._next()) is not None:
            for piece in wire.pack(message):
                self._pipe.write(piece)
        self._pipe.flush()

    def _next(self) -> Message | None:
        with self.writer.lock:
            if not self._queue:
                return None
            waiting = self._queue.popleft()
            if isinstance(waiting, Rows):
                self._bytes -= waiting.batch.nbytes
        return wire.packed_rows(*waiting) if isinstance(waiting, Rows) else waiting

    def close(self, over: bool) -> None:
        """Stop serving.

        Args:
            over: whether the run is; if not, followers are told that it was interrupted.
        """
        if self._over:
            return
        if over:
            with self.writer.lock:
                self.writer.settle()
                self._queue.append(Message(wire.END, {}))
        self._over = True
        self._wake.set()
        # Of a server that does not read any more, the pipe is full and the thread stuck.
        self._thread.join(_GRACE)
        if self._thread.is_alive():
            self.process.kill()
        self._let_go()

    def _let_go(self) -> None:
        # What a dead server was still to be told is of no use to anyone.
        with contextlib.suppress(OSError):
            self._pipe.close()
        try:
            self.process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def known(folder: Path) -> list[Message]:
    """Return messages for what a run has on disk already, and for streams that every run has."""
    found = [wire.packed_schema(name, schema) for name, schema in streams.SCHEMAS.items()]
    for stream in parts.names(folder):
        listed = parts.listed(folder, stream)
        if stream not in streams.SCHEMAS:
            found.append(wire.packed_schema(stream, parts.open_part(listed[0].path).schema))
        for part in listed:
            head = {"stream": stream, "offset": part.offset, "rows": part.rows}
            found.append(Message(wire.PART, {**head, "path": str(part.path)}))
    return found
