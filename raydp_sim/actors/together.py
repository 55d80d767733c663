"""Clients as Ray processes, and in the driver's own whoever serves them and calls them directly."""

from collections import deque
from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import ray

from raydp_sim.actors.backend import Actor, Inline, Lost, Ref
from raydp_sim.actors.cluster import LOOK_SECONDS
from raydp_sim.actors.line import Lines, Reply, result
from raydp_sim.actors.listening import Listens
from raydp_sim.actors.on_ray import OnRay, told
from raydp_sim.actors.packing import Packer
from raydp_sim.errors import Died

# From here on what is sent to several actors is put into the object store once.
_STORED = 1 << 16
# What is larger goes over no line: Ray copies it less often.
_LONG = 1 << 23
# How long is waited for Ray while something is also waited for on a line.
_BOTH_SECONDS = 0.002


class Together(OnRay):
    """Actors that may run anywhere are Ray processes; the others are objects in this one.

    A call of Ray's takes a millisecond of CPU, of which a round has no more to spare than it takes
    to train a few clients; so processes of this machine are called over a socket (`line.py`) once
    they are connected, and all else, such as starting and ending them, is Ray's. Those who serve
    them hear of the same calls with the same arguments, in the same order, as processes of their
    own would: only where they run is another thing.

    Calls of objects are made when somebody asks for what they return, the oldest first. So what
    nobody waits for, the rows of a release, is done while clients compute.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lines, self._packer = Lines(), Packer()

    def spawn(self, cls: type, *args: Any, anywhere: bool = False) -> Actor:
        """Start a process if it may be anywhere, else make an object."""
        if not anywhere:
            return _Here(cls(*args))
        actor = super().spawn(cls, *args, anywhere=True)
        if issubclass(cls, Listens):
            self._lines.dial(actor)
        return actor

    def call(self, actor: Actor, method: str, *args: Any, returns: int = 1) -> tuple[Ref, ...]:
        """Call a process without waiting, or note what an object is to do."""
        if not isinstance(actor, _Here):
            return self._call_process(actor, method, args, returns)
        called = _Call(actor, method, args, tuple(_Later(actor) for _ in range(returns)))
        actor.calls.append(called)
        return called.results

    def wait(self, refs: Sequence[Ref]) -> Sequence[Ref]:
        """Do what can be done for the oldest; else wait for processes."""
        self._heart.beat()
        afar = [ref for ref in refs if not isinstance(ref, _Later)]
        while True:
            missing: dict[Ref, None] = dict.fromkeys(afar)
            for ref in refs:
                if isinstance(ref, _Later) and self._advance(ref, missing):
                    return [ref]
            ready = self._ready(list(missing))
            if any(ref in afar for ref in ready):
                return ready
            self._heart.beat()

    def _ready(self, refs: Sequence[Ref]) -> Sequence[Ref]:
        """Wait a while for processes; return those of their results that are there."""
        replies = [ref for ref in refs if isinstance(ref, Reply)]
        others = [ref for ref in refs if not isinstance(ref, Reply)]
        if not any(reply.done for reply in replies):
            seconds = LOOK_SECONDS if not others else 0.0
            if replies and self._lines.wait(replies, seconds):
                others = []
            if others:
                seconds = LOOK_SECONDS if not replies else _BOTH_SECONDS
                found, _ = ray.wait(others, num_returns=1, timeout=seconds, fetch_local=False)
                return list(found)
        return [reply for reply in replies if reply.done]

    def get(self, ref: Ref) -> Any:
        """Return a result, once what it takes is done."""
        if isinstance(ref, Reply):
            while not ref.done:
                self._lines.wait([ref], LOOK_SECONDS)
                self._heart.beat()
            return result(ref)
        if not isinstance(ref, _Later):
            return super().get(ref)
        while not self._advance(ref, None):
            pass
        if ref.error is not None:
            raise ref.error if isinstance(ref.error, Lost) else told(ref.error)
        return ref.value

    def kill(self, actor: Actor) -> None:
        """End a process, or close what an object has open."""
        if isinstance(actor, _Here):
            Inline().kill(actor.object)
        else:
            self._lines.end(actor)
            super().kill(actor)

    def retire(self, actors: Sequence[Actor]) -> None:
        """Let objects drop what they were asked; processes as on Ray."""
        for actor in actors:
            if isinstance(actor, _Here):
                actor.calls.clear()
                self.kill(actor)
            else:
                self._lines.end(actor)
        super().retire([actor for actor in actors if not isinstance(actor, _Here)])

    def _advance(self, ref: "_Later", missing: dict[Ref, None] | None) -> bool:
        """Make the calls that a result takes, in the order in which its actor was called.

        Args:
            ref: of the result.
            missing: where processes are noted that it waits for; None: wait for them.
        """
        calls = ref.actor.calls
        while not ref.done:
            for arg in calls[0].args:
                if isinstance(arg, _Later) and not self._advance(arg, missing):
                    return False
            if missing is not None:
                afar = [arg for arg in calls[0].args if isinstance(arg, _FAR)]
                if afar and (late := self._late(afar)):
                    missing.update(dict.fromkeys(late))
                    return False
            self._make(calls.popleft())
        return True

    def _make(self, called: "_Call") -> None:
        """Make a call whose arguments are there; what goes wrong shows to whoever asks for it."""
        try:
            plain = [
                self.get(arg) if isinstance(arg, (_Later, *_FAR)) else arg for arg in called.args
            ]
            made = getattr(called.actor.object, called.method)(*plain)
        except Exception as error:
            for result in called.results:
                result.error, result.done = error, True
            return
        values = made if len(called.results) > 1 else (made,)
        for result, value in zip(called.results, values, strict=True):
            result.value, result.done = value, True

    def _late(self, refs: list[Ref]) -> list[Ref]:
        """Return those that are not there yet."""
        replies = [ref for ref in refs if isinstance(ref, Reply)]
        if any(not reply.done for reply in replies):
            self._lines.wait(replies, 0.0)
        late = [reply for reply in replies if not reply.done]
        if afar := [ref for ref in refs if not isinstance(ref, Reply)]:
            late += ray.wait(afar, num_returns=len(afar), timeout=0, fetch_local=False)[1]
        return late

    def _call_process(
        self, actor: Actor, method: str, args: Sequence[Any], returns: int
    ) -> tuple[Ref, ...]:
        """Call over a line, if there is one; else by Ray."""
        line = self._lines.of(actor)
        if line is not None and not any(isinstance(arg, ray.ObjectRef) for arg in args):
            values = [self._value(arg) if isinstance(arg, (_Later, Reply)) else arg for arg in args]
            parts = self._packer.arguments(args, values)
            if sum(len(part) for part in parts) < _LONG:
                return line.call(method, parts, returns)
        self._lines.interrupt(actor)
        sent = [self._sent(arg) for arg in args]
        return super().call(actor, method, *sent, returns=returns)

    def _value(self, ref: Ref) -> Any:
        try:
            return self.get(ref)
        except Lost as error:
            raise Died(f"an actor of the run died: {error}", who=error.who) from None

    def _sent(self, arg: Any) -> Any:
        """Return an argument as Ray hands it to a process."""
        if isinstance(arg, Reply):
            return self._value(arg)
        if not isinstance(arg, _Later):
            return arg
        value = self._value(arg)
        if arg.stored is None and _bytes(value) >= _STORED:
            arg.stored = ray.put(value)
        return value if arg.stored is None else arg.stored


class _Here:
    """An actor that is an object of this process, and what it is to do."""

    __slots__ = ("calls", "object")

    def __init__(self, made: Any) -> None:
        self.object = made
        self.calls: deque[_Call] = deque()


class _Later:
    """A result of an object's call."""

    __slots__ = ("actor", "done", "error", "stored", "value")

    def __init__(self, actor: _Here) -> None:
        self.actor = actor
        self.done = False
        self.value: Any = None
        self.error: Exception | None = None
        self.stored: Ref = None


class _Call:
    """A call of an object that is still to be made."""

    __slots__ = ("actor", "args", "method", "results")

    def __init__(
        self, actor: _Here, method: str, args: tuple[Any, ...], results: tuple[_Later, ...]
    ) -> None:
        self.actor, self.method, self.args, self.results = actor, method, args, results


# What a process answers, by either way.
_FAR = (ray.ObjectRef, Reply)


def _bytes(value: Any) -> int:
    """Return how much memory the arrays of an argument take."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if is_dataclass(value):
        value = vars(value)
    return sum(map(_bytes, value.values())) if isinstance(value, dict) else 0
