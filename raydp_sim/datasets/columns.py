"""From the columns of a user's table to what clients hold: numbers, or categories with names."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from raydp_sim.errors import InputError, bad_field

Reference = int | str

_ID_NAMES = {"id", "ids", "client", "user", "uid", "uuid", "guid", "device", "person", "key"}
# So many rows in running order, or with different texts, are no coincidence.
_MANY = 10


@dataclass(frozen=True, eq=False)
class Table:
    """A table as read, before anything is chosen.

    Attributes:
        names: of the columns.
        columns: one each.
        rows_are: what a row is called in messages, `line` or `row`.
        first: number of the first row, so counted.
        said: what was found out about the file.
    """

    names: tuple[str, ...]
    columns: tuple[pa.ChunkedArray, ...]
    rows_are: str = "row"
    first: int = 0
    said: str = ""

    def place(self, row: int) -> str:
        """Say where a client's row is."""
        return f"{self.rows_are} {row + self.first}"


@dataclass(frozen=True, eq=False)
class Held:
    """What clients hold.

    Attributes:
        values: one row per client.
        names: of the columns; of the categories where `values` are their numbers.
        said: what was chosen, in words.
    """

    values: NDArray[Any]
    names: tuple[str, ...]
    said: str = ""


def chosen(
    table: Table,
    columns: Sequence[Reference] | None,
    id: Reference | None,
    categories: Sequence[str] | None,
) -> Held:
    """Choose the columns that are data, and turn them into numbers.

    Args:
        table: as read.
        columns: names or positions; None: all but `id`.
        id: the column that names the clients: all different, and not data.
        categories: of the one column there is, in the order in which they are numbered.

    Raises:
        InputError: names the field, the column, the row and the remedy.
        ValueError: says what is wrong with the file as a whole.
    """
    if id is not None:
        id = position(table.names, id, "population.data.id")
        _check_distinct(table, id)
    if columns is None:
        places = [place for place in range(len(table.names)) if place != id]
        _refuse_identifiers(table, places)
    else:
        places = [position(table.names, name, "population.data.columns") for name in columns]
        if id in places:
            remedy = f"column {table.names[id]!r} is population.data.id; leave it out of one"
            raise bad_field("population.data.columns", list(columns), remedy)
    if not places:
        raise ValueError("no column is left that could be data")
    said = f"columns {', '.join(table.names[place] for place in places[:6])}"
    said += f" and {len(places) - 6} more" if len(places) > 6 else ""
    said = said if len(places) > 1 else f"column {table.names[places[0]]}"
    if id is not None:
        said += f", clients named by {table.names[id]}"
    texts = [place for place in places if _is_text(table.columns[place].type)]
    if categories is not None or (len(texts) == 1 and len(places) == 1):
        if len(places) > 1:
            remedy = f"they are of one column, and there are {len(places)}; choose one in columns"
            raise bad_field("population.data.categories", list(categories or ()), remedy)
        held = _categories(table, places[0], categories)
        return Held(held.values, held.names, f"{said}, {len(held.names)} categories")
    if texts:
        raise ValueError(_text(table, places, texts[0]))
    parts = [_numbers(table, place) for place in places]
    names = tuple(name for _, own in parts for name in own)
    return Held(np.column_stack([values for values, _ in parts]), names, said)


