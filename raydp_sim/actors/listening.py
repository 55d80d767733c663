"""The actor's end of a line: calls come over a local socket while a call of Ray's listens."""

import gc
import pickle
import select
import socket
from typing import Any

from raydp_sim.actors import frames
from raydp_sim.actors.packing import opened, packed
from raydp_sim.errors import RunError

# After so long without a call it lets Ray's own calls through, which wait meanwhile.
_IDLE_SECONDS = 0.2
OVER, FAILED, MADE = -1, 0, 1


class Listens:
    """An actor that can be called over a line, by whoever is on the same machine.

    Ray's own calls take a millisecond of CPU each, as long as it takes to train a few clients.
    """

    _line: socket.socket | None = None
    _ahead: tuple[int, list[Any]] | None = None

    def dial(self, path: str, name: bytes) -> bool:
        """Connect; return whether that could be done."""
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(path)
        except OSError:
            line.close()  # the driver is elsewhere
            return False
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            line.setsockopt(socket.SOL_SOCKET, option, frames.BUFFER)
        line.sendall(name)
        self._line = line
        # What was imported stays: nobody need look through it for what can be freed.
        gc.freeze()
        return True

    def listen(self, turn: int) -> None:
        """Do what is asked over the line until nothing is, or until it is somebody else's turn.

        Calls of Ray's that were made before a turn are done before it: where one was made
        meanwhile, what is asked after it comes with the number of a later turn, and has to wait.
        """
        line = self._line
        if line is None:
            return
        there = select.poll()
        there.register(line, select.POLLIN)
        try:
            while True:
                if self._ahead is None:
                    if not there.poll(1000.0 * _IDLE_SECONDS):
                        self._say(line, OVER, [turn.to_bytes(8, "little")])
                        return
                    self._ahead = frames.receive(line)
                if self._ahead[0] > turn:
                    return
                (_, asked), self._ahead = self._ahead, None
                if asked:  # else it was only said that a turn is over
                    self._say(line, *self._answer(asked))
        except frames.Closed:
            line.close()
            self._line = None

    def _answer(self, asked: list[Any]) -> tuple[int, list[Any]]:
        try:
            (method, args), asked = opened(asked[:1]), asked[1:]
            return MADE, packed(getattr(self, method)(*opened([args, *asked])))
        except Exception as error:
            try:
                made = packed(error)
                opened(made)
            except Exception:
                made = packed(RunError(f"an actor failed: {error!r}"))
            return FAILED, made

    @staticmethod
    def _say(line: socket.socket, kind: int, parts: list[Any]) -> None:
        def full() -> None:
            room = select.poll()
            room.register(line, select.POLLOUT)
            room.poll()

        frames.send(line, frames.content(kind, parts), full)


def asking(method: str, parts: list[Any]) -> list[Any]:
    """Return a call as it goes over the line."""
    return [pickle.dumps((method, bytes(parts[0]))), *parts[1:]]
