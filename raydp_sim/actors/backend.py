"""Two ways to run the same actors: as Ray processes (`on_ray.py`), or inline in this one.

An actor is a plain class; a backend spawns it, calls its methods and waits for results. What a call
returns is a reference that can be handed to another call unread, as with Ray's object store.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import psutil

from raydp_sim.kernels.memory import keep_freed

Actor = Any
Ref = Any


class Lost(Exception):
    """The actor behind a reference has died, or the object is gone.

    Attributes:
        who: died, in a word.
    """

    def __init__(self, reason: str, who: str = "an actor") -> None:
        super().__init__(reason)
        self.who = who


class Backend(Protocol):
    """What the conductor needs of a place to run."""

    def cpus(self) -> int:
        """Return the CPUs that client actors may spread over."""
        ...

    def memory(self) -> int:
        """Return the bytes of memory that actors may use together."""
        ...

    def spawn(self, cls: type, *args: Any, anywhere: bool = False) -> Actor:
        """Start an actor; on the driver's node unless it may run anywhere."""
        ...

    def call(self, actor: Actor, method: str, *args: Any, returns: int = 1) -> tuple[Ref, ...]:
        """Call a method; return one reference per result."""
        ...

    def wait(self, refs: Sequence[Ref]) -> Sequence[Ref]:
        """Wait until at least one reference is ready; return all that are."""
        ...

    def get(self, ref: Ref) -> Any:
        """Return a result.

        Raises:
            Lost: when the actor died before or the object is gone.
        """
        ...

    def kill(self, actor: Actor) -> None:
        """End an actor."""
        ...

    def retire(self, actors: Sequence[Actor]) -> None:
        """Take actors out of service: nothing that they were asked has an effect any more.

        The dead may be among them. Those that live may be handed out again by `spawn`, made anew.

        Raises:
            RunError: nobody can be asked any more.
        """
        ...


class Inline:
    """Everything in this process, one call at a time."""

    def cpus(self) -> int:
        """Return 1: there is one thread of work."""
        return 1

    def memory(self) -> int:
        """Return what this machine has left."""
        return int(psutil.virtual_memory().available)

    def spawn(self, cls: type, *args: Any, anywhere: bool = False) -> Actor:
        """Make an object."""
        keep_freed()
        return cls(*args)

    def call(self, actor: Actor, method: str, *args: Any, returns: int = 1) -> tuple[Ref, ...]:
        """Call at once and box the results."""
        plain = [arg.value if isinstance(arg, _Box) else arg for arg in args]
        result = getattr(actor, method)(*plain)
        return tuple(_Box(value) for value in result) if returns > 1 else (_Box(result),)

    def wait(self, refs: Sequence[Ref]) -> Sequence[Ref]:
        """Return the oldest: results are handled in the order of their calls."""
        return refs[:1]

    def get(self, ref: Ref) -> Any:
        """Unbox a result."""
        return ref.value

    def kill(self, actor: Actor) -> None:
        """Close what it has open; the object goes when nobody holds it."""
        if (hang_up := getattr(actor, "hang_up", None)) is not None:
            hang_up()

    def retire(self, actors: Sequence[Actor]) -> None:
        """End all: to make one anew costs nothing."""
        for actor in actors:
            self.kill(actor)


class _Box:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value