def position(names: Sequence[str], reference: Reference, field: str) -> int:
    """Return which column is meant, by name or counted from 0.

    Example:
        >>> position(["age", "city"], "city", "columns"), position(["age", "city"], 0, "columns")
        (1, 0)
    """
    if reference in names:
        return list(names).index(str(reference))
    if isinstance(reference, int) and 0 <= reference < len(names):
        return reference
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    near = difflib.get_close_matches(str(reference), names, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise bad_field(field, reference, f"there is no such column; {hint}the file has {shown}")


def _numbers(table: Table, place: int) -> tuple[NDArray[Any], list[str]]:
    """Return a column of numbers, or of lists of equally many numbers, and the names."""
    column, name = table.columns[place], table.names[place]
    if not _is_list(column.type):
        return _plain(table, place, column)[:, None], [name]
    if column.null_count:
        row = _first(pc.is_null(column))
        raise ValueError(f"column {name!r} has no list in {table.place(row)}; fill it in")
    lengths = pc.list_value_length(column).to_numpy()
    odd = np.flatnonzero(lengths != lengths[0])
    if len(odd):
        there = table.place(int(odd[0]))
        raise ValueError(
            f"column {name!r} has a list of {lengths[odd[0]]} in {there} and of {lengths[0]} in "
            f"{table.place(0)}; all must be equally long"
        )
    width = int(lengths[0])
    flat = _plain(table, place, pc.list_flatten(column), max(1, width))
    return flat.reshape(len(column), width), [f"{name}[{index}]" for index in range(width)]


def _plain(table: Table, place: int, column: pa.ChunkedArray, width: int = 1) -> NDArray[Any]:
    name, of = table.names[place], column.type
    if pa.types.is_null(of):
        raise ValueError(f"column {name!r} is empty; leave it out with population.data.columns")
    if not (pa.types.is_boolean(of) or pa.types.is_integer(of) or pa.types.is_floating(of)):
        if not pa.types.is_decimal(of):
            raise ValueError(
                f"column {name!r} holds {of}; every column must be a number: leave it out with "
                "population.data.columns"
            )
        column = column.cast(pa.float64())
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    if column.null_count:
        row, index = divmod(_first(pc.is_null(column)), width)
        raise InputError(
            f"population.data: client {row} holds nan at index {place + index}: column {name!r} "
            f"is empty or no number in {table.place(row)}; every value must be a finite number: "
            "fill it in or leave the row out"
        )
    return values


def _categories(table: Table, place: int, given: Sequence[str] | None) -> Held:
    """Number the texts of a column: in the order given, else in alphabetical order."""
    name = table.names[place]
    column = table.columns[place].cast(pa.string())
    empty = pc.or_kleene(pc.is_null(column), pc.equal(column, ""))
    if (row := _first(empty)) < len(column):
        raise ValueError(
            f"column {name!r} is empty in {table.place(row)}; give it a category or leave the row "
            "out"
        )
    different = sorted(pc.unique(column).to_pylist())
    if given is None:
        _refuse_odd_texts(table, place, column, different)
    names = tuple(different if given is None else given)
    codes = pc.index_in(column, value_set=pa.array(names, pa.string()))
    if codes.null_count:
        row = _first(pc.is_null(codes))
        value = column[row].as_py()
        near = difflib.get_close_matches(value, names, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise bad_field(
            "population.data.categories",
            list(names),
            f"column {name!r} has {value!r} in {table.place(row)}; {hint}add it or correct the row",
        )
    return Held(codes.to_numpy(zero_copy_only=False).astype(np.float64)[:, None], names)


def _refuse_odd_texts(
    table: Table, place: int, column: pa.ChunkedArray, different: Sequence[str]
) -> None:
    """Refuse texts that are numbers with a slip, or that tell everyone apart."""
    name = table.names[place]
    numbers = [text for text in different if _is_number(text)]
    if 2 * len(numbers) > len(different):
        wrong = next(text for text in different if not _is_number(text))
        row = _first(pc.equal(column, wrong))
        raise ValueError(
            f"column {name!r} has {wrong!r} in {table.place(row)} among numbers; every column must "
            "be a number, or give population.data.categories"
        )
    if len(different) == len(column) >= _MANY:
        raise ValueError(
            f"column {name!r} has {len(different)} different texts in {len(column)} rows, so they "
            "are no categories; choose another with population.data.columns"
        )


def _refuse_identifiers(table: Table, places: Sequence[int]) -> None:
    """Refuse to take for data, unasked, a column that only names the clients."""
    if len(places) < 2:
        return
    for place in places:
        name, column = table.names[place], table.columns[place]
        called = name.lower().replace(" ", "_")
        if not (_is_text(column.type) or pa.types.is_integer(column.type)):
            continue
        named = called in _ID_NAMES or called.endswith(("_id", "_uuid"))
        running = place == places[0] and pa.types.is_integer(column.type) and is_running(column)
        if running or (named and len(pc.unique(column)) == len(column)):
            others = ", ".join(table.names[other] for other in places if other != place)
            raise ValueError(
                f"column {name!r} names the clients and is no data, it seems: no two rows are "
                f"alike; say population.data.id: {name}, or list what is data in "
                f"population.data.columns, as [{others[:60]}]"
            )


def is_running(column: Any) -> bool:
    """Say whether a column only numbers the rows, from 0 or 1.

    Example:
        >>> is_running(np.arange(1, 50)), is_running(np.arange(50) % 7), is_running([0, 1])
        (True, False, False)
    """
    if len(column) < _MANY:
        return False
    values = np.asarray(column)
    return values[0] in (0, 1) and bool((values == values[0] + np.arange(len(values))).all())


def _check_distinct(table: Table, place: int) -> None:
    column, name = table.columns[place], table.names[place]
    counts = pc.value_counts(column).flatten()
    if len(counts[0]) < len(column):
        twice = counts[0].filter(pc.greater(counts[1], 1))[0]
        rows = [row for row, value in enumerate(column) if value == twice]
        raise ValueError(
            f"{name!r} names the clients and is {str(twice)!r} in {table.place(rows[0])} and "
            f"{table.place(rows[1])}; every client has one row: put its values together"
        )


def _text(table: Table, places: Sequence[int], place: int) -> str:
    column, name = table.columns[place], table.names[place]
    cells = column.cast(pa.string()).to_pylist()
    row = next((row for row, cell in enumerate(cells) if not _is_number(cell or "")), 0)
    numeric = [table.names[other] for other in places if not _is_text(table.columns[other].type)]
    instead = f"population.data.columns: [{', '.join(numeric)}]" if numeric else "others"
    return (
        f"column {name!r} holds text, {str(cells[row])!r} in {table.place(row)}; every column must "
        f"be a number, or be the only one: use {instead}, or [{name}] as categories"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_text(of: pa.DataType) -> bool:
    of = of.value_type if pa.types.is_dictionary(of) else of
    return bool(pa.types.is_string(of) or pa.types.is_large_string(of))


def _is_list(of: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(of) or pa.types.is_large_list(of) or pa.types.is_fixed_size_list(of)
    )


def _first(mask: Any) -> int:
    """Return the first row that is true; the number of rows if none is."""
    found = np.flatnonzero(np.asarray(mask.to_numpy(zero_copy_only=False), dtype=bool))
    return int(found[0]) if len(found) else len(mask)
