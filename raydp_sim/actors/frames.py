"""Messages on a local socket: a number, and parts of any length."""

import socket
import struct
from collections.abc import Callable
from typing import Any

_HEAD = struct.Struct("<iI")  # the number; how many parts follow
_MOST_PARTS = 1 << 20
# What either side may send before the other reads.
BUFFER = 1 << 20


class Closed(Exception):
    """Nobody is at the other end any more."""


def content(number: int, parts: list[Any]) -> list[memoryview]:
    """Return what is to be sent, in order; short parts are put together."""
    sizes = [memoryview(part).nbytes for part in parts]
    head = _HEAD.pack(number, len(parts)) + struct.pack(f"<{len(parts)}Q", *sizes)
    if sum(sizes) <= 1 << 16:
        return [memoryview(b"".join([head, *parts]))]
    return [memoryview(head), *(memoryview(part).cast("B") for part in parts if len(part))]


def send(line: socket.socket, views: list[memoryview], full: Callable[[], None]) -> None:
    """Send all of it.

    Args:
        line: that is connected.
        views: from `content`.
        full: called while the other side does not read; it may read what that one sends.

    Raises:
        Closed: the other side is gone.
    """
    try:
        for view in views:
            rest = view
            while rest:
                try:
                    rest = rest[line.send(rest, socket.MSG_DONTWAIT) :]
                except BlockingIOError:
                    full()
    except OSError as error:
        raise Closed from error


def receive(line: socket.socket) -> tuple[int, list[bytearray]]:
    """Wait for a message.

    Raises:
        Closed: the other side is gone.
    """
    number, count = _HEAD.unpack(_exactly(line, _HEAD.size))
    if count > _MOST_PARTS:
        raise Closed
    sizes = struct.unpack(f"<{count}Q", _exactly(line, 8 * count))
    return number, [_exactly(line, size) for size in sizes]


def _exactly(line: socket.socket, size: int) -> bytearray:
    made = bytearray(size)
    rest = memoryview(made)
    while rest:
        try:
            got = line.recv_into(rest)
        except OSError as error:
            raise Closed from error
        if not got:
            raise Closed
        rest = rest[got:]
    return made
