"""Vectors from a file of the user's own."""

from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from raydp_sim.datasets.base import Dataset
from raydp_sim.errors import InputError, bad_field
from raydp_sim.random import Ids, Stream

_FIELD = "population.data.path"


class File(Dataset):
    """One client per row of a table of numbers.

    Fields:
        path: a `.npy` array of shape (clients, dimension), memory-mapped; or a `.csv` (with a
            header) or `.parquet` table whose columns are all numbers. A relative path starts at the
            scenario file's folder.
    """

    kind: ClassVar[str] = "file"
    path: str

    def located(self, folder: Path) -> "File":
        """Anchor a relative path at the scenario file's folder."""
        return File(path=str(folder / self.path))

    def width(self) -> int:
        """Return the number of columns."""
        return int(self._table.shape[1])

    def rows(self) -> int:
        """Return the number of rows."""
        return int(self._table.shape[0])

    def values(self, ids: Ids, stream: Stream) -> NDArray[np.float64]:
        """Read the clients' rows."""
        return np.asarray(self._table[ids], dtype=np.float64)

    @cached_property
    def _table(self) -> NDArray[Any]:
        try:
            table = _read(Path(self.path))
        except FileNotFoundError:
            raise bad_field(_FIELD, self.path, "there is no such file") from None
        except (OSError, TypeError, ValueError, pa.ArrowException) as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise bad_field(_FIELD, self.path, f"it cannot be read: {first}") from None
        if table.ndim != 2 or 0 in table.shape:
            raise bad_field(
                _FIELD, self.path, f"its shape is {table.shape}; it must be (clients, dimension)"
            )
        if table.dtype.kind not in "biuf":
            raise bad_field(
                _FIELD, self.path, f"it holds {table.dtype}; every column must be a number"
            )
        return table


def _read(path: Path) -> NDArray[Any]:
    if path.suffix == ".npy":
        try:
            return np.asanyarray(np.load(path, mmap_mode="r"))
        except (ValueError, EOFError):
            # NumPy would advise to allow pickles, which can run code.
            raise ValueError("it is not a .npy array of numbers") from None
    if path.suffix == ".csv":
        table = pyarrow.csv.read_csv(path)
    elif path.suffix == ".parquet":
        table = pyarrow.parquet.read_table(path)
    else:
        raise InputError(f"the ending '{path.suffix}' is not known; use .npy, .csv or .parquet")
    columns = [column.to_numpy(zero_copy_only=False) for column in table.columns]
    return np.column_stack(columns) if columns else np.empty((0, 0))
