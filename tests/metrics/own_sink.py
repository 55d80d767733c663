"""Sinks of a user's own: one that writes lines, one that fails."""

from typing import ClassVar

import pyarrow as pa

from raydp_sim.metrics.sinks.base import Began, Outlet, Sink


class Lines(Sink):
    """Writes a line per batch."""

    kind: ClassVar[str] = "lines"
    file: str = "lines.txt"

    def opened(self, began: Began) -> Outlet:
        return _Lines(began.folder / self.file)


class _Lines(Outlet):
    def __init__(self, path) -> None:
        self.file = open(path, "w")  # closed below

    def rows(self, stream: str, batch: pa.RecordBatch) -> None:
        for release in batch["release"].to_pylist():
            self.file.write(f"{stream} {release}\n")

    def close(self) -> None:
        self.file.close()


class Failing(Sink):
    """Fails at the second batch."""

    kind: ClassVar[str] = "failing"

    def opened(self, began: Began) -> Outlet:
        return _Failing()


class _Failing(Outlet):
    seen = 0

    def rows(self, stream: str, batch: pa.RecordBatch) -> None:
        self.seen += 1
        if self.seen > 1:
            raise RuntimeError("no room")
