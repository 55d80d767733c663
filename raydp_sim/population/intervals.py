"""Recorded stays of clients: a table of (client, on, off), how it is read, checked and written."""

import io
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from raydp_sim.errors import InputError
from raydp_sim.random import Floats

COLUMNS = ("client", "on", "off")
ENDINGS = (".csv", ".parquet")

# Seconds, the longest span that any field takes; beyond it a second is lost in rounding.
_LATEST = 1e12


@dataclass(frozen=True, eq=False)
class Intervals:
    """Stays [on, off) in seconds, sorted by client and then by time, without overlaps.

    Example:
        >>> stays = Intervals(np.array([0, 0, 2]), np.array([1.0, 5.0, 0.0]), np.array([2.0, 9, 4]))
        >>> stays.there(np.array([0, 0, 1, 2]), np.array([1.5, 2.0, 1.0, 0.0])).tolist()
        [True, False, False, True]
    """

    client: NDArray[np.int64]
    on: Floats
    off: Floats

    def __len__(self) -> int:
        return len(self.client)

    @cached_property
    def _keys(self) -> NDArray[np.complex128]:
        # NumPy orders complex numbers by their real part and then by the imaginary one, so one
        # search finds the client and the moment together.
        keys = np.empty(len(self), np.complex128)
        keys.real, keys.imag = self.client, self.on
        return keys

    def there(self, ids: NDArray[Any], times: Floats) -> NDArray[np.bool_]:
        """Say whether each client is there at its moment; costs the logarithm of the rows."""
        # Questions in the table's order find their rows near each other: many times faster.
        order = np.argsort(ids, kind="stable")
        wanted = np.empty(len(ids), np.complex128)
        wanted.real, wanted.imag = ids[order], times[order]
        last = np.empty(len(ids), np.int64)
        last[order] = np.searchsorted(self._keys, wanted, side="right") - 1
        return np.asarray((last >= 0) & (self.client[last] == ids) & (times < self.off[last]))

    @cached_property
    def end(self) -> float:
        """The last moment of all."""
        return float(self.off.max())

    def clients(self) -> int:
        """Return one more than the largest number of a client."""
        return int(self.client[-1]) + 1

    def share(self, length: float) -> float:
        """Return the part of the clients' time, up to `length` each, that they are there."""
        return float((self.off - self.on).sum() / (length * self.clients()))

    def first(self, clients: int) -> "Intervals":
        """Return the stays of the first so many clients."""
        rows = slice(0, int(np.searchsorted(self.client, clients)))
        return Intervals(self.client[rows], self.on[rows], self.off[rows])


def load(path: str | Path) -> Intervals:
    """Read and check a table; it is kept, so that a process reads a file that stays as it is once.

    Raises:
        InputError: names the file, the line, the column, the value and the remedy.
    """
    try:
        state = Path(path).stat()
    except OSError as error:
        raise InputError(f"{path}: it cannot be read ({error.strerror}); check the path") from None
    return _load(str(path), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def _load(path: str, changed: int, size: int) -> Intervals:
    table = _read(Path(path))
    columns = [_numbers(path, table, name) for name in COLUMNS]
    if len(table) == 0:
        raise InputError(f"{path}: it holds no interval; add rows of {', '.join(COLUMNS)}")
    client, on, off = columns
    _check(path, client, on, off)
    return Intervals(client.astype(np.int64), on, off)


def check_clients(path: str | Path, stays: Intervals, clients: int) -> None:
    """Refuse a client that a population of that size does not have.

    Raises:
        InputError: names the file, the line and the client.
    """
    beyond = stays.client >= clients
    if beyond.any():
        row = int(np.argmax(beyond))
        remedy = (
            f"there are only {clients} clients, 0 to {clients - 1}; raise their number, or cut the "
            f"table with `raydp-sim traces convert IN OUT --clients {clients}`"
        )
        raise _bad(str(path), row, "client", int(stays.client[row]), remedy)


def content(stays: Intervals, ending: str) -> bytes:
    """Return the table as the bytes of a `.csv` or `.parquet` file, which `load` reads back."""
    table = pa.table(dict(zip(COLUMNS, (stays.client, stays.on, stays.off), strict=True)))
    buffer = io.BytesIO()
    if ending == ".csv":
        buffer.write(",".join(COLUMNS).encode() + b"\n")
        pyarrow.csv.write_csv(table, buffer, pyarrow.csv.WriteOptions(include_header=False))
    else:
        pyarrow.parquet.write_table(table, buffer)
    return buffer.getvalue()


def _read(path: Path) -> Any:
    try:
        if path.suffix == ".csv":
            table = pyarrow.csv.read_csv(path)
        elif path.suffix == ".parquet":
            table = pyarrow.parquet.read_table(path)
        else:
            remedy = f"the ending must be {' or '.join(ENDINGS)}; rename or convert it"
            raise InputError(f"{path}: {remedy}")
    except (OSError, pa.ArrowException) as error:
        if path.suffix == ".csv" and path.is_file() and not path.read_bytes().strip():
            raise InputError(f"{path}: it is empty; add rows of {', '.join(COLUMNS)}") from None
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path}: it cannot be read ({first}); mend or replace it") from None
    for name in COLUMNS:
        count = table.column_names.count(name)
        if count != 1:
            wrong = "is missing" if count == 0 else f"is there {count} times"
            remedy = (
                f"the columns must be {', '.join(COLUMNS)}, not {', '.join(table.column_names)}"
            )
            raise InputError(f"{path}: column {name} {wrong}; {remedy}")
    return table


