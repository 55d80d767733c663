"""The interface of every data set."""

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from raydp_sim.datasets.labelled import HeldOut
from raydp_sim.errors import InputError
from raydp_sim.random import Ids, Stream
from raydp_sim.registry import Piece, Registry, piece

_BLOCK_BYTES = 1 << 22

# The base is only compared with, so it may be abstract.
HELD_OUT = Registry("raydp_sim.datasets", HeldOut)  # type: ignore[type-abstract]


class Dataset(Piece):
    """What clients hold, one row each, produced wherever that client lives.

    A data set of vectors gives `width` and `values`. One whose rows have another shape or type
    (images as bytes, labels, several samples) gives `shape` and `hold` instead.
    """

    def shape(self) -> tuple[int, ...]:
        """Return the shape of what one client holds.

        Raises:
            InputError: when it has to be read from a file that cannot be read.
        """
        return (self.width(),)

    def hold(self, ids: Ids, stream: Stream) -> Any:
        """Return what some clients hold: anything with `len` and rows by `[...]`, of its own type.

        By default the vectors, made block by block, so that no second copy is in memory.
        """
        out = np.empty((len(ids), self.width()))
        rows = max(1, _BLOCK_BYTES // (8 * self.width()))
        for start in range(0, len(ids), rows):
            out[start : start + rows] = self.values(ids[start : start + rows], stream)
        return out

    def width(self) -> int:
        """Return the length of a client's vector.

        Raises:
            InputError: when it has to be read from a file that cannot be read.
        """
        raise NotImplementedError

    def rows(self) -> int | None:
        """Return how many clients it can serve, or None when it can serve any number."""
        return None

    def values(self, ids: Ids, stream: Stream) -> NDArray[np.float64]:
        """Return the vectors of some clients, shape (len(ids), width)."""
        raise NotImplementedError

    def names(self) -> tuple[str, ...]:
        """Return what categories or coordinates are called; nothing if they have numbers only."""
        return ()

    def labels(self) -> int:
        """Return how many classes labels are of; 0 where the data have none."""
        return 0

    def held_out(self) -> HeldOut | None:
        """Return the samples that no client holds and everyone may read; None if there are none."""
        return None

    def said(self) -> str:
        """Say what was found out about the data, for the user to see; empty if nothing was."""
        return ""

    def located(self, folder: Path) -> "Dataset":
        """Return the data set with relative paths taken from the scenario file's folder."""
        return self

    def among(self, clients: int) -> "Dataset":
        """Return the data set as it is dealt to so many clients, where that matters."""
        return self

    def memory(self, clients: int, processes: int) -> int:
        """Return the bytes that so many clients in so many processes hold, roughly."""
        return clients * math.prod(self.shape()) * 8


class Hidden(Dataset):
    """Stands in for the data in every actor but the clients': shape, names and what is public.

    It names no kind, so that no scenario can choose it.
    """

    of: tuple[int, ...]
    called: tuple[str, ...] = ()
    classes: int = 0
    public: Annotated[HeldOut, *piece(HELD_OUT)] | None = None

    def shape(self) -> tuple[int, ...]:
        """Return the shape of the data that it stands for."""
        return self.of

    def width(self) -> int:
        """Return the length of a client's vector."""
        return self.of[-1]

    def names(self) -> tuple[str, ...]:
        """Return the names of the data that it stands for."""
        return self.called

    def labels(self) -> int:
        """Return the number of classes of the data that it stands for."""
        return self.classes

    def held_out(self) -> HeldOut | None:
        """Return what is public of the data that it stands for."""
        return self.public

    def values(self, ids: Ids, stream: Stream) -> NDArray[np.float64]:
        """Refuse: only a client sees its data."""
        raise InputError("the data are hidden here; only client actors hold them")
