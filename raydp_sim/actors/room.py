"""Memory that is used again: fresh pages for a batch cost more than what is written into them."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Room:
    """Hands out arrays, and takes their memory back once nothing refers to them any more.

    A batch of long messages is larger than what the C library keeps of freed memory, so the
    system would have to find and clear its pages anew in every release.

    Example:
        >>> room = Room()
        >>> first = room.empty((3, 4), np.dtype(np.float64))
        >>> place = first.ctypes.data
        >>> view = first[1:]
        >>> del first  # the view still needs it
        >>> room.empty((3, 4), np.dtype(np.float64)).ctypes.data == place
        False
        >>> del view
        >>> room.empty((2, 4), np.dtype(np.float64)).ctypes.data == place
        True
    """

    def __init__(self) -> None:
        self._free: NDArray[np.uint8] | None = None

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array to be written, in memory that was used before if there is enough."""
        size = math.prod(shape) * dtype.itemsize
        memory, self._free = self._free, None
        if memory is None or len(memory) < size:
            memory = np.empty(size, np.uint8)
        lent: NDArray[np.uint8] = np.asarray(_Lent(self, memory))
        return lent[:size].view(dtype).reshape(shape)

    def _take_back(self, memory: NDArray[np.uint8]) -> None:
        if self._free is None or len(self._free) <= len(memory):
            self._free = memory


class _Lent:
    """What arrays refer to while they are in use; the last of them lets it go."""

    def __init__(self, room: Room, memory: NDArray[np.uint8]) -> None:
        self._room, self._memory = room, memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        self._room._take_back(self._memory)
