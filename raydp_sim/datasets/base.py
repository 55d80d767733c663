"""The interface of every data set."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raydp_sim.errors import InputError
from raydp_sim.random import Ids, Stream
from raydp_sim.registry import Piece


class Dataset(Piece):
    """Rows of numbers, one per client, produced wherever that client lives."""

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

    def located(self, folder: Path) -> "Dataset":
        """Return the data set with relative paths taken from the scenario file's folder."""
        return self


class Hidden(Dataset):
    """Stands in for the data in every actor but the clients': its width, and nothing to read.

    It names no kind, so that no scenario can choose it.
    """

    dimension: int

    def width(self) -> int:
        """Return the dimension."""
        return self.dimension

    def values(self, ids: Ids, stream: Stream) -> NDArray[np.float64]:
        """Refuse: only a client sees its data."""
        raise InputError("the data are hidden here; only client actors hold them")
