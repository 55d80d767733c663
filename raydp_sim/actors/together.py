"""Clients as Ray processes, and whoever serves them in the driver's own: a call each a round."""

from collections import deque
from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import ray

from raydp_sim.actors.backend import Actor, Inline, Lost, Ref
from raydp_sim.actors.cluster import LOOK_SECONDS
from raydp_sim.actors.on_ray import OnRay, told
from raydp_sim.errors import Died

# From here on what is sent to several actors is put into the object store once.
_STORED = 1 << 16


class Together(OnRay):
    """Actors that may run anywhere are Ray processes; the others are objects in this one.

    A call of Ray's takes a millisecond of CPU, of which a round has no more to spare than it takes
    to train a few clients. Those who serve them hear of the same calls with the same arguments, in
    the same order, as processes of their own would: only where they run is another thing.

    Calls of objects are made when somebody asks for what they return, the oldest first. So what
    nobody waits for, the rows of a release, is done while clients compute.
    """

    def spawn(self, cls: type, *args: Any, anywhere: bool = False) -> Actor:
        """Start a process if it may be anywhere, else make an object."""
        if anywhere:
            return super().spawn(cls, *args, anywhere=True)
        return _Here(cls(*args))

    def call(self, actor: Actor, method: str, *args: Any, returns: int = 1) -> tuple[Ref, ...]:
        """Call a process without waiting, or note what an object is to do."""
        if not isinstance(actor, _Here):
            sent = [self._sent(arg) for arg in args]
            return super().call(actor, method, *sent, returns=returns)
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
            ready, _ = ray.wait(
                list(missing), num_returns=1, timeout=LOOK_SECONDS, fetch_local=False
            )
            if any(ref in afar for ref in ready):
                return list(ready)
            self._heart.beat()

    def get(self, ref: Ref) -> Any:
        """Return a result, once what it takes is done."""
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
            super().kill(actor)

    def retire(self, actors: Sequence[Actor]) -> None:
        """Let objects drop what they were asked; processes as on Ray."""
        for actor in actors:
            if isinstance(actor, _Here):
                actor.calls.clear()
                self.kill(actor)
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
                afar = [arg for arg in calls[0].args if isinstance(arg, ray.ObjectRef)]
                if afar and (late := _late(afar)):
                    missing.update(dict.fromkeys(late))
                    return False
            self._make(calls.popleft())
        return True

    def _make(self, called: "_Call") -> None:
        """Make a call whose arguments are there; what goes wrong shows to whoever asks for it."""
        try:
            plain = [
                self.get(arg) if isinstance(arg, _Later | ray.ObjectRef) else arg
                for arg in called.args
            ]
            made = getattr(called.actor.object, called.method)(*plain)
        except Exception as error:
            for result in called.results:
                result.error, result.done = error, True
            return
        values = made if len(called.results) > 1 else (made,)
        for result, value in zip(called.results, values, strict=True):
            result.value, result.done = value, True

    def _sent(self, arg: Any) -> Any:
        """Return an argument as it goes to a process."""
        if not isinstance(arg, _Later):
            return arg
        try:
            value = self.get(arg)
        except Lost as error:
            raise Died(f"an actor of the run died: {error}", who=error.who) from None
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


def _late(refs: list[Ref]) -> list[Ref]:
    """Return those that are not there yet."""
    return list(ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)[1])


def _bytes(value: Any) -> int:
    """Return how much memory the arrays of an argument take."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if is_dataclass(value):
        value = vars(value)
    return sum(map(_bytes, value.values())) if isinstance(value, dict) else 0