def _numbers(path: str, table: Any, name: str) -> Floats:
    column = table.column(name).combine_chunks()
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        values = column.to_pylist()
        for row, value in enumerate(values):
            if isinstance(value, bool) or not _is_number(value):
                raise _bad(path, row, name, value, "it must be a number; mend it")
        return np.array([float(value) for value in values])
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _check(path: str, client: Floats, on: Floats, off: Floats) -> None:
    """Refuse the first row that is wrong, for the first reason that there is."""
    same = np.zeros(len(client), np.bool_)
    same[1:] = client[1:] == client[:-1]
    before = np.concatenate(([0], np.arange(len(client) - 1)))
    largest = 2.0**32
    rules = (
        ("client", client, np.isnan(client), "it must be the number of a client; fill it in"),
        ("on", on, ~np.isfinite(on), "it must be a finite number of seconds; fill it in"),
        ("off", off, ~np.isfinite(off), "it must be a finite number of seconds; fill it in"),
        (
            "client",
            client,
            (client < 0) | (client >= largest) | (client != np.floor(client)),
            "clients are numbered 0, 1, 2, ...; renumber them",
        ),
        ("on", on, on < 0, "time starts at 0; shift or cut the recording"),
        ("off", off, off > _LATEST, f"times end at {_LATEST:g}; shift or cut the recording"),
        ("off", off, off <= on, "it must be later than on; swap them or remove the row"),
        (
            "client",
            client,
            client < client[before],
            "rows must be sorted by client; sort them by client and on",
        ),
        (
            "on",
            on,
            same & (on < on[before]),
            "the rows of a client must be sorted by on; sort them by client and on",
        ),
        (
            "on",
            on,
            same & (on < off[before]),
            "the client's interval before ends later, so they overlap; join them into one row",
        ),
    )
    for name, column, wrong, remedy in rules:
        if wrong.any():
            row = int(np.argmax(wrong))
            raise _bad(path, row, name, column[row], remedy)


def _bad(path: str, row: int, column: str, value: object, remedy: str) -> InputError:
    shown = f"{value:.17g}" if isinstance(value, float) else repr(value)
    return InputError(f"{path}: {_place(path, row)}: {column} is {shown}; {remedy}")


def _place(path: str, row: int) -> str:
    """Name a row as a person counts: by its line where the file has lines."""
    if not path.endswith(".csv"):
        return f"row {row + 1}"
    # Blank lines are no rows, but they are lines.
    with open(path, "rb") as file:
        full = (number for number, line in enumerate(file, 1) if line.strip())
        next(full)  # the header
        for place, number in enumerate(full):
            if place == row:
                return f"line {number}"
    return f"row {row + 1}"
