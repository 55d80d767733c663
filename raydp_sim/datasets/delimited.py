"""Reading a CSV file: which delimiter it has, whether its first line is a header, and its cells."""

import csv
import re
from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from raydp_sim.datasets.columns import Table

_HEAD_BYTES = 1 << 16
_HEAD_ROWS = 1000
_SHORT = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_WRONG = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?.*invalid value '(.*)'")

Rows = Sequence[Sequence[str]]


def read_csv(path: Path, header: bool | None, known: Collection[str]) -> Table:
    """Read a CSV file, with a header or without one.

    Args:
        path: the file, in UTF-8, its cells parted by commas, semicolons or tabs.
        header: whether line 1 names the columns; None: it is detected, see `has_header`.
        known: names of columns that the scenario mentions, which a header would have.

    Raises:
        ValueError: says which line cannot be used.
    """
    text = _head(path)
    delimiter = delimiter_of(text)
    rows = list(csv.reader(text.splitlines()[:_HEAD_ROWS], delimiter=delimiter))
    rows = [row for row in rows if row]
    if not rows:
        raise ValueError("it is empty; it must have one row per client")
    found = has_header(rows, known) if header is None else header
    table = _cells(path, delimiter, found)
    how = "" if header is not None else " (detected)"
    first = ", ".join(cell[:20] for cell in rows[0][:3]) + (", ..." if len(rows[0]) > 3 else "")
    said = f"line 1 ({first}) is a header" if found else f"no header: line 1 ({first}) is client 0"
    names = tuple(name.strip() for name in table.column_names)
    if not found:
        names = tuple(str(place) for place in range(len(names)))
    if len(names) > len(set(names)):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two columns are called {twice!r}; give each a name of its own")
    return Table(names, tuple(table.columns), "line", 2 if found else 1, said + how)


def delimiter_of(text: str) -> str:
    r"""Return what parts the cells: what splits every line alike, a comma if nothing does.

    Example:
        >>> delimiter_of("1;2\n3;4"), delimiter_of("1,2\n3,4"), delimiter_of("one\ntwo")
        (';', ',', ',')
    """
    lines = text.splitlines()[:20]
    for delimiter in (";", "\t"):
        counts = {len(row) for row in csv.reader(lines, delimiter=delimiter) if row}
        if len(counts) == 1 and counts.pop() > 1:
            return delimiter
    return ","


def has_header(rows: Rows, known: Collection[str] = ()) -> bool:
    """Say whether the first row names the columns.

    It does if it has a name that the scenario mentions, or a word above a column of numbers; if
    there are words only, if none of them comes again in its column. Numbers are never a header.

    Example:
        >>> has_header([["age", "city"], ["31", "Rome"]]), has_header([["31"], ["27"]])
        (True, False)
        >>> has_header([["city"], ["Rome"], ["Oslo"]]), has_header([["Rome"], ["Oslo"], ["Rome"]])
        (True, False)
    """
    first, rest = [cell.strip() for cell in rows[0]], rows[1:]
    if any(name in first and not is_number(name) for name in known):
        return True
    words = [place for place, cell in enumerate(first) if not is_number(cell)]
    if not words:
        return False
    below = {place: [row[place].strip() for row in rest if place < len(row)] for place in words}
    if any(cells and all(map(is_number, cells)) for cells in below.values()):
        return True
    if len(words) < len(first) and rest:
        return False  # a number among words is a value
    return not any(first[place] in cells for place, cells in below.items())


def is_number(cell: str) -> bool:
    """Say whether a cell holds a number, or nothing, which stands for one that is missing."""
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


def _head(path: Path) -> str:
    with open(path, "rb") as file:
        raw = file.read(_HEAD_BYTES)
    cut = len(raw) == _HEAD_BYTES
    try:
        # What was cut in the middle of a line or of a character is not looked at.
        return (raw[: raw.rfind(b"\n") + 1] if cut else raw).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ValueError(f"line {line} is not UTF-8 text; save it in UTF-8") from None


def _cells(path: Path, delimiter: str, header: bool) -> pa.Table:
    cells = pyarrow.csv.ParseOptions(delimiter=delimiter)
    try:
        options = pyarrow.csv.ReadOptions(autogenerate_column_names=not header)
        return pyarrow.csv.read_csv(path, options, cells)
    except pa.ArrowInvalid:
        # Once more in one thread, which alone knows the number of the line.
        options = pyarrow.csv.ReadOptions(autogenerate_column_names=not header, use_threads=False)
        try:
            return pyarrow.csv.read_csv(path, options, cells)
        except pa.ArrowInvalid as error:
            raise ValueError(_explained(str(error))) from None


def _explained(message: str) -> str:
    if found := _SHORT.search(message):
        line, wanted, got = found.groups()
        return f"line {line} has {got} cells where the first has {wanted}; every row must be alike"
    if found := _WRONG.search(message):
        column, row, value = found.groups()
        place = f"line {row}" if row else "a line"
        return f"{place} has {value!r} in column {column}; every column must be a number"
    return message.splitlines()[0]
