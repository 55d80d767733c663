"""TensorBoard's event files, without TensorBoard: numbers of every release as scalars.

A file is a row of records: length, its checksum, the event, its checksum. Checksums are CRC-32C,
rotated and shifted ("masked"). An event is a Protocol Buffers message `tensorboard.Event`: wall
time (1), step (2), version of the file (3), summary (5) or start of a session (7).
"""

import os
import socket
import struct
import time
from pathlib import Path
from typing import BinaryIO, ClassVar

import pyarrow as pa

from raydp_sim.metrics.sinks.base import Began, Outlet, Sink, numbers

_MASK = 0xFFFFFFFF


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def crc32c(content: bytes) -> int:
    """Return the Castagnoli checksum.

    Example:
        >>> hex(crc32c(b"123456789"))
        '0xe3069283'
    """
    found = _MASK
    for byte in content:
        found = found >> 8 ^ _TABLE[(found ^ byte) & 0xFF]
    return found ^ _MASK


def record(content: bytes) -> bytes:
    """Return an event as it stands in the file."""
    length = struct.pack("<Q", len(content))
    return length + _masked(length) + content + _masked(content)


def _masked(content: bytes) -> bytes:
    checksum = crc32c(content)
    return struct.pack("<I", ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & _MASK)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def event(step: int, content: bytes) -> bytes:
    """Return an event of now."""
    return b"\x09" + struct.pack("<d", time.time()) + b"\x10" + _varint(step) + content


def scalars(values: dict[str, float]) -> bytes:
    """Return the summary of an event: numbers by their tags."""
    each = (
        _field(1, _field(1, tag.encode()) + b"\x15" + struct.pack("<f", value))
        for tag, value in values.items()
    )
    return _field(5, b"".join(each))


class TensorBoard(Sink):
    """Writes event files of TensorBoard into the run directory.

    Fields:
        folder: of the files, below the run directory; `tensorboard --logdir` reads it.
    """

    kind: ClassVar[str] = "tensorboard"
    folder: str = "tensorboard"

    def opened(self, began: Began) -> Outlet:
        """Begin a file for each repetition, with the first row of it."""
        return _Files(began.folder / self.folder, began.about.get("repeat", 1) > 1)


class _Files(Outlet):
    def __init__(self, folder: Path, several: bool) -> None:
        self.folder, self.several = folder, several
        self.files: dict[int, BinaryIO] = {}

    def rows(self, stream: str, batch: pa.RecordBatch) -> None:
        """Write the numbers of rows as scalars, one event each."""
        touched = {}
        for key, values in numbers(batch):
            file = self._file(key["repetition"], key["release"])
            tagged = {f"{stream}/{name}": value for name, value in values.items()}
            file.write(record(event(key["release"], scalars(tagged))))
            touched[key["repetition"]] = file
        for file in touched.values():
            file.flush()

    def close(self) -> None:
        """Close the files."""
        for file in self.files.values():
            file.close()

    def _file(self, repetition: int, release: int) -> BinaryIO:
        if repetition not in self.files:
            folder = self.folder / f"repetition-{repetition}" if self.several else self.folder
            folder.mkdir(parents=True, exist_ok=True)
            # A resumed run begins a file of its own, sorted after those before it.
            name = f"events.out.tfevents.{time.time_ns():020d}.{socket.gethostname()}.{os.getpid()}"
            file = open(folder / name, "wb")
            file.write(record(event(0, _field(3, b"brain.Event:2"))))
            # A start tells readers to drop what they have from this step on: it comes again.
            file.write(record(event(release, _field(7, b"\x08\x01"))))
            self.files[repetition] = file
        return self.files[repetition]
