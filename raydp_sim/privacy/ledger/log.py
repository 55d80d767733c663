"""An append-only file of checksummed records, each of them on disk when `append` returns.

After a line that names the format, every record is a mark, the length of its content, a CRC-32 of
that length and the content, and the content. One record at a time is under way, so a crash leaves
at most one that is not whole, and it is the last: it was never acknowledged, nobody reads it, and
it is cut off when the file is next written to. Anything else that does not match its checksum is
damage, and is an error.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from raydp_sim.durable import sync_folder, write_durable
from raydp_sim.errors import InputError

FORMAT = b"raydp-sim records 1\n"
MARK = b"\xf5rec"  # 0xf5 is in no text, so a record that lost its length is still found

_HEAD = struct.Struct("<4sII")  # mark, length, checksum
_LENGTH = struct.Struct("<I")


class Record(NamedTuple):
    """A whole record, and at which byte it begins and ends."""

    start: int
    end: int
    content: bytes


def packed(content: bytes) -> bytes:
    """Return a record as it stands in the file.

    Example:
        >>> len(packed(b"seven b")) - 7
        12
    """
    return _HEAD.pack(MARK, len(content), _checksum(content)) + content


def records(file: BinaryIO, name: str | Path, after: int = 0) -> Iterator[Record]:
    """Yield the records that are whole now; what is appended meanwhile is not looked at.

    Args:
        file: open for reading, which the caller may also do between two records.
        name: of the file, for messages.
        after: where a record ended; those before it are left out.

    Raises:
        InputError: names the file, if it is not a log or damaged before its last record.
    """
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    if file.read(len(FORMAT)) != FORMAT:
        raise InputError(f"{name}: the file is damaged: it does not begin as a log does")
    start = max(after, len(FORMAT))
    while start < size:
        file.seek(start)
        content = _content(file.read(min(_HEAD.size, size - start)), file, size - start)
        if content is None:
            file.seek(start)
            _refuse_damage(file.read(size - start), start, name)
            return
        end = start + _HEAD.size + len(content)
        yield Record(start, end, content)
        start = end


def _content(head: bytes, file: BinaryIO, room: int) -> bytes | None:
    """Return the content that belongs to a head; None if the record is not whole."""
    if len(head) < _HEAD.size:
        return None
    mark, length, checksum = _HEAD.unpack(head)
    if mark != MARK or length > room - _HEAD.size:
        return None
    content = file.read(length)
    return content if len(content) == length and _checksum(content) == checksum else None


def _refuse_damage(rest: bytes, start: int, name: str | Path) -> None:
    """Tell the record that a crash cut short, after which there is nothing, from damage."""
    at = rest.find(MARK, 1)
    while at >= 0:
        if len(rest) - at >= _HEAD.size:
            _, length, checksum = _HEAD.unpack_from(rest, at)
            begin = at + _HEAD.size
            if length <= len(rest) - begin and (
                _checksum(memoryview(rest)[begin : begin + length]) == checksum
            ):
                raise InputError(
                    f"{name}: the file is damaged: the record at byte {start} does not match its "
                    f"checksum, and the one at byte {start + at} does; restore the file"
                )
        at = rest.find(MARK, at + 1)


def _checksum(content: bytes | memoryview) -> int:
    return zlib.crc32(content, zlib.crc32(_LENGTH.pack(len(content))))


class Log:
    """Appends to a log; made with the first record. There is one writer, and any readers.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     log = Log(Path(folder) / "some.log")
        ...     log.append(b"paid")
        ...     with open(log.path, "rb") as file:
        ...         [record.content for record in records(file, log.path)]
        [b'paid']
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def open(self) -> None:
        """Make the log, or take it up: a record that a crash cut short goes, the rest is on disk.

        Whoever wrote the last record may have been killed before it was on disk; it can be read
        all the same and counts as written, so it has to be made durable first.
        """
        if not self.path.exists():
            write_durable(self.path, FORMAT)
        end = len(FORMAT)
        with open(self.path, "rb") as file:
            for record in records(file, self.path):
                end = record.end
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            if os.fstat(descriptor).st_size > end:
                os.ftruncate(descriptor, end)
            os.fsync(descriptor)
            sync_folder(self.path.parent)
        except BaseException:
            os.close(descriptor)
            raise
        self._file = descriptor

    def append(self, content: bytes) -> None:
        """Write one record; when this returns it is on disk."""
        if self._file is None:
            self.open()
        assert self._file is not None
        try:
            rest = memoryview(packed(content))
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except BaseException:
            self.close()  # part of a record may be there: the next one is not written behind it
            raise

    def close(self) -> None:
        """Let go of the file; `append` takes it up again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.close()
