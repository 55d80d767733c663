"""The streams of a run: rows with their marks, and tables of what was written."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raydp_sim.metrics import columns, parts
from raydp_sim.metrics.described import RELEASED, SIMULATION_ONLY, VISIBILITIES

KEY = ["repetition", "release"]

_WHOLE = pa.int64()
_KEYS = pa.schema([(name, _WHOLE) for name in KEY])
_MARK = b"visibility"

# The streams that every run has, whatever its task.
SCHEMAS = {name: columns.schema(name) for name in ("releases", "withheld", "clipping", "timing")}
About = Mapping[str, tuple[str, str]]
"""Of columns by name: the unit, and what they say."""


def released(
    values: Mapping[str, Any], about: About | None = None, reader: str | None = None
) -> pa.RecordBatch:
    """Return rows that a reader of the protocol could publish; scalars make one row.

    Args:
        values: the columns.
        about: of columns that no shipped stream has: their unit, and what they say.
        reader: whose rows they are, if not everyone may see what is released to this one.

    Example:
        >>> released({"estimate": [0.5, 0.25]}).num_rows
        2
    """
    return _batch(values, RELEASED, about or {}, reader)


def simulation_only(values: Mapping[str, Any], about: About | None = None) -> pa.RecordBatch:
    """Return rows that only a simulation has, because they are functions of raw data.

    Args:
        values: the columns; scalars make one row.
        about: of columns that no shipped stream has: their unit, and what they say.

    Example:
        >>> visibility(simulation_only({"error": 0.5}).schema)
        'simulation-only'
    """
    return _batch(values, SIMULATION_ONLY, about or {}, None)


def _batch(
    values: Mapping[str, Any], mark: str, about: About, reader: str | None
) -> pa.RecordBatch:
    arrays = [
        value if isinstance(value, pa.Array) else pa.array(np.atleast_1d(value))
        for value in values.values()
    ]
    kinds = tuple((name, array.type) for name, array in zip(values, arrays, strict=True))
    told = tuple((name, *about[name]) for name in values if name in about)
    return pa.RecordBatch.from_arrays(arrays, schema=_schema(kinds, told, mark, reader))


@lru_cache(maxsize=256)
def _schema(
    kinds: tuple[tuple[str, pa.DataType], ...],
    told: tuple[tuple[str, str, str], ...],
    mark: str,
    reader: str | None,
) -> pa.Schema:
    """Return the schema of rows; most streams have the same one every time."""
    about = {name: (unit, meaning) for name, unit, meaning in told}
    fields = [
        pa.field(name, kind, metadata=_said(about[name]) if name in about else None)
        for name, kind in kinds
    ]
    marks = {"visibility": mark, **({} if reader is None else {"reader": reader})}
    return pa.schema(fields, metadata=marks)


def _said(of: tuple[str, str]) -> dict[str, str]:
    unit, meaning = of
    return {"unit": unit, "meaning": meaning}


def unknown_as_null(values: NDArray[np.float64]) -> pa.Array:
    """Return a column in which what is not a number is null: nothing is known of it.

    Example:
        >>> unknown_as_null(np.array([0.5, np.nan])).null_count
        1
    """
    return pa.array(values, from_pandas=True)


def visibility(schema: pa.Schema) -> str:
    """Return the mark of a stream: released, simulation-only, or ledger.

    Example:
        >>> visibility(SCHEMAS["releases"])
        'released'
    """
    found: str = (schema.metadata or {}).get(_MARK, b"").decode()
    if found not in VISIBILITIES:
        raise ValueError("a stream has no mark; make its rows with released or simulation_only")
    return found


def keyed(rows: pa.RecordBatch, repetition: int, release: int) -> pa.RecordBatch:
    """Return a task's rows with the key of their release in front."""
    count = rows.num_rows
    key = [pa.array(np.full(count, number), _WHOLE) for number in (repetition, release)]
    schema = pa.schema([*zip(KEY, (_WHOLE, _WHOLE), strict=True), *rows.schema])
    schema = schema.with_metadata(rows.schema.metadata)
    return pa.RecordBatch.from_arrays([*key, *rows.columns], schema=schema)


def table(stream: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Return rows as a table of the stream's schema."""
    return pa.Table.from_pylist(rows, schema=SCHEMAS[stream])


def read(folder: Path, stream: str) -> pa.Table:
    """Return a stream of a run, sorted by its key; one that nothing was written to is empty."""
    found = parts.read(folder, stream)
    if not found:
        known = SCHEMAS.get(stream)
        return known.empty_table() if known else pa.table({name: [] for name in KEY})
    return pa.concat_tables(found).sort_by([(name, "ascending") for name in KEY])


def joined(folder: Path) -> pa.Table:
    """Return one row per release: what was released, and the errors that a simulation knows.

    Streams of one row per release are put side by side; those of several rows are left out, and so
    are rows of batches that were withheld.
    """
    whole = read(folder, "releases")
    made = _places(whole)
    for stream in ("clipping", "errors"):
        other = read(folder, stream)
        other = other.filter(pa.array(np.isin(_places(other), made)))
        if not other.select(KEY).cast(_KEYS).equals(whole.select(KEY).cast(_KEYS)):
            continue
        for name in other.column_names:
            if name not in KEY:
                whole = whole.append_column(name, other[name])
    return whole.replace_schema_metadata(None)


def _places(rows: pa.Table) -> NDArray[np.int64]:
    """Return the key of every row as one number."""
    repetition, release = (rows[name].cast(_WHOLE).to_numpy() for name in KEY)
    return np.asarray((repetition << 32) + release)


def scores(row: Mapping[str, Any]) -> list[str]:
    """Return the columns of a joined row that a task scores itself by."""
    known = {*SCHEMAS["releases"].names, *SCHEMAS["clipping"].names, "participation_bias"}
    return [name for name in row if name not in known]
