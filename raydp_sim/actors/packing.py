"""Arguments and results as bytes, packed once for all who are called alike."""

import io
import pickle
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from raydp_sim.mechanisms.base import Mechanism

# What Python's own packing does not know how to pack.
_UNKNOWN = (pickle.PicklingError, AttributeError, TypeError)
Parts = list[Any]
"""A thing as bytes: what it is made of, and then the memory of its arrays."""


class Packer:
    """Packs arguments; those of the call before are not packed again."""

    def __init__(self) -> None:
        self._last: tuple[Sequence[Any], Parts] | None = None
        self._mechanism: tuple[Mechanism, bytes] | None = None

    def arguments(self, args: Sequence[Any], plain: Sequence[Any]) -> Parts:
        """Return arguments as bytes.

        Args:
            args: as they were given, by which it is known again that they are the same.
            plain: what they stand for.
        """
        last = self._last
        if last is not None and len(last[0]) == len(args):
            if all(one is other for one, other in zip(last[0], args, strict=True)):
                return last[1]
        try:
            made = self._packed(tuple(plain))
        except _UNKNOWN:
            made = packed(tuple(plain))
        self._last = args, made
        return made

    def _packed(self, plain: tuple[Any, ...]) -> Parts:
        room, buffers = io.BytesIO(), list[pickle.PickleBuffer]()
        _Pickler(room, buffers, self).dump(plain)
        return [room.getvalue(), *(buffer.raw() for buffer in buffers)]

    def mechanism(self, mechanism: Mechanism) -> bytes:
        """Return a mechanism as bytes; most asks of a run have the same one."""
        if self._mechanism is None or self._mechanism[0] is not mechanism:
            self._mechanism = mechanism, pickle.dumps(mechanism, pickle.HIGHEST_PROTOCOL)
        return self._mechanism[1]


class _Pickler(pickle.Pickler):
    def __init__(self, room: io.BytesIO, buffers: list[pickle.PickleBuffer], by: Packer) -> None:
        super().__init__(room, pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.append)
        self._by = by

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Mechanism):
            return _known, (self._by.mechanism(obj),)
        return NotImplemented


@lru_cache(maxsize=8)
def _known(packed: bytes) -> Any:
    """Return a mechanism that came before as it was then, with what it has worked out since."""
    return pickle.loads(packed)


def packed(made: Any) -> Parts:
    """Return a thing as bytes; its arrays must stay as they are until those are sent."""
    buffers: list[pickle.PickleBuffer] = []
    how: dict[str, Any] = {"protocol": pickle.HIGHEST_PROTOCOL, "buffer_callback": buffers.append}
    try:
        head = pickle.dumps(made, **how)
    except _UNKNOWN:
        # Functions, and classes of a script; whoever has no need of it need not wait for Ray.
        from ray import cloudpickle

        buffers.clear()
        head = cloudpickle.dumps(made, **how)
    return [head, *(buffer.raw() for buffer in buffers)]


def opened(parts: Parts) -> Any:
    """Return what was packed."""
    return pickle.loads(parts[0], buffers=parts[1:])
