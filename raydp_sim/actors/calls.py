"""Calls under way, and what is to be done when each is answered."""

from collections.abc import Callable
from typing import Any

from raydp_sim.actors.backend import Actor, Backend, Lost, Ref
from raydp_sim.errors import Died


class Calls:
    """Everything that the driver waits for."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.waiting: dict[Ref, Callable[[Ref], None]] = {}

    def make(self, then: Callable[[Ref], None], actor: Actor, method: str, *args: Any) -> Ref:
        """Call an actor; `then` is given the answer's reference when it is there."""
        (ref,) = self.backend.call(actor, method, *args)
        self.waiting[ref] = then
        return ref

    def get(self, ref: Ref) -> Any:
        """Return the answer of an actor that cannot be replaced alone.

        Raises:
            Died: it did, or what it was handed is gone.
        """
        try:
            return self.backend.get(ref)
        except Lost as error:
            raise Died(f"an actor of the run died: {error}", who=error.who) from None

    def handle(self) -> bool:
        """Wait for some answers and do what is to be done; False if nothing is under way."""
        if not self.waiting:
            return False
        for ref in self.backend.wait(list(self.waiting)):
            if ref in self.waiting:  # else it was done together with one before
                self.waiting.pop(ref)(ref)
        return True
