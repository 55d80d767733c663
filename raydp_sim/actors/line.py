"""The driver's end of lines to actors on its machine."""

import os
import select
import shutil
import socket
import tempfile
import weakref
from collections import deque
from collections.abc import Iterable
from typing import Any

import ray

from raydp_sim.actors import frames
from raydp_sim.actors.backend import Lost
from raydp_sim.actors.listening import MADE, OVER, asking
from raydp_sim.actors.on_ray import told
from raydp_sim.actors.packing import opened

_NAME = 16  # bytes by which an actor that connects is known


class Reply:
    """What an actor will answer to one call, or one of several results of it."""

    __slots__ = ("done", "error", "line", "value")

    def __init__(self, line: "Line") -> None:
        self.line, self.done = line, False
        self.value: Any = None
        self.error: Exception | None = None


class Line:
    """Calls of one actor, answered in the order in which they were made.

    Attributes:
        socket: once the actor has connected.
        waiting: the replies that it owes, call by call.
    """

    def __init__(self, actor: Any, name: bytes, dialled: Any) -> None:
        self.actor, self.name, self.dialled = actor, name, dialled
        self.socket: socket.socket | None = None
        self.waiting: deque[tuple[Reply, ...]] = deque()
        self.lost = False
        self._turn, self._listening = 0, False

    def call(self, method: str, parts: list[Any], returns: int) -> tuple[Reply, ...]:
        """Ask for something."""
        replies = tuple(Reply(self) for _ in range(returns))
        self.waiting.append(replies)
        self._listen()
        self._send(self._turn, asking(method, parts))
        return replies

    def interrupt(self) -> None:
        """Hear that a call of Ray's is made: whatever is asked from now on comes after it."""
        if self._listening:
            self._listening = False
            self._send(self._turn + 1, [])

    def receive(self) -> None:
        """Take in one message of the actor's."""
        assert self.socket is not None
        try:
            kind, parts = frames.receive(self.socket)
        except frames.Closed:
            self.end()
            return
        if kind == OVER:
            if int.from_bytes(parts[0], "little") == self._turn:
                self._listening = False
                if self.waiting:  # asked while it gave up waiting
                    self._listen()
            return
        replies, made = self.waiting.popleft(), opened(parts)
        values = made if len(replies) > 1 and kind == MADE else (made,) * len(replies)
        for reply, value in zip(replies, values, strict=True):
            reply.done = True
            if kind == MADE:
                reply.value = value
            else:
                reply.error = value

    def end(self) -> None:
        """Give up: the actor is gone, or is not to be heard any more."""
        self.lost = True
        if self.socket is not None:
            self.socket.close()
        for replies in self.waiting:
            for reply in replies:
                reply.error, reply.done = Lost("an actor's process has ended", "client"), True
        self.waiting.clear()

    def _listen(self) -> None:
        if not self._listening:
            self._turn, self._listening = self._turn + 1, True
            self.actor.listen.remote(self._turn)

    def _send(self, turn: int, parts: list[Any]) -> None:
        assert self.socket is not None
        try:
            frames.send(self.socket, frames.content(turn, parts), self._full)
        except frames.Closed:
            self.end()

    def _full(self) -> None:
        """Read what the actor says, who does not read because it is saying something."""
        assert self.socket is not None
        either = select.poll()
        either.register(self.socket, select.POLLIN | select.POLLOUT)
        if either.poll()[0][1] & ~select.POLLOUT:
            self.receive()
            if self.lost:
                raise frames.Closed


class Lines:
    """The lines of a driver."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="raydp-line-")  # nobody else may enter it
        self._path = os.path.join(self._folder, "line")
        self._open: list[socket.socket] = []
        weakref.finalize(self, _tidied, self._folder, self._open)
        self._lines: dict[Any, Line] = {}
        self._came: dict[bytes, socket.socket] = {}
        self._door = _door(self._path)
        if self._door is not None:
            self._open.append(self._door)

    def dial(self, actor: Any) -> None:
        """Have an actor connect."""
        if self._door is not None:
            name = os.urandom(_NAME)
            self._lines[actor] = Line(actor, name, actor.dial.remote(self._path, name))

    def of(self, actor: Any) -> Line | None:
        """Return the line to an actor, if there is one by now."""
        line = self._lines.get(actor)
        if line is None or line.lost:
            return None
        if line.socket is None:
            ready, _ = ray.wait([line.dialled], timeout=0, fetch_local=False)
            if not ready:
                return None
            try:
                connected = ray.get(line.dialled)
            except ray.exceptions.RayError:
                connected = False
            if not connected:
                del self._lines[actor]
                return None
            line.socket = self._accepted(line.name)
        return line

    def _accepted(self, name: bytes) -> socket.socket:
        assert self._door is not None
        while name not in self._came:
            came, _ = self._door.accept()
            self._open.append(came)
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                came.setsockopt(socket.SOL_SOCKET, option, frames.BUFFER)
            self._came[came.recv(_NAME, socket.MSG_WAITALL)] = came
        return self._came.pop(name)

    def interrupt(self, actor: Any) -> None:
        """Hear that a call of Ray's is made."""
        if actor in self._lines:
            self._lines[actor].interrupt()

    def end(self, actor: Any) -> None:
        """Give up the line to an actor."""
        line = self._lines.pop(actor, None)
        if line is not None:
            line.end()

    def wait(self, replies: Iterable[Reply], seconds: float) -> bool:
        """Wait for messages of those who owe these replies; return whether any came."""
        lines = {reply.line for reply in replies if not reply.done}
        known = {line.socket.fileno(): line for line in lines if line.socket is not None}
        poll = select.poll()
        for number in known:
            poll.register(number, select.POLLIN)
        ready = poll.poll(1000.0 * seconds)
        for number, _ in ready:
            known[number].receive()
        return bool(ready)


def _door(path: str) -> socket.socket | None:
    """Return where actors connect; None where there are no local sockets, or the path is long."""
    if not (hasattr(socket, "AF_UNIX") and hasattr(select, "poll")):
        return None
    door = socket.socket(socket.AF_UNIX)
    try:
        door.bind(path)
    except OSError:
        door.close()
        return None
    door.listen(1 << 10)
    return door


def _tidied(folder: str, sockets: list[socket.socket]) -> None:
    for each in sockets:
        each.close()
    shutil.rmtree(folder, ignore_errors=True)


def result(reply: Reply) -> Any:
    """Return what an actor has answered; its errors come back as what they were."""
    if reply.error is None:
        return reply.value
    raise reply.error if isinstance(reply.error, Lost) else told(reply.error)
