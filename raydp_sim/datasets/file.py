"""Vectors or categories from a file of the user's own."""

from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray
from pydantic import field_validator

from raydp_sim.datasets.base import Dataset
from raydp_sim.datasets.columns import Held, Table, chosen, is_running, position
from raydp_sim.datasets.delimited import read_csv
from raydp_sim.errors import InputError, bad_field
from raydp_sim.random import Ids, Stream

_FIELD = "population.data.path"


class File(Dataset):
    """One client per row of a table, in the order of the file.

    Columns of numbers are the coordinates of a vector, and so is every number of a list column of
    Parquet. One column of text holds categories: they are numbered, and their names go to the
    output.

    Fields:
        path: a `.npy` array of shape (clients, dimension), memory-mapped; or a `.csv` or `.parquet`
            table. A relative path starts at the scenario file's folder.
        columns: which columns are data, by name or counted from 0; all but `id` unless given.
        id: the column that names the clients: no data, and no two rows may be alike in it.
        header: whether line 1 of a CSV file names the columns; detected, and said, unless given.
        categories: the categories of a column of text in the order in which they are numbered.
            Unless given they are those that occur, in alphabetical order; but in a deployment such
            a list is public and must not come from the data.
    """

    kind: ClassVar[str] = "file"
    path: str
    columns: tuple[int | str, ...] | None = None
    id: int | str | None = None
    header: bool | None = None
    categories: tuple[str, ...] | None = None

    @field_validator("columns", "categories")
    @classmethod
    def _each_once(cls, given: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if given is not None and (not given or len(set(given)) < len(given)):
            raise ValueError("name at least one, and each once")
        return given

    def located(self, folder: Path) -> "File":
        """Anchor a relative path at the scenario file's folder."""
        return type(self).model_validate({**self.model_dump(), "path": str(folder / self.path)})

    def width(self) -> int:
        """Return the length of a client's vector, 1 of categories."""
        return int(self._held.values.shape[1])

    def rows(self) -> int:
        """Return the number of rows."""
        return int(self._held.values.shape[0])

    def names(self) -> tuple[str, ...]:
        """Return the names of the categories, else of the columns; nothing if the file has none."""
        return self._held.names

    def said(self) -> str:
        """Say what was read: the file, its rows, header and columns."""
        rows = self.rows()
        head = f"{Path(self.path).name}, {rows:,} {'row' if rows == 1 else 'rows'}"
        return f"{head}; {self._held.said}"

    def values(self, ids: Ids, stream: Stream) -> NDArray[np.float64]:
        """Read the clients' rows."""
        return np.asarray(self._held.values[ids], dtype=np.float64)

    @cached_property
    def _held(self) -> Held:
        try:
            held = self._read(Path(self.path))
        except FileNotFoundError:
            raise bad_field(_FIELD, self.path, "there is no such file") from None
        except InputError:
            raise
        except (OSError, TypeError, ValueError, pa.ArrowException) as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise bad_field(_FIELD, self.path, f"it cannot be used: {first}") from None
        return held

    def _read(self, path: Path) -> Held:
        if path.suffix == ".npy":
            return self._array(path)
        if self.header is not None and path.suffix != ".csv":
            raise bad_field("population.data.header", self.header, "only .csv has one; drop it")
        if path.suffix == ".csv":
            mentioned = [*(self.columns or ()), self.id]
            known = {name for name in mentioned if isinstance(name, str)}
            table = read_csv(path, self.header, known)
        elif path.suffix == ".parquet":
            read = pyarrow.parquet.read_table(path)
            table = Table(tuple(read.column_names), tuple(read.columns))
        else:
            known_endings = "use .npy, .csv or .parquet"
            raise ValueError(f"the ending {path.suffix!r} is not known; {known_endings}")
        shape = (len(table.columns[0]) if table.columns else 0, len(table.columns))
        if 0 in shape:
            raise ValueError(f"its shape is {shape}; it must be (clients, dimension)")
        held = chosen(table, self.columns, self.id, self.categories)
        said = "; ".join(text for text in (table.said, held.said) if text)
        return Held(held.values, held.names, said)

    def _array(self, path: Path) -> Held:
        if self.header is not None:
            raise bad_field("population.data.header", self.header, "only .csv has one; drop it")
        try:
            array = np.asanyarray(np.load(path, mmap_mode="r"))
        except (ValueError, EOFError):
            # NumPy would advise to allow pickles, which can run code.
            raise ValueError("it cannot be read as a .npy array of numbers or texts") from None
        if array.dtype.kind == "U" and array.ndim == 1:
            array = array[:, None]
        if array.ndim != 2 or 0 in array.shape:
            raise ValueError(f"its shape is {array.shape}; it must be (clients, dimension)")
        names = [str(place) for place in range(array.shape[1])]
        if array.dtype.kind == "U" or self.categories is not None:
            texts = tuple(pa.chunked_array([np.array(column)]) for column in array.T)
            return chosen(Table(tuple(names), texts), self.columns, self.id, self.categories)
        if array.dtype.kind not in "biuf":
            raise ValueError(f"it holds {array.dtype}; every column must be a number")
        return self._memory_mapped(array, names)

    def _memory_mapped(self, array: NDArray[Any], names: list[str]) -> Held:
        """Choose columns without reading what is not asked for."""
        if self.columns is None and self.id is None:
            if array.shape[1] > 1 and is_running(array[:, 0]):
                raise ValueError(
                    "column 0 only numbers the rows; say population.data.id: 0, or list what is "
                    "data in population.data.columns"
                )
            return Held(array, (), f"{array.shape[1]:,} columns")
        identity = None if self.id is None else position(names, self.id, "population.data.id")
        if identity is not None:
            different, counts = np.unique(array[:, identity], return_counts=True)
            if (counts > 1).any():
                twice = different[counts > 1][0]
                rows = np.flatnonzero(array[:, identity] == twice)[:2]
                raise ValueError(
                    f"column {identity} names the clients and is {twice:g} in row {rows[0]} and "
                    f"row {rows[1]}; every client has one row: put its values together"
                )
        wanted = [int(name) for name in names if int(name) != identity]
        if self.columns is not None:
            wanted = [position(names, name, "population.data.columns") for name in self.columns]
        said = f"columns {', '.join(map(str, wanted[:6]))}{', ...' if len(wanted) > 6 else ''}"
        return Held(array[:, wanted], (), said)
